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
        found = value.get(name)
        if isinstance(found, str) and found:
            return or_none(printable(found))
    return None


def line(value: Data, *names: str) -> str | None:
    """The same, on one line."""
    found = text(value, *names)
    return or_none(one_line(found)) if found else None


def required(value: Data, *names: str) -> str:
    """The same, where a record is nothing without it. Raises: BadRecord."""
    found = line(value, *names)
    if found is None:
        raise BadRecord("bad_record", message("the entry has no %(name)s", name=names[0]))
    return found


def whole(value: Data, name: str) -> int | None:
    """An integer within 64 bits, also if it is written as a string."""
    found: Json = value.get(name)
    if isinstance(found, str) and found.lstrip("-").isdecimal() and len(found) < 19:
        return int(found)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if abs(found) < 2**63 else None


def decimal(value: Data, name: str) -> float | None:
    """A finite number."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if abs(found) < 1e300 else None


def truth(value: Data, name: str) -> bool:
    """Whether a member is true."""
    return value.get(name) is True


def inner(value: Data, *names: str) -> Data:
    """An object inside an object; an empty one if there is none."""
    for name in names:
        found: Json = value.get(name)
        value = cast(Data, found) if isinstance(found, dict) else {}
    return value


def things(value: Data, name: str) -> list[Json]:
    """The entries of a list."""
    found: Json = value.get(name)
    return cast("list[Json]", found) if isinstance(found, list) else []


def objects(value: Data, name: str) -> list[Data]:
    """The objects in a list."""
    return [cast(Data, each) for each in things(value, name) if isinstance(each, dict)]


def strings(value: Data, name: str) -> list[str]:
    """The strings in a list, made printable."""
    return [printable(each) for each in things(value, name) if isinstance(each, str) and each]


def instant(value: Data, *names: str) -> str | None:
    """The first of these members that is an instant: ISO 8601, or seconds since 1970."""
    for name in names:
        found: Json = value.get(name)
        try:
            if isinstance(found, str) and found:
                return from_iso(found)
            if isinstance(found, int | float) and not isinstance(found, bool):
                return from_epoch(found)
        except BadRecord:
            continue
    return None
