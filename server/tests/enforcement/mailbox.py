"""A mailbox, what can be read of it, and rows of it."""

from __future__ import annotations

from typing import Any

from pdpp_kernel.declaration import (
    Aggregations,
    Cardinality,
    Expansion,
    Property,
    Relationship,
    Semantics,
    Stream,
    View,
)
from pdpp_kernel.record import FieldChange, StoredRecord
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource, ReadAuthority, SourceId, TokenKind

TEXT, WHOLE = ValueKind.STRING, ValueKind.INTEGER
SOURCE_ID = SourceId("connector", "https://connectors.example/mail")
_PROPERTIES = (
    Property("id", {}, TEXT),
    Property("thread", {"x_pdpp_label_field": "folder"}, TEXT, role="conversation"),
    Property("subject", {}, TEXT, type="text", role="primary-title"),
    Property("body", {}, TEXT, type="text"),
    Property("sender", {"x_pdpp_label_field": "sender_name"}, TEXT, role="author"),
    Property("sender_name", {}, TEXT, role="author"),
    Property("receiver", {"x_pdpp_caseless": True}, TEXT, role="recipient"),
    Property("folder", {}, TEXT),
    Property("size", {}, WHOLE),
    Property("unread", {}, ValueKind.BOOLEAN),
    Property("tags", {}, None),
    Property("file", {}, None, type="blob"),
    Property("parent_id", {}, TEXT),
    Property("sent_at", {}, ValueKind.INSTANT, role="event-time"),
    Property("due", {}, ValueKind.DATE),
)
PARENT = Relationship("parent", "mails", "parent_id", Cardinality.HAS_ONE, "self")
NOTES = Relationship("notes", "notes", "mail_id", Cardinality.HAS_MANY)
THREAD = Relationship("thread", "mails", "thread", Cardinality.HAS_MANY, "both")
_RAW: dict[str, Any] = {
    "name": "mails",
    "display": {"label": "Mails"},
    "primary_key": ["id"],
    "cursor_field": "sent_at",
    "schema": {
        "type": "object",
        "properties": {each.name: {} for each in _PROPERTIES},
        "required": ["id", "subject"],
    },
    "query": {
        "range_filters": {"size": ["gte"], "sent_at": ["gte", "lt"]},
        "search": {"lexical_fields": ["subject", "body"]},
        "aggregations": {"count": True, "sum": ["size"]},
        "expand": [{"name": "parent"}],
    },
}
MAILS = Stream(
    "mails",
    Semantics.MUTABLE,
    "Mails",
    {each.name: each for each in _PROPERTIES},
    ("id",),
    raw=_RAW,
    cursor_field="sent_at",
    consent_time_field="sent_at",
    required=("id", "subject"),
    views=(View("short", "Short", ("id", "subject")), View("bodies", "Bodies", ("body",))),
    relationships=(PARENT, NOTES, THREAD),
    range_filters={"size": ("gte", "lt"), "sent_at": ("gte", "lt")},
    expansions=(Expansion(PARENT), Expansion(NOTES, 3, 7), Expansion(THREAD)),
    lexical_fields=("subject", "body", "sender"),
    semantic_fields=("body",),
    aggregations=Aggregations(
        count=True,
        sum=("size",),
        min=("sent_at",),
        count_distinct=("thread",),
        group_by=("thread",),
        group_by_time=("sent_at", "due"),
    ),
)
NOTE_STREAM = Stream(
    "notes",
    Semantics.MUTABLE,
    "Notes",
    {name: Property(name, {}, TEXT) for name in ("id", "mail_id", "said")},
    ("id",),
    raw={},
    lexical_fields=("said",),
)
ALL = tuple(MAILS.properties)


def mails(*fields: str, **members: Any) -> ReadableSource:
    """The mails as far as these fields are granted, without any as far as all are."""
    return _source(MAILS, fields or ALL, members)


def notes(*fields: str, **members: Any) -> ReadableSource:
    """The notes beside the mails."""
    return _source(NOTE_STREAM, fields or tuple(NOTE_STREAM.properties), members)


def _source(stream: Stream, fields: tuple[str, ...], members: dict[str, Any]) -> ReadableSource:
    given: dict[str, Any] = {
        "grant_id": "grt_1",
        "connection_id": "cin_a",
        "display_name": "Home",
        "sibling_streams": frozenset({"mails", "notes"}),
        **members,
    }
    ordered = tuple(name for name in stream.properties if name in fields)
    return ReadableSource(
        source=SOURCE_ID, connector_key="mail", declared=stream, fields=ordered, **given
    )


def authority(*sources: ReadableSource, kind: TokenKind = TokenKind.CLIENT) -> ReadAuthority:
    """A token for these sources."""
    return ReadAuthority(
        kind,
        "own_1",
        sources or (mails(),),
        client_id="cli_1",
        package_id="gpkg_1" if kind is TokenKind.PACKAGE else None,
        grant_ids=("grt_1",),
        granted_streams=frozenset(source.stream for source in sources or (mails(),)),
    )


def row(key: str = "m1", **data: Any) -> StoredRecord:
    """A mail as a store hands it on."""
    created = FieldChange(1, 1_000_000_000)
    return StoredRecord("cin_a", "mails", key, {"id": key, **data}, created, {})
