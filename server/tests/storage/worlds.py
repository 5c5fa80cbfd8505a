"""A small invented source for the storage contract: notes with all kinds of fields, and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.declaration import Stream
from pdpp_kernel.operators import Operator
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import comparable
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import Batch, RecordWrite, WriteOutcome
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore

NOTES: dict[str, Any] = {
    "name": "notes",
    "semantics": "mutable_state",
    "display": {"label": "Notes"},
    "primary_key": ["id"],
    "cursor_field": "at",
    "consent_time_field": "at",
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "at": {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"},
            "day": {"type": ["string", "null"], "format": "date"},
            "title": {"type": ["string", "null"], "x_pdpp_role": "primary-title"},
            "body": {"type": "string", "x_pdpp_type": "text", "x_pdpp_caseless": True},
            "mood": {
                "type": ["string", "null"],
                "x_pdpp_caseless": True,
                "x_pdpp_label_field": "title",
                "x_pdpp_mark_field": "place",
            },
            "place": {"type": "string"},
            "words": {"type": ["integer", "null"]},
            "cost": {"type": "number"},
            "pinned": {"type": "boolean"},
            "labels": {"type": "array"},
            "blob_ref": {"type": "object", "x_pdpp_type": "blob"},
        },
        "required": ["id", "at"],
    },
    "query": {
        "range_filters": {
            "at": ["gte", "gt", "lte", "lt"],
            "day": ["gte", "lt"],
            "words": ["gte", "lte", "gt", "lt"],
            "cost": ["gte", "lt"],
        },
        "search": {"lexical_fields": ["title", "body"], "semantic_fields": ["title", "body"]},
        "aggregations": {
            "count": True,
            "sum": ["words", "cost"],
            "min": ["at", "cost", "words", "day"],
            "max": ["at", "cost", "words", "day"],
            "count_distinct": ["mood", "at", "cost", "id"],
            "group_by": ["mood", "pinned", "words", "cost", "day", "at"],
            "group_by_time": ["at", "day"],
        },
    },
}
FILES: dict[str, Any] = {
    "name": "files",
    "semantics": "append_only",
    "display": {"label": "Files"},
    "primary_key": ["id"],
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "note_id": {"type": "string"},
            "number": {"type": "integer"},
            "name": {"type": "string", "x_pdpp_role": "primary-title"},
        },
        "required": ["id", "note_id"],
    },
    "query": {"search": {"lexical_fields": ["name"]}},
}
NOTES["relationships"] = [
    {"name": "files", "stream": "files", "foreign_key": "note_id", "cardinality": "has_many"}
]
NOTES["query"]["expand"] = [{"name": "files"}]


def declaration(
    version: str = "1", streams: Sequence[Mapping[str, Any]] = (NOTES, FILES), **members: Any
) -> SourceDeclaration:
    return parse_declaration(
        {
            "protocol_version": "0.1.0",
            "source": {"kind": "connector", "id": "https://connectors.example/notebook"},
            "connector_key": "notebook",
            "declaration_version": version,
            "display": {"name": "Notebook"},
            "streams": list(streams),
        }
        | members
    )


DECLARED = declaration()
NOTES_STREAM = DECLARED.streams["notes"]
FILES_STREAM = DECLARED.streams["files"]
NOTE_FIELDS = tuple(NOTES_STREAM.properties)


def connection(connection_id: str, status: ConnectionStatus = ConnectionStatus.DRAFT) -> Connection:
    return Connection(
        connection_id, "notebook", "https://connectors.example/notebook", None, status, 1, 1
    )


def furnish(store: RecordStore, *connection_ids: str) -> None:
    store.put_declaration(DECLARED, orjson.dumps(DECLARED.raw), 1)
    for connection_id in connection_ids:
        store.add_connection(connection(connection_id))


def write(
    store: RecordStore,
    connection_id: str,
    records: Iterable[Mapping[str, Any] | str],
    *,
    stream: Stream = NOTES_STREAM,
    emitted: int = 1_000,
    now: int = 2_000,
) -> tuple[WriteOutcome, ...]:
    """Upsert objects, delete keys."""
    writes = [
        RecordWrite(each, None, emitted)
        if isinstance(each, str)
        else RecordWrite(str(each["id"]), each, emitted)
        for each in records
    ]
    return store.commit(Batch(connection_id, stream, writes, now))


def note(key: str, at: str = "2026-01-01T00:00:00Z", **fields: Any) -> dict[str, Any]:
    return {"id": key, "at": at, **fields}


def scope(connection_id: str = "cin_a", stream: Stream = NOTES_STREAM, **more: Any) -> Scope:
    fields = more.pop("fields", tuple(stream.properties))
    return Scope(connection_id, stream, fields, **more)


def order(field: str | None, *, down: bool = False, stream: Stream = NOTES_STREAM) -> Order:
    return Order(field, stream.properties[field].kind if field else None, down)


def condition(
    field: str,
    operator: str,
    value: object,
    stream: Stream = NOTES_STREAM,
    *,
    further: Sequence[object] = (),
    caseless: bool = False,
) -> Condition:
    kind = stream.properties[field].kind
    assert kind is not None
    if operator in ("contains", "starts_with", "exists"):
        assert isinstance(value, str | bool)
        return Condition(field, kind, Operator(operator), value)
    first, *rest = (comparable(each, kind) for each in (value, *further))
    assert first is not None
    others = tuple(each for each in rest if each is not None)
    return Condition(field, kind, Operator(operator), first, others, caseless)


def keys(store: RecordStore, plan: RecordsPlan) -> list[str]:
    with store.snapshot() as snapshot:
        return [placed.row.key for placed in snapshot.page(plan).rows]


def walk(store: RecordStore, plan: RecordsPlan) -> list[Position]:
    """All pages, laid end to end."""
    found: list[Position] = []
    after = plan.after
    while True:
        with store.snapshot() as snapshot:
            page = snapshot.page(
                RecordsPlan(plan.scopes, plan.order, plan.limit, plan.conditions, after)
            )
        found += [placed.position for placed in page.rows]
        if not page.more:
            return found
        after = page.rows[-1].position
