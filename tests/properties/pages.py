"""Where a page ends, written from docs/contract/resource-server.md 7.1 and 7.8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

Json = dict[str, Any]


def limit(scalars: Mapping[str, str]) -> int:
    """How many items a page holds at most."""
    return int(scalars.get("limit", 25))


def kept(scalars: Mapping[str, str], records: Sequence[Json]) -> int:
    """How many of the records that follow stand on one page."""
    most = min(limit(scalars), len(records))
    if "page_chars" not in scalars:
        return most
    member = int(scalars["member_chars"]) if "member_chars" in scalars else None
    room = int(scalars["page_chars"])
    for number in range(2, most + 1):
        in_table, as_json = counted(records[:number], member)
        if in_table > room or as_json > room * 5 / 3:
            return number - 1
    return most


def ends_where_it_should(scalars: Mapping[str, str], hits: Sequence[Json], remaining: int) -> None:
    """A page of hits is full, or the size that was asked for ends it."""
    full = min(limit(scalars), remaining)
    if "page_chars" not in scalars:
        assert len(hits) == full
        return
    counted = sum(chars(hit) + 1 for hit in hits)
    assert len(hits) in (1, full) or counted <= int(scalars["page_chars"])
    assert 0 < len(hits) <= full or full == 0


def counted(records: Sequence[Json], member: int | None) -> tuple[int, int]:
    """What a page counts as a table and as JSON, counted from its start."""
    said = [sayings(record, member) for record in records]
    names = {name for each in said for name in each}
    alike = {name: said[0][name] for name in names if is_alike(name, said)}
    once = sum(as_json for _, _, as_json in alike.values())
    in_table = as_json = once
    for record, each in zip(records, said, strict=True):
        own = len(record["id"]) if each else alone(record, member)
        rest = [values for name, values in each.items() if name not in alike]
        in_table += own + 1 + sum(values[1] for values in rest)
        as_json += own + (25 if each else 1) + sum(values[2] for values in rest)
    return in_table, as_json


def sayings(record: Json, member: int | None) -> dict[Any, tuple[bytes | None, int, int]]:
    """What a record says: the value if all may share it, and what it counts in either form."""
    return {} if "data" not in record or "expanded" in record else parts(record, member)


def alone(record: Json, member: int | None) -> int:
    """What an item counts that has nothing alike with others."""
    if "data" not in record:
        return chars(record)
    said = parts(record, member).values()
    return len(record["id"]) + 24 + sum(each[2] for each in said) + of_related(record, member)


def parts(record: Json, member: int | None) -> dict[Any, tuple[bytes | None, int, int]]:
    """Everything a record says beside its id."""
    place = len(record["stream"]) + len(record["connection_id"]) + 60
    where = orjson.dumps([record["stream"], record["connection_id"]])
    said: dict[Any, tuple[bytes | None, int, int]] = {
        ("place",): (where, place, place),
        ("emitted_at",): (orjson.dumps(record["emitted_at"]), 0, 40),
    }
    for name, value in record["data"].items():
        if value != record["id"]:
            size = of_member(value, member)
            whole = None if size == member else orjson.dumps(value)
            said[name] = (whole, size + 1, len(name) + 4 + size)
    return said


def is_alike(name: Any, said: Sequence[Json]) -> bool:
    """Whether all records say it, with the same value."""
    values = [each[name][0] if name in each else None for each in said]
    return None not in values and len(set(values)) == 1


def of_related(record: Json, member: int | None) -> int:
    """What the related records count, each as if it stood alone."""
    found = 0
    for related in record.get("expanded", {}).values():
        children = related["data"] if related and related["object"] == "list" else [related]
        for child in filter(None, children):
            found += sum(len(child[name]) for name in ("id", "stream", "connection_id")) + 60
            for name, value in child["data"].items():
                found += len(name) + 4 + of_member(value, member)
            found += of_related(child, member)
    return found


def of_member(value: object, most: int | None) -> int:
    return chars(value) if most is None else min(most, chars(value))


def chars(value: object) -> int:
    """The characters of a value as JSON."""
    return len(orjson.dumps(value).decode())
