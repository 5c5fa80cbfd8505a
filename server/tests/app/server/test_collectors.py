"""Collectors of others: their manifest, their messages, and a token that does nothing else."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from personal_server.collecting.receipts import ImportMemory, receipts_of
from personal_server.domain.stored import StreamState
from personal_server.granting.audit import SERVER
from personal_server.granting.collector_tokens import (
    collector_tokens,
    issue_collector_token,
    revoke_collector_token,
)
from server.tests.app.whole import ORIGIN, Whole, whole
from server.tests.console.household import HOME

MANIFEST: dict[str, Any] = {
    "protocol_version": "0.1.0",
    "connector_id": "https://connectors.example/plays",
    "connector_key": "plays",
    "version": "0.3.0",
    "display_name": "Plays",
    "runtime_requirements": {"bindings": {"network": {"required": True}}},
    "capabilities": {"human_interaction": ["credentials"], "proven": "2026-01-01"},
    "streams": [
        {
            "name": "plays",
            "semantics": "append",
            "incremental": True,
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "played_at": {"type": ["string", "null"], "format": "date-time"},
                },
                "required": ["id"],
            },
            "primary_key": ["id"],
            "consent_time_field": "played_at",
            "selection": {"fields": True, "resources": True},
        }
    ],
}
STARTED = "2026-11-22T15:00:00Z"


def record(number: int, **data: object) -> dict[str, Any]:
    key = f"play{number}"
    return {
        "type": "RECORD",
        "stream": "plays",
        "key": key,
        "data": {"id": key, "title": f"Song {number}", **data},
        "emitted_at": STARTED,
    }


RUN: list[dict[str, Any]] = [
    {"type": "PROGRESS", "stream": "plays", "message": "Reading", "count": 0, "total": 3},
    record(1, played_at="2026-11-01T08:00:00Z"),
    record(2, played_at=None),
    {"type": "STATE", "stream": "plays", "cursor": {"page": 2}},
    record(3, played_at="2026-11-03T08:00:00Z"),
    {"type": "SKIP_RESULT", "stream": "playlists", "reason": "rate_limited", "message": "Later"},
    {"type": "STATE", "stream": "plays", "cursor": {"page": 3}},
    {"type": "DONE", "status": "succeeded", "records_emitted": 3},
]


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        yield made


@pytest.fixture
def owner_token(site: Whole) -> str:
    return str(site.owner_token()["access_token"])


def token_for(site: Whole, connection_id: str) -> str:
    stores = site.server.stores
    return issue_collector_token(
        stores.authorization, ORIGIN, connection_id, SERVER, stores.random_bytes, site.clock()
    )


def client(site: Whole, token: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=site.server.app)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers)


async def push(collector: httpx2.AsyncClient, messages: list[dict[str, Any]]) -> None:
    """What a runtime of the collection profile does with the messages of a run that succeeds."""
    lines = b"".join(json.dumps(m).encode() + b"\n" for m in messages if m["type"] == "RECORD")
    stored = await collector.post(
        "/v1/ingest/plays", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert stored.json()["records_rejected"] == 0, stored.text
    state = {m["stream"]: m["cursor"] for m in messages if m["type"] == "STATE"}
    kept = await collector.put("/v1/state/plays", json={"state": state})
    assert kept.status_code == 200, kept.text


@pytest.mark.anyio
async def test_a_run_of_a_collector_ends_with_the_records_it_means(
    site: Whole, owner_token: str
) -> None:
    async with client(site, owner_token) as owner:
        declared = (await owner.post("/v1/owner/declarations", json=MANIFEST)).json()
        made = await owner.post("/v1/owner/connections", json={"connector_key": "plays"})
        connection_id = made.json()["connection_id"]
        async with client(site, token_for(site, connection_id)) as collector:
            await push(collector, RUN)
            await push(collector, RUN)
            state = (await collector.get("/v1/state/plays")).json()
        listed = (await owner.get("/v1/streams/plays/records?order=asc")).json()
        described = await owner.get("/v1/streams/plays")
        limited = await owner.get(
            "/v1/streams/plays/records?connector_instance_id=" + connection_id + "&count=exact"
        )
    assert described.json()["display"] == {"label": "Plays"}, described.text
    assert "/streams/0/semantics" in [each["path"] for each in declared["adapted"]]
    assert "/capabilities/proven" in declared["kept"]
    assert sorted(row["data"]["id"] for row in listed["data"]) == ["play1", "play2", "play3"]
    assert limited.json()["meta"]["count"]["value"] == 3
    assert state["state"] == {"plays": {"page": 3}}


@pytest.mark.anyio
async def test_a_collector_does_nothing_but_write_to_its_connection(site: Whole) -> None:
    async with client(site, token_for(site, HOME)) as collector:
        refused = [
            await collector.get("/v1/schema"),
            await collector.get("/v1/streams/messages/records"),
            await collector.get("/v1/search?q=lunch"),
            await collector.get("/v1/owner/connections"),
            await collector.get("/v1/owner/export"),
            await collector.post("/v1/owner/declarations", json=MANIFEST),
            await collector.delete("/v1/streams/messages/records?confirm=messages"),
            await collector.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ]
        elsewhere = await collector.get("/v1/state/mail?connection_id=cin_other")
        own = await collector.get(f"/v1/state/mail?connection_id={HOME}")
    assert {answer.status_code for answer in refused} == {403}
    assert elsewhere.json()["error"]["code"] == "connection_not_found"
    assert own.status_code == 200


@pytest.mark.anyio
async def test_a_collector_uploads_files_without_naming_its_connection(site: Whole) -> None:
    path = "/v1/blobs?stream=messages&record_key=m1"
    async with client(site, token_for(site, HOME)) as collector:
        uploaded = await collector.post(path, content=b"a picture")
        elsewhere = await collector.post(f"{path}&connection_id=cin_other", content=b"a picture")
    assert uploaded.status_code == 201
    assert elsewhere.json()["error"]["code"] == "connection_not_found"
    store = site.server.stores.records
    assert store.blob_upload(HOME, uploaded.json()["blob_id"]) is not None


@pytest.mark.anyio
async def test_what_imports_remember_is_no_bookmark(site: Whole) -> None:
    store = site.server.stores.records
    receipt: dict[str, Any] = {"name": "secret.mbox", "imported_at": STARTED, "streams": {}}
    older: dict[str, Any] = {"import": {"receipts": [receipt], "places": {}}}
    path = f"/v1/state/mail?connection_id={HOME}"
    now: dict[str, Any] = {"messages": None, "~messages": older["import"]}
    for held in ({"messages": older}, now):
        store.put_state(HOME, held, 1)
        async with client(site, token_for(site, HOME)) as collector:
            shown = await collector.get(path)
            forged = await collector.put(path, json={"state": {"messages": {"import": {}}}})
            named = await collector.put(path, json={"state": {"~messages": {}}})
            put = await collector.put(path, json={"state": {"messages": {"since": 7}}})
        assert shown.json()["state"] == {}
        assert forged.json()["error"]["param"] == "state.messages"
        assert named.json()["error"]["code"] == "not_found"
        assert put.json()["state"] == {"messages": {"since": 7}}
        assert receipts_of(store, HOME) == [receipt]
    ImportMemory(store, HOME, "messages").finish("f", receipt, 2)
    assert len(receipts_of(store, HOME)) == 2
    assert store.state(HOME).state["messages"] == {"since": 7}


@pytest.mark.anyio
async def test_an_import_that_ends_while_a_bookmark_is_put_keeps_its_receipt(
    site: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = site.server.stores.records
    memory = ImportMemory(store, HOME, "messages")
    receipt: dict[str, Any] = {"name": "a.mbox", "imported_at": STARTED, "streams": {}}
    memory.finish("f", receipt, 1)
    before = store.state(HOME)
    memory.finish("g", receipt, 2)

    def outdated(*_: object) -> StreamState:
        return before

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "state", outdated)
        async with client(site, token_for(site, HOME)) as collector:
            path = f"/v1/state/mail?connection_id={HOME}"
            put = await collector.put(path, json={"state": {"messages": {"since": 7}}})
    assert put.json()["state"] == {"messages": {"since": 7}}
    assert len(receipts_of(store, HOME)) == 2


@pytest.mark.anyio
async def test_a_revoked_collector_is_refused_with_the_next_request(site: Whole) -> None:
    store = site.server.stores.authorization
    async with client(site, token_for(site, HOME)) as collector:
        before = await collector.get("/v1/state/mail")
        [held] = collector_tokens(store)
        revoke_collector_token(store, held.reference, SERVER, site.clock())
        after = await collector.get("/v1/state/mail")
    assert (before.status_code, after.status_code) == (200, 401)
    assert collector_tokens(store) == ()


@pytest.mark.anyio
async def test_a_collector_reads_why_its_lines_were_refused_and_no_other_s(
    site: Whole, owner_token: str
) -> None:
    bad = {"data": {"id": 7}, "emitted_at": STARTED}
    async with client(site, owner_token) as owner:
        await owner.post("/v1/owner/declarations", json=MANIFEST)
        ids = [
            (await owner.post("/v1/owner/connections", json={"connector_key": "plays"})).json()
            for _ in range(2)
        ]
        one, other = (each["connection_id"] for each in ids)
        async with client(site, token_for(site, one)) as collector:
            for run in ("a", "b"):
                await collector.post(
                    f"/v1/ingest/plays?run_id={run}",
                    content=json.dumps(bad).encode(),
                    headers={"Content-Type": "application/x-ndjson"},
                )
            page = (await collector.get("/v1/rejections?limit=1")).json()
            rest = (
                await collector.get(
                    "/v1/rejections", params={"limit": 1, "cursor": page["next_cursor"]}
                )
            ).json()
            foreign = await collector.get(f"/v1/rejections?connection_id={other}")
        async with client(site, token_for(site, other)) as another:
            nothing = (await another.get("/v1/rejections")).json()
        owned = (await owner.get(f"/v1/owner/connections/{one}/rejections")).json()
        named = (await owner.get(f"/v1/rejections?connection_id={one}")).json()
    seen = [row["run_id"] for row in (*page["data"], *rest["data"])]
    assert (seen, rest["has_more"], nothing["data"]) == (["b", "a"], False, [])
    assert foreign.json()["error"]["code"] == "connection_not_found"
    assert owned["data"] == named["data"] == [*page["data"], *rest["data"]]
    assert page["data"][0]["code"] == "record_schema_violation"
