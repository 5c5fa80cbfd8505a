"""Waits at places: one process of several waits, and what it is told makes a run due."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from personal_server.feeds import feed_states
from personal_server.feeds.feed_states import HURRY_NS, LEASE_NS, SIGN_IN_REFUSED
from personal_server.feeds.feed_watches import FIRST_REST_NS, NEVER_TOLD, FeedWatches
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.sql.care.feeds import SqlFeeds
from server.tests.app.http_server.served import until
from server.tests.console.browsing import SECOND, Clock
from server.tests.feeds.test_feed_states import a_feed
from tests.new_files import new_file


@dataclass
class Waiting:
    """A watch of the test, which ends as it says."""

    code: str = ""
    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    changed: Callable[[], None] = lambda: None

    def wait(self, feed: FeedRow, changed: Callable[[], None]) -> str:
        self.changed = changed
        self.begun.set()
        self.ended.wait(60)
        return self.code

    def end(self) -> None:
        self.ended.set()


@dataclass
class Places:
    """Feeds, and the watches that were begun."""

    store: SqlFeeds
    clock: Clock = field(default_factory=Clock)
    begun: list[Waiting] = field(default_factory=list[Waiting])

    def watches(self, holder: str = "one") -> FeedWatches:
        return FeedWatches(self.store, {"folder": self.made}, self.clock, holder)

    def made(self) -> Waiting:
        self.begun.append(Waiting())
        return self.begun[-1]

    @property
    def feed(self) -> FeedRow:
        return self.store.feeds()[0]

    def change(self, **members: object) -> None:
        self.store.change_feed("fee_1", lambda each: replace(each, **members))

    def lose(self, watches: FeedWatches, code: str) -> None:
        """The last one ends, and the next turn finds it so."""
        self.begun[-1].code = code
        self.begun[-1].end()
        until(lambda: not any(each.name == "watch fee_1" for each in threading.enumerate()))
        watches.keep(self.store.feeds())


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    with closing(new_file(tmp_path / "records.db")) as database:
        found = Places(SqlFeeds(database, "owner"))
        due_ns = found.clock() + 3600 * SECOND
        found.store.add_feed(a_feed(due_at_ns=due_ns, succeeded_at_ns=found.clock()))
        yield found
        for each in found.begun:
            each.end()


def test_a_change_makes_a_run_due_soon_and_nothing_else(places: Places) -> None:
    watches = places.watches()
    for _ in range(3):
        watches.keep(places.store.feeds())
    (only,) = places.begun
    assert only.begun.wait(60)
    before = places.feed
    watches.keep(places.store.feeds())
    assert places.feed == before
    only.changed()
    places.change(state="running")
    watches.keep(places.store.feeds())  # what came while it ran is not forgotten
    places.change(state="waiting")
    watches.keep(places.store.feeds())
    assert places.feed.due_at_ns == places.clock() + HURRY_NS
    places.change(due_at_ns=places.clock() + 3600 * SECOND)
    watches.keep(places.store.feeds())
    assert places.feed.due_at_ns > places.clock() + HURRY_NS


def test_of_two_processes_one_waits_and_after_its_lease_the_other(places: Places) -> None:
    one, other = places.watches(), places.watches("other")
    for _ in range(4):
        one.keep(places.store.feeds())
        other.keep(places.store.feeds())
        places.clock.now_ns += LEASE_NS // 3
    assert (len(places.begun), places.feed.watched_by) == (1, "one")
    places.clock.now_ns += LEASE_NS
    other.keep(places.store.feeds())
    assert (len(places.begun), places.feed.watched_by) == (2, "other")
    one.keep(places.store.feeds())  # it slept, and sees that another waits
    assert places.begun[0].ended.is_set()


@pytest.mark.parametrize("members", [{"state": "paused"}, {"code": "mailbox_unreachable"}])
def test_nobody_waits_where_nothing_is_to_be_fetched(
    places: Places, members: dict[str, object]
) -> None:
    watches = places.watches()
    watches.keep(places.store.feeds())
    places.change(**members)
    watches.keep(places.store.feeds())
    assert places.begun[0].ended.is_set()
    watches.keep(places.store.feeds())
    assert len(places.begun) == 1


def test_a_watch_that_was_lost_begins_after_a_pause_and_a_run_that_succeeded(
    places: Places,
) -> None:
    watches = places.watches()
    watches.keep(places.store.feeds())
    places.clock.now_ns += SECOND
    places.lose(watches, "mailbox_unreachable")
    places.clock.now_ns += FIRST_REST_NS
    watches.keep(places.store.feeds())
    assert len(places.begun) == 1
    places.change(succeeded_at_ns=places.clock())
    watches.keep(places.store.feeds())
    assert len(places.begun) == 2
    places.lose(watches, NEVER_TOLD)
    places.clock.now_ns += 12 * 3600 * SECOND
    places.change(succeeded_at_ns=places.clock())
    watches.keep(places.store.feeds())
    assert len(places.begun) == 2


def test_a_server_that_starts_looks_once_and_then_waits(places: Places) -> None:
    places.clock.now_ns += 60 * SECOND
    watches = places.watches()
    watches.keep(places.store.feeds())
    assert (places.begun, places.feed.due_at_ns) == ([], places.clock())
    places.change(due_at_ns=places.clock() + 3600 * SECOND)
    watches.keep(places.store.feeds())
    assert places.feed.due_at_ns > places.clock()  # once: what fails rests as it does
    places.change(succeeded_at_ns=places.clock())
    watches.keep(places.store.feeds())
    assert len(places.begun) == 1


def test_a_place_that_refuses_who_waits_is_not_asked_again(places: Places) -> None:
    watches = places.watches()
    watches.keep(places.store.feeds())
    places.lose(watches, SIGN_IN_REFUSED)
    feed = places.feed
    assert (feed.state, feed.code, feed.trouble) == ("needs_you", SIGN_IN_REFUSED, "needs_you")
    assert feed_states.may_begin(feed, places.clock() + 10**18) is False


def test_a_stop_ends_all_at_once_and_the_next_process_waits_at_once(places: Places) -> None:
    watches = places.watches()
    watches.keep(places.store.feeds())
    watches.stop()
    assert places.begun[0].ended.is_set()
    watches.keep(places.store.feeds())  # one turn more was under way
    assert (len(places.begun), places.feed.watched_by) == (1, None)
    places.watches("other").keep(places.store.feeds())
    assert (len(places.begun), places.feed.watched_by) == (2, "other")


def test_who_sees_that_another_waits_writes_nothing(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.watches().keep(places.store.feeds())

    def changed(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(SqlFeeds, "change_feed", changed)
    places.watches("other").keep(places.store.feeds())
    assert len(places.begun) == 1
