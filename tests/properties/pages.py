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
    counted = 0
    for number, record in enumerate(records[:most]):
        counted += of_record(record, member) + 1
        if number and counted > int(scalars["page_chars"]):
            return number
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


def of_record(record: Json, member: int | None) -> int:
    """What a record counts: its data, who it is, 60 for the rest, and its related records."""
    names = ("id", "stream", "connection_id")
    counted = sum(len(record[name]) for name in names) + 60 + of_data(record.get("data"), member)
    if "data" not in record:
        return chars(record)
    for related in record.get("expanded", {}).values():
        children = related["data"] if related and related["object"] == "list" else [related]
        counted += sum(of_record(child, member) for child in children if child)
    return counted


def of_data(data: Json | None, member: int | None) -> int:
    if data is None:
        return 0
    if member is None or len(orjson.dumps(data)) <= member:
        return chars(data)
    return 1 + sum(len(name) + 4 + of_member(value, member) for name, value in data.items())


def of_member(value: object, most: int) -> int:
    return most if isinstance(value, str) and len(value) >= most else min(most, chars(value))


def chars(value: object) -> int:
    """The characters of a value as JSON."""
    return len(orjson.dumps(value).decode())
