"""Read values out of JSON that may hold anything: each question names the kind it wants."""

from __future__ import annotations

from typing import cast

from pdpp_kernel.source_item import Data, Json
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.times import from_epoch, from_iso


def text(value: Data, *names: str) -> str | None:
    """The first of these members that is a string with something in it, made printable."""
    for name in names:
        member = value.get(name)
        if isinstance(member, str) and member:
            return or_none(printable(member))
    return None


def line(value: Data, *names: str) -> str | None:
    """The same, on one line."""
    member = text(value, *names)
    return or_none(one_line(member)) if member else None


def required(value: Data, *names: str) -> str:
    """The same, where a record is nothing without it. Raises: BadRecord."""
    member = line(value, *names)
    if member is None:
        raise BadRecord("bad_record", message("the entry has no %(name)s", name=names[0]))
    return member


def whole(value: Data, name: str) -> int | None:
    """An integer within 64 bits, also if it is written as a string."""
    member: Json = value.get(name)
    if isinstance(member, str) and member.lstrip("-").isdecimal() and len(member) < 19:
        return int(member)
    if not isinstance(member, int) or isinstance(member, bool):
        return None
    return member if abs(member) < 2**63 else None


def decimal(value: Data, name: str) -> float | None:
    """A member as a number, or `None` where it is none or not finite."""
    member = value.get(name)
    if isinstance(member, bool) or not isinstance(member, int | float):
        return None
    return member if abs(member) < 1e300 else None


def truth(value: Data, name: str) -> bool:
    """Whether a member is true."""
    return value.get(name) is True


def inner(value: Data, *names: str) -> Data:
    """An object inside an object; an empty one if there is none."""
    for name in names:
        member: Json = value.get(name)
        value = cast(Data, member) if isinstance(member, dict) else {}
    return value


def things(value: Data, name: str) -> list[Json]:
    """The entries of a list."""
    member: Json = value.get(name)
    return cast("list[Json]", member) if isinstance(member, list) else []


def objects(value: Data, name: str) -> list[Data]:
    """The objects in a list."""
    return [cast(Data, element) for element in things(value, name) if isinstance(element, dict)]


def strings(value: Data, name: str) -> list[str]:
    """The strings in a list, made printable."""
    return [
        printable(element)
        for element in things(value, name)
        if isinstance(element, str) and element
    ]


def instant(value: Data, *names: str) -> str | None:
    """The first of these members that is an instant: ISO 8601, or seconds since 1970."""
    for name in names:
        member: Json = value.get(name)
        try:
            if isinstance(member, str) and member:
                return from_iso(member)
            if isinstance(member, int | float) and not isinstance(member, bool):
                return from_epoch(member)
        except BadRecord:
            continue
    return None
