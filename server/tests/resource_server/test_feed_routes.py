"""Feeds over `/v1`: only the owner's programs ask for a run, and no answer waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from personal_server.domain.grant import StreamGrant
from personal_server.feeds.feed_ledger import LookTerms, decide
from personal_server.feeds.feed_states import begin
from personal_server.feeds.watched_folders import FolderLayout, SeenItem
from personal_server.storage.feed_rows import FeedItemRow, FeedRow
from personal_server.storage.sql.care.feeds import SqlFeeds
from server.tests.feeds.test_feed_states import a_feed
from server.tests.resource_server.living import NOW_NS, Living
from tests.new_files import new_file

pytestmark = pytest.mark.anyio
OTHERS = ("client", "package")


@dataclass
class Fed:
    """A server whose feeds lie in a database."""

    living: Living
    feeds: SqlFeeds

    async def run(self, feed_id: str = "fee_1", token: str = "owner") -> httpx2.Response:  # noqa: S107 (a fake)
        async with self.living.client(token) as client:
            return await client.post(f"/v1/feeds/{feed_id}/run")

    def feed(self) -> FeedRow:
        return self.feeds.feeds()[0]


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    with closing(new_file(tmp_path / "records.db")) as database:
        feeds = SqlFeeds(database, "owner")
        made = Fed(Living(feeds=feeds), feeds)
        made.feeds.add_feed(a_feed(due_at_ns=NOW_NS + 10**15))
        yield made


async def test_a_run_is_due_at_once_and_the_answer_does_not_wait(fed: Fed) -> None:
    answer = await fed.run()
    body = answer.json()
    assert answer.status_code == 202
    assert (body["object"], body["feed_id"], body["state"]) == ("feed", "fee_1", "waiting")
    assert (body["last_success"], body["failures"]) == (None, 0)
    assert fed.feed().due_at_ns <= fed.living.clock()
    assert body["next_run"] is not None
    assert "/home/ada" not in answer.text


async def test_one_that_runs_is_answered_as_it_is(fed: Fed) -> None:
    fed.feeds.change_feed("fee_1", lambda each: begin(each, "other", fed.living.clock()))
    before = fed.feed()
    answer = await fed.run()
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    assert answer.json()["next_run"] is None
    assert fed.feed() == before


async def test_one_that_is_paused_and_one_that_is_not_there_are_refused(fed: Fed) -> None:
    assert (await fed.run("fee_2")).json()["error"]["code"] == "not_found"
    fed.feeds.change_feed("fee_1", lambda each: a_feed(feed_id=each.feed_id, state="paused"))
    answer = await fed.run()
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "invalid_state")


@pytest.mark.parametrize("feed_id", ["fee_1", "fee_2"])
@pytest.mark.parametrize("token", OTHERS)
async def test_tokens_of_apps_are_refused_whether_it_is_there_or_not(
    fed: Fed, token: str, feed_id: str
) -> None:
    await fed.living.declare_journal()
    connection_id = await fed.living.connect()
    fed.living.grant("client", StreamGrant("entries", (connection_id,), ("id",)))
    fed.living.package("package", "client")
    before = fed.feed()
    answer = await fed.run(feed_id, token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_error")
    async with fed.living.client(token) as client:
        listed = await client.get("/v1/feeds")
    assert (listed.status_code, listed.json()["error"]["code"]) == (403, "permission_error")
    assert fed.feed() == before


async def test_what_was_rejected_is_read_again(fed: Fed) -> None:
    line = FeedItemRow(
        feed_id="fee_1",
        item="a.zip",
        mark="m",
        state="rejected",
        code="export_not_recognized",
        reader="1",
        at_ns=0,
        since_ns=0,
    )
    fed.feeds.keep_feed_items("fee_1", [line])
    seen = SeenItem("a.zip", "m", 0, 1, is_unfinished=False)
    terms = LookTerms("fee_1", FolderLayout.EXPORTS, NOW_NS, "1")

    def taken() -> list[str]:
        known = {each.item: each for each in fed.feeds.feed_items("fee_1")}
        return [each.name for each in decide([seen], known, terms).taken]

    assert taken() == []
    await fed.run()
    assert taken() == ["a.zip"]


async def test_feeds_are_listed_a_page_at_a_time(fed: Fed) -> None:
    fed.feeds.add_feed(a_feed(feed_id="fee_2", name="Mail", place="/mail", state="needs_you"))
    async with fed.living.client() as owner:
        first = (await owner.get("/v1/feeds?limit=1")).json()
        rest = (await owner.get(first["links"]["next"])).json()
    assert [each["feed_id"] for each in (*first["data"], *rest["data"])] == ["fee_1", "fee_2"]
    assert rest["data"][0]["next_run"] is None
    assert [each["data"][0]["stale"] for each in (first, rest)] == [None, "needs_you"]


async def test_without_feeds_the_list_is_empty() -> None:
    living = Living()
    async with living.client() as owner:
        assert (await owner.get("/v1/feeds")).json()["data"] == []
        assert (await owner.post("/v1/feeds/fee_1/run")).json()["error"]["code"] == "not_found"
