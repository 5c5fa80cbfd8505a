"""The warning that newer records may be missing: from the runs of what an answer used alone."""

from __future__ import annotations

import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.grant import StreamGrant
from personal_server.domain.stored import CollectionRun, RunStatus
from server.tests.resource_server.living import Living

pytestmark = pytest.mark.anyio
SINCE, TRIED = "2026-03-14T10:40:00.000Z", "2026-03-14T11:00:00.000Z"
READS = ("streams/entries/records", "streams/entries/aggregate?metric=count", "search?q=rain")


def noted(living: Living, connection_id: str, status: RunStatus, at: str) -> None:
    run = CollectionRun("fee_1", status, instant_ns(at) or 0)
    living.store.record_run(connection_id, run)


async def read(living: Living, path: str) -> tuple[list[dict[str, object]], str]:
    async with living.client("client") as client:
        answer = await client.get(f"/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()["meta"]["warnings"], answer.text


async def two_diaries() -> tuple[Living, str, str]:
    """A server with two accounts of a source, of which an app reads the first."""
    living = Living()
    await living.declare_journal()
    ours, others = await living.connect(name="Ours"), await living.connect(name="Other")
    for each in (ours, others):
        entry = {"id": "e1", "title": "Rain", "created_at": "2026-03-01T00:00:00Z"}
        await living.ingest(each, "entries", [entry])
    living.grant("client", StreamGrant("entries", (ours,), ("id", "title", "created_at")))
    return living, ours, others


@pytest.mark.parametrize("path", READS)
async def test_answers_say_since_when_newer_records_may_be_missing(path: str) -> None:
    living, ours, _ = await two_diaries()
    noted(living, ours, RunStatus.SUCCEEDED, SINCE)
    assert (await read(living, path))[0] == []
    noted(living, ours, RunStatus.FAILED, TRIED)
    ((warning,), text) = await read(living, path)
    assert (warning["code"], warning["detail"]) == (
        "newer_missing",
        {"as_of": SINCE, "last_tried_at": TRIED},
    )
    assert "fee_1" not in text
    noted(living, ours, RunStatus.SUCCEEDED, TRIED)
    assert (await read(living, path))[0] == []


@pytest.mark.parametrize("path", [*READS, "schema"])
async def test_nothing_tells_of_the_runs_of_accounts_that_are_not_granted(path: str) -> None:
    living, ours, others = await two_diaries()
    noted(living, ours, RunStatus.SUCCEEDED, SINCE)
    before = await read(living, path)
    noted(living, others, RunStatus.SUCCEEDED, SINCE)
    noted(living, others, RunStatus.FAILED, TRIED)
    assert await read(living, path) == before
