"""The read routes behind the real frame: headers, validators, costs, who reads what."""

from time import perf_counter

import httpx2
import pytest

from personal_server.reading.identification import Identified
from server.tests.resource_server.conftest import Bench, MakeBench
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import LIST, OWNER, client, furnished, stream_grant

TOKENS = {
    "client": Identified(client(stream_grant(), stream_grant("attachments"))),
    "owner": Identified(OWNER),
    "only": Identified(client(stream_grant(only={"pinned": (True,)}))),
    "timed": Identified(client(stream_grant(since="2026-01-01T00:00:00Z"))),
}


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    door = Door(furnished())
    return make_bench(*door.table.routes, tokens=TOKENS, store=door.store)


async def get(bench: Bench, target: str, token: str = "client", **headers: str) -> httpx2.Response:  # noqa: S107 (a fake)
    async with bench.client(token) as caller:
        return await caller.get(target, headers=headers)


@pytest.mark.anyio
@pytest.mark.parametrize("target", ["/v1/schema", "/v1/streams/entries"])
async def test_descriptions_carry_a_validator(bench: Bench, target: str) -> None:
    first = await get(bench, target)
    etag = first.headers["etag"]
    assert etag.startswith('W/"')
    again = await get(bench, target, **{"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["cache-control"] == "private, no-cache"
    other = await get(bench, f"{target}?connection_id=cin_diary0000000000")
    assert other.headers["etag"] != etag


@pytest.mark.anyio
async def test_lists_are_never_stored(bench: Bench) -> None:
    reply = await get(bench, LIST)
    assert reply.headers["cache-control"] == "private, no-store"
    assert "etag" not in reply.headers
    assert reply.headers["access-control-allow-origin"] == "*"


@pytest.mark.anyio
async def test_an_unchanged_schema_consumes_no_quota_and_leaves_no_entry(bench: Bench) -> None:
    etag = (await get(bench, "/v1/schema")).headers["etag"]
    await get(bench, "/v1/schema", **{"If-None-Match": etag})
    assert bench.log.entries == []


@pytest.mark.anyio
async def test_a_read_is_entered_once_per_source(bench: Bench) -> None:
    await get(bench, f"{LIST}?expand=attachments&connection_id=cin_diary0000000000")
    entries = {e.stream: (e.record_count, e.outcome) for e in bench.log.entries}
    assert entries == {"entries": (3, "served"), "attachments": (10, "served")}


@pytest.mark.anyio
async def test_a_refused_read_is_entered_as_denied(bench: Bench) -> None:
    await get(bench, "/v1/streams/volumes/records")
    assert [(e.outcome, e.error_code) for e in bench.log.entries] == [
        ("denied", "grant_stream_not_allowed")
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("target", "cost"),
    [
        (LIST, 1),
        (f"{LIST}?count=exact", 2),
        (f"{LIST}?window=exact", 2),
        (f"{LIST}?count=exact&window=exact", 2),
        ("/v1/streams/entries/aggregate?metric=count", 3),
        ("/v1/search?q=rain", 3),
        ("/v1/search/semantic?q=rain", 3),
        ("/v1/schema", 1),
    ],
)
async def test_reads_cost_what_they_cost(bench: Bench, target: str, cost: int) -> None:
    headers = (await get(bench, target)).headers
    assert int(headers["ratelimit-limit"]) - int(headers["ratelimit-remaining"]) == cost


@pytest.mark.anyio
async def test_head_answers_like_get_without_a_body(bench: Bench) -> None:
    async with bench.client("owner") as caller:
        reply = await caller.head("/v1/schema")
    assert (reply.status_code, reply.content) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_reads_are_read_only(bench: Bench, method: str) -> None:
    async with bench.client("owner") as caller:
        reply = await caller.request(method, "/v1/streams")
    assert reply.status_code == 405
    assert reply.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "target",
    [
        "/v1/search?q=rain",
        "/v1/search?q=rain&sort=newest",
        "/v1/streams/entries/aggregate?metric=count&q=rain",
    ],
)
@pytest.mark.parametrize(("token", "seconds"), [("only", 0.02), ("timed", 0.005)])
async def test_what_was_looked_for_among_hidden_records_is_answered_at_a_step(
    bench: Bench, target: str, token: str, seconds: float
) -> None:
    await get(bench, target)
    begun = perf_counter()
    reply = await get(bench, target, token)
    assert reply.status_code == 200
    assert perf_counter() - begun >= seconds
