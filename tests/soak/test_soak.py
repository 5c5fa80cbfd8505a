"""Sixteen callers at once on one SQLite file: writers beside readers, and more than it can take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from personal_server.domain.grant import StreamGrant
from personal_server.resource_server.quotas import LimitRules
from personal_server.web.call_capacity import Capacity
from server.tests.resource_server.living import Living
from server.tests.storage.conftest import sqlite_store

pytestmark = pytest.mark.anyio

STABLE = 300
ROUNDS = 6
FIELDS = ("id", "title", "created_at")
RECORDS = "/v1/streams/entries/records"


def entry(name: str, title: str = "Rain") -> dict[str, Any]:
    return {"id": name, "title": title, "created_at": "2026-03-01T00:00:00Z"}


async def furnished(living: Living) -> str:
    await living.declare_journal()
    cid = await living.connect()
    await living.ingest(cid, "entries", [entry(f"stable_{n:03}") for n in range(STABLE)])
    living.grant("client", StreamGrant("entries", (cid,), FIELDS))
    return cid


async def walk(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    path: str | None = f"{RECORDS}?limit=100"
    while path:
        page = (await client.get(path)).json()
        records += page["data"]
        path = page["links"]["next"]
    return records


async def follow(client: httpx2.AsyncClient, bookmark: str, copy: dict[str, Any]) -> str:
    path: str | None = f"{RECORDS}?changes_since={bookmark}&limit=100"
    page: dict[str, Any] = {}
    while path:
        page = (await client.get(path)).json()
        for item in page["data"]:
            if item.get("deleted"):
                copy.pop(item["id"], None)
            else:
                copy[item["id"]] = item["data"]
        path = page["links"]["next"]
    return page["next_changes_since"]


async def test_readers_stay_exact_beside_writers(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        living = Living(store=store, checked=False)
        cid = await furnished(living)
        stable = {f"stable_{n:03}" for n in range(STABLE)}

        async def write(writer: int) -> None:
            for n in range(ROUNDS):
                names = [f"moving_{writer}_{k}" for k in range(20)]
                await living.ingest(cid, "entries", [entry(name, f"v{n}") for name in names])
                async with living.client() as owner:
                    gone = f"{RECORDS}/{names[n % 20]}?connection_id={cid}"
                    assert (await owner.delete(gone)).status_code == 204

        async def read() -> None:
            async with living.client("client") as client:
                for _ in range(2):
                    seen = [r["id"] for r in await walk(client) if r["id"].startswith("stable")]
                    assert len(seen) == STABLE
                    assert set(seen) == stable

        async def keep_up() -> None:
            copy: dict[str, Any] = {}
            async with living.client("client") as client:
                bookmark = "beginning"
                for _ in range(4):
                    bookmark = await follow(client, bookmark, copy)
                copies.append((bookmark, copy))

        copies: list[tuple[str, dict[str, Any]]] = []
        async with anyio.create_task_group() as tasks:
            for writer in range(3):
                tasks.start_soon(write, writer)
            for _ in range(9):
                tasks.start_soon(read)
            for _ in range(4):
                tasks.start_soon(keep_up)
        async with living.client("client") as client:
            truth = {record["id"]: record["data"] for record in await walk(client)}
            for bookmark, copy in copies:
                await follow(client, bookmark, copy)
                assert copy == truth


async def test_too_many_calls_are_refused_and_the_server_recovers(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        living = Living(
            store=store,
            capacity=Capacity(at_once=2, waiting=6),
            rules=LimitRules(0, 0, 4, 0, 0),
            checked=False,
        )
        await furnished(living)
        statuses: list[int] = []

        async def ask(token: str) -> None:
            async with living.client(token) as client:
                for _ in range(5):
                    answer = await client.get(f"{RECORDS}?limit=100&count=exact")
                    statuses.append(answer.status_code)
                    assert answer.status_code == 200 or "retry-after" in answer.headers

        async with anyio.create_task_group() as tasks:
            for n in range(32):
                tasks.start_soon(ask, "client" if n % 2 else "owner")
        assert set(statuses) <= {200, 429, 503}
        assert statuses.count(200) > 0
        assert statuses.count(200) < len(statuses)
        async with living.client("client") as client:
            assert (await client.get(RECORDS)).status_code == 200
