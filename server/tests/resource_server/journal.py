"""A small diary on two connections, and tokens that see different parts of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import ReadAuthority, SourceId, TimeConstraint
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import (
    ACTIVE,
    ContentLimit,
    Grant,
    LimitValue,
    MemberGrant,
    Resolved,
    StreamGrant,
)
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.enforcement.authority import read_authority
from personal_server.storage.ports.whole_store import RecordStore
from tests.oracle.memory import MemoryStore

DIARY, LETTERS, BANK = "cin_diary0000000000", "cin_letters00000000", "cin_bank00000000000"
LIST = "/v1/streams/entries/records"
NARROW = ("id", "title", "created_at")
SAMPLE = Path(__file__).parent.parent / "samples" / "journal.json"
JOURNAL_RAW: dict[str, Any] = json.loads(SAMPLE.read_text())
JOURNAL = parse_declaration(JOURNAL_RAW)


def other_source(key: str) -> SourceDeclaration:
    raw = copy.deepcopy(JOURNAL_RAW)
    raw["source"]["id"] = f"https://connectors.example/{key}"
    raw["connector_key"] = key
    return parse_declaration(raw)


BANKING = other_source("banking")
DECLARATIONS = {"journal": JOURNAL, "banking": BANKING}

ENTRIES: list[dict[str, Any]] = [
    {
        "id": "e1",
        "title": "Rain",
        "body": "We walked home in heavy rain & wind <b>until</b> dark.",
        "volume_id": "v1",
        "labels": ["wet"],
        "word_count": 10,
        "pinned": True,
        "created_at": "2026-01-01T10:00:00Z",
    },
    {
        "id": "e2",
        "title": "Snow",
        "body": "White roofs, quiet rain later.",
        "volume_id": "v1",
        "word_count": 20,
        "pinned": False,
        "created_at": "2026-02-01T10:00:00Z",
    },
    {"id": "e3", "title": None, "body": "Nothing.", "created_at": "2026-03-01T10:00:00Z"},
]
LETTER_ENTRIES: list[dict[str, Any]] = [
    {
        "id": "e2",
        "title": "Dear Ada",
        "body": "ada@example.org wrote",
        "word_count": 5,
        "pinned": True,
        "created_at": "2026-02-15T10:00:00Z",
    },
    {"id": "l1", "title": "Rain again", "body": "", "created_at": "2026-04-01T10:00:00Z"},
]
VOLUMES = [{"id": "v1", "name": "Winter"}]
ATTACHMENTS: list[dict[str, Any]] = [
    {"id": f"a{i}", "entry_id": "e1", "filename": f"photo {i}.jpg"} for i in range(1, 13)
]
ATTACHMENTS[0]["blob_ref"] = {
    "blob_id": "blob_sha256_" + "0" * 64,
    "mime_type": "image/jpeg",
    "size_bytes": 3,
    "sha256": "0" * 64,
}


def connection(
    connection_id: str,
    key: str = "journal",
    name: str | None = None,
    status: ConnectionStatus = ConnectionStatus.ACTIVE,
) -> Connection:
    source_id = DECLARATIONS[key].source_id
    return Connection(connection_id, key, source_id, name, status, 1, 1)


CONNECTIONS = (
    connection(DIARY, name="Paper diary"),
    connection(LETTERS),
    connection(BANK, "banking", "Bank"),
)


def write(
    store: RecordStore,
    connection_id: str,
    stream: str,
    records: Iterable[Mapping[str, Any] | str],
    emitted_at: str = "2026-05-01T00:00:00Z",
    declared: SourceDeclaration = JOURNAL,
) -> None:
    """Upsert objects, delete keys."""
    at_ns = instant_ns(emitted_at) or 0
    writes = [
        RecordWrite(r, None, at_ns) if isinstance(r, str) else RecordWrite(r["id"], r, at_ns)
        for r in records
    ]
    store.commit(Batch(connection_id, declared.streams[stream], writes, at_ns))


def furnished(store: RecordStore | None = None) -> RecordStore:
    """The store with everything in it."""
    store = store or MemoryStore()
    for declaration in DECLARATIONS.values():
        store.put_declaration(declaration, orjson.dumps(declaration.raw), 1)
    for each in CONNECTIONS:
        store.add_connection(each)
    write(store, DIARY, "entries", ENTRIES)
    write(store, DIARY, "volumes", VOLUMES)
    write(store, DIARY, "attachments", ATTACHMENTS)
    write(store, LETTERS, "entries", LETTER_ENTRIES)
    write(store, BANK, "entries", ENTRIES[:1], declared=BANKING)
    return store


def stream_grant(
    name: str = "entries",
    instance_ids: tuple[str, ...] = (DIARY, LETTERS),
    fields: tuple[str, ...] | None = None,
    since: str | None = None,
    until: str | None = None,
    resources: tuple[str, ...] | None = None,
    only: Mapping[str, tuple[LimitValue, ...]] | None = None,
) -> StreamGrant:
    constraint = None
    if since or until:
        constraint = TimeConstraint(
            "created_at",
            instant_ns(since) if since else None,
            instant_ns(until) if until else None,
            since,
            until,
        )
    chosen = fields or tuple(JOURNAL.streams[name].properties)
    limits = tuple(ContentLimit(field, values) for field, values in (only or {}).items())
    return StreamGrant(name, instance_ids, chosen, constraint, resources, limits)


def grant(
    *streams: StreamGrant, grant_id: str = "grt_1", key: str = "journal", issued: str = "2026-01-01"
) -> Grant:
    source = DECLARATIONS[key]
    return Grant(
        grant_id=grant_id,
        issued_at=f"{issued}T00:00:00Z",
        subject_id="owner",
        client_id="planner",
        source=SourceId(source.source_kind, source.source_id),
        declaration_version=source.version,
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode="continuous",
        streams=streams,
        expires_at=None,
    )


def member(granted: Grant | None, status: str = ACTIVE, grant_id: str = "grt_1") -> MemberGrant:
    return MemberGrant(granted.grant_id if granted else grant_id, granted, "journal", status)


def resolved(kind: str, *members: MemberGrant) -> Resolved:
    return Resolved(
        kind=kind,
        subject_id="owner",
        client_id="planner",
        token_reference="tok_1",
        resource="http://127.0.0.1:7662/v1",
        expires_at_ns=2**62,
        grants=members,
        package_id="gpkg_1" if kind == "mcp_package" else None,
    )


def authority_of(
    kind: str, *members: MemberGrant, connections: Iterable[Connection] = CONNECTIONS
) -> ReadAuthority:
    return read_authority(resolved(kind, *members), connections, DECLARATIONS)


def client(*streams: StreamGrant, declared: SourceDeclaration = JOURNAL) -> ReadAuthority:
    """A client with one grant of the diary source."""
    one = resolved("client", member(grant(*(streams or (stream_grant(),)))))
    return read_authority(one, CONNECTIONS, {**DECLARATIONS, "journal": declared})


def package(*grants: Grant) -> ReadAuthority:
    """A package of grants."""
    return authority_of("mcp_package", *(member(each) for each in grants))


OWNER = authority_of("owner")
