"""Entries of the time line: when, by whom, in which chat, and what it is called or begins with.

Source: docs/contract/resource-server.md 7.9.
"""

from __future__ import annotations

from typing import ClassVar

from pdpp_kernel.record import StoredRecord
from pdpp_kernel.wire_objects import ConnectionId, WireObject, Word
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.disclose import granted_value, identity
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.search_hits import (
    TITLE_CHARS,
    author_of,
    conversation_name,
    naming_conversations,
)
from personal_server.enforcement.timeline import time_field

PREVIEW_CHARS = 200


class TimelineData(WireObject):
    """What is shown of a record on a time line; each member is a granted value, or its beginning.

    Shapes: `preview` is there where there is no title; `when` is what clocks of the zone say that
        was asked for.
    """

    at: str
    when: str | None = None
    author: str | None = None
    conversation: str | None = None
    title: str | None = None
    preview: str | None = None


class TimelineEntry(WireObject, kw_only=True, tag_field="object", tag="timeline_entry"):
    """A record in the order of time."""

    component: ClassVar = "TimelineEntry"
    example: ClassVar = {
        "object": "timeline_entry",
        "id": "ent_41",
        "record_id": "ent_41",
        "stream": "entries",
        "data": {"at": "2026-03-13T21:40:00Z", "title": "Rain"},
        "connection_id": "cin_diary",
        "connector_key": "journal",
        "display_name": "Paper diary",
    }

    id: Word
    record_id: Word
    stream: Word
    data: TimelineData
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None


def timeline_fields(source: ReadableSource) -> tuple[str, ...]:
    """The fields that an entry may show something of."""
    time = time_field(source)
    named = {None if time is None else time.name, source.declared.title_field}
    named |= {source.declared.event_end_field, source.declared.whole_days_field}
    named |= set(_previewed(source)) | set(source.declared.primary_key)
    named |= {*source.declared.fields_with_role("author"), *naming_conversations(source)}
    return tuple(name for name in source.fields if name in named)


def disclose_entry(
    authority: ReadAuthority, source: ReadableSource, row: StoredRecord, when: str | None = None
) -> TimelineEntry:
    """The entry of a row that has a time, and what clocks say of it."""
    time = time_field(source)
    title = granted_value(row, source, source.declared.title_field)
    shown = TimelineData(
        at=str(granted_value(row, source, None if time is None else time.name)),
        when=when,
        author=author_of(source, row),
        conversation=conversation_name(source, row),
        title=title[:TITLE_CHARS] if isinstance(title, str) and title.strip() else None,
    )
    if shown.title is None:
        texts = (row.data.get(name) for name in _previewed(source))
        found = next((text for text in texts if isinstance(text, str) and text.strip()), None)
        shown.preview = None if found is None else found[:PREVIEW_CHARS]
    return TimelineEntry(
        id=row.key,
        record_id=row.key,
        stream=row.stream,
        data=shown,
        **identity(authority, source),
    )


def _previewed(source: ReadableSource) -> tuple[str, ...]:
    title = source.declared.title_field
    return tuple(name for name in searchable_fields(source) if name != title)
