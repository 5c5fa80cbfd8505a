"""The only door out for records but in an owner's export (`reading/export.py`): rows to records.

Rule: a row is whole, a record is its projection; every member of a record, its `emitted_at`
included, is computed from granted fields of its own source.
Source: docs/contract/resource-server.md 2.4, 4.3, 7.4, 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast
from urllib.parse import quote

import msgspec

from pdpp_kernel.record import StoredRecord, TombstoneRow
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import (
    ConnectionId,
    Instant,
    RawObject,
    RoutePath,
    WireObject,
    Word,
    Yes,
    raw_json,
)
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind


class Record(WireObject, kw_only=True, tag_field="object", tag="record"):
    """A record, projected to what may be shown of it."""

    component: ClassVar = "Record"
    example: ClassVar = {
        "object": "record",
        "id": "ent_41",
        "record_id": "ent_41",
        "stream": "entries",
        "data": {"id": "ent_41", "title": "Rain", "created_at": "2026-03-13T21:40:00Z"},
        "emitted_at": "2026-03-14T06:30:00.000Z",
        "connection_id": "cin_diary",
        "connector_key": "journal",
        "display_name": "Paper diary",
    }

    id: Word
    record_id: Word
    stream: Word
    data: RawObject
    emitted_at: Instant
    when: str | None = None
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None
    expanded: Mapping[str, Expanded] | None = None


class ChildList(WireObject, kw_only=True, tag_field="object", tag="list"):
    """The related records of one record, and where more of them are."""

    data: Sequence[Record]
    has_more: bool
    url: RoutePath | None = None


class Tombstone(WireObject, kw_only=True, tag_field="object", tag="record"):
    """What is said of a record that left the visible set."""

    component: ClassVar = "Tombstone"

    id: Word
    record_id: Word
    stream: Word
    deleted: Yes
    deleted_at: Instant
    left: Literal["filter"] | None = None
    emitted_at: Instant
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None


Child = Annotated[Record | None, msgspec.Meta()]
Expanded = Child | ChildList
Discloser = Callable[[StoredRecord], Record]
Clock = Callable[[StoredRecord], str | None]


def identity(authority: ReadAuthority, source: ReadableSource) -> dict[str, Any]:
    """The members that say where something came from.

    Source: docs/contract/resource-server.md 2.4, 2.5.
    """
    members: dict[str, object] = {
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
    }
    if source.display_name is not None:
        members["display_name"] = source.display_name
    if authority.kind is TokenKind.PACKAGE:
        members["grant_id"] = source.grant_id
    return members


def discloser(
    authority: ReadAuthority, source: ReadableSource, shown: tuple[str, ...]
) -> Discloser:
    """A function from the rows of one source to records with the shown fields.

    Shapes: `shown` is a subset of the source's fields; everything that does not depend on the row
        is settled here, once per read.
    """
    stream = source.stream
    granted = frozenset(source.fields)
    names = tuple(name for name in shown if name in granted)
    blobs = tuple(name for name in source.declared.blob_fields if name in names)
    where = identity(authority, source)

    def disclose(row: StoredRecord) -> Record:
        stored = row.data
        data = {name: stored[name] for name in names if name in stored}
        for name in blobs:
            if name in data:
                data[name] = _with_fetch_url(data[name], source.connection_id)
        return Record(
            id=row.key,
            record_id=row.key,
            stream=stream,
            data=raw_json(data),
            emitted_at=render_instant(granted_emitted_at_ns(row, granted)),
            **where,
        )

    return disclose


def disclosed_records(
    authority: ReadAuthority,
    sources: Iterable[ReadableSource],
    shown: Mapping[str, tuple[str, ...]],
    rows: Iterable[StoredRecord],
    clocks: Mapping[str, Clock] | None = None,
) -> Iterator[Record]:
    """The records of rows of several sources, each made when it is drawn.

    Shapes: `shown` are the shown fields by connection, `clocks` say when each record was.
    """
    disclose = {
        each.connection_id: discloser(authority, each, shown[each.connection_id])
        for each in sources
    }
    for row in rows:
        record = disclose[row.connection_id](row)
        if clocks is not None:
            record.when = clocks[row.connection_id](row)
        yield record


def disclose_tombstone(
    authority: ReadAuthority, source: ReadableSource, row: TombstoneRow
) -> Tombstone:
    """What is said of a record that left the visible set."""
    return Tombstone(
        id=row.key,
        record_id=row.key,
        stream=source.stream,
        deleted=True,
        deleted_at=render_instant(row.left_at_ns),
        left="filter" if row.is_filtered else None,
        emitted_at=render_instant(row.emitted_at_ns),
        **identity(authority, source),
    )


def granted_emitted_at_ns(row: StoredRecord, granted: frozenset[str]) -> int:
    """`emitted_at` of the write that last changed a granted field, or created the record."""
    latest = row.created
    for name, change in row.field_changes.items():
        if change.sequence > latest.sequence and name in granted:
            latest = change
    return latest.emitted_at_ns


def granted_value(row: StoredRecord, source: ReadableSource, name: str | None) -> object:
    """One stored value, `None` unless its field is granted."""
    return row.data.get(name) if name is not None and name in source.fields else None


def _with_fetch_url(value: object, connection_id: str) -> object:
    if not isinstance(value, Mapping):
        return value
    reference = cast("Mapping[str, object]", value)
    blob_id = reference.get("blob_id")
    if not isinstance(blob_id, str):
        return reference
    url = f"/v1/blobs/{quote(blob_id, safe='')}?connection_id={quote(connection_id, safe='')}"
    return {**reference, "fetch_url": url}
