"""Notes of two accounts, and a grant of some of them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.grant import ContentLimit, Grant, StreamGrant
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from server.tests.delivery.post_office import PostOffice
from tests.properties.comparing import DECLARATIONS
from tests.properties.worlds import SOURCES

URI = SOURCES["alpha"]["source"]["id"]
A, B = "cin_a1", "cin_a2"
FIELDS = ("id", "at", "title")
SINCE = "2026-01-01T00:00:00Z"


def furnish(office: PostOffice) -> None:
    declaration = DECLARATIONS["alpha"]
    office.store.put_declaration(declaration, orjson.dumps(declaration.raw), 1)
    for connection_id in (A, B):
        office.store.add_connection(
            Connection(connection_id, "alpha", URI, None, ConnectionStatus.ACTIVE, 1, 1)
        )


def write(
    office: PostOffice,
    *keys: str,
    connection: str = A,
    stream: str = "notes",
    at: str = "2026-03-01T00:00:00Z",
    **fields: object,
) -> None:
    """Write notes, other ones each time unless fields are named."""
    title = fields.pop("title", f"at {office.now_ns}")
    records = [{"id": key, "at": at, "title": title, **fields} for key in keys]
    commit(office, connection, stream, [(str(each["id"]), each) for each in records])


def delete(office: PostOffice, *keys: str, connection: str = A, stream: str = "notes") -> None:
    commit(office, connection, stream, [(key, None) for key in keys])


def commit(
    office: PostOffice,
    connection: str,
    stream: str,
    records: Sequence[tuple[str, dict[str, object] | None]],
) -> None:
    declared = DECLARATIONS["alpha"].streams[stream]
    writes = [RecordWrite(key, data, office.now_ns) for key, data in records]
    office.store.commit(Batch(connection, declared, writes, office.now_ns))


def grant_of(
    grant_id: str,
    *connections: str,
    fields: tuple[str, ...] = FIELDS,
    resources: tuple[str, ...] | None = None,
    streams: tuple[str, ...] = ("notes",),
    only: tuple[ContentLimit, ...] = (),
) -> Grant:
    """A grant of notes from 2026 on."""
    bound = TimeConstraint("at", instant_ns(SINCE), None, SINCE, None)
    named = {"notes": fields, "files": ("id", "name"), "books": ("id", "name")}
    return Grant(
        grant_id=grant_id,
        issued_at="2026-01-01T00:00:00.000Z",
        subject_id="owner",
        client_id="planner",
        source=SourceId("connector", URI),
        declaration_version="1",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode="continuous",
        streams=tuple(
            StreamGrant(
                name,
                connections or (A,),
                named[name],
                bound if name == "notes" else None,
                resources if name == "notes" else None,
                only if name == "notes" else (),
            )
            for name in streams
        ),
        expires_at=None,
    )
