"""The engine with runs of the test: what each end of a run leaves, and that none costs another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pdpp_kernel.errors import InvalidState, StorageUnavailable
from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from personal_server.feeds import feed_engine, feed_states
from personal_server.feeds.feed_engine import FeedEngine
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.feed_trouble import FEED_RECOVERED, LEAST_ARRIVALS
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.sql.care.feeds import SqlFeeds
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.logs.authorization_transaction import SqlAuthorizationTransaction
from server.tests.app.http_server.served import until
from server.tests.console.browsing import SECOND, Clock
from server.tests.feeds.test_feed_states import a_feed
from tests.new_files import new_file

Ends = Callable[[FeedRow], RunResult]


@dataclass
class Bench:
    """An engine, its store and what it was told."""

    database: Database
    clock: Clock = field(default_factory=Clock)
    accounts: set[str] = field(default_factory=set[str])
    succeeded: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    noted: list[int] = field(default_factory=list[int])
    ran: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    ends: Ends = lambda _: RunResult(seen=1)

    def __post_init__(self) -> None:
        self.store = SqlFeeds(self.database, "owner")
        self.engine = self.an_engine("one")

    @property
    def troubles(self) -> list[str | None]:
        """What the owner's log says, in order."""
        with self.database.read() as session:
            rows = SqlAuthorizationTransaction(session, "owner").rows(
                AuditRow, order=AuditRow.event_id
            )
        return [None if row.event == FEED_RECOVERED else str(row.detail["rule"]) for row in rows]

    def an_engine(self, holder: str) -> FeedEngine:
        return FeedEngine(
            self.store, {"folder": self}, self, self.clock, lambda size: b"\x80" * size, holder
        )

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        self.ran.append((feed.feed_id, retries))
        return self.ends(feed)

    def usable(self) -> frozenset[str]:
        return frozenset(self.accounts)

    def note_run(
        self, feed_id: str, connection_ids: Iterable[str], at_ns: int, *, succeeded: bool
    ) -> None:
        (self.succeeded if succeeded else self.failed).extend(connection_ids)
        self.noted.append(at_ns)

    def feed(self, feed_id: str = "fee_1") -> FeedRow:
        return next(each for each in self.store.feeds() if each.feed_id == feed_id)

    def work(self) -> None:
        """One turn, and the end of all that it began."""
        self.engine.work()
        self.engine.stop()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(new_file(tmp_path / "records.db")) as database:
        found = Bench(database)
        found.store.add_feed(a_feed(due_at_ns=found.clock()))
        yield found


def failing(code: str, *, needs_owner: bool = False) -> Ends:
    return lambda _: RunResult(code=code, needs_owner=needs_owner)


def raising(error: Exception) -> Ends:
    def ends(feed: FeedRow) -> RunResult:
        raise error

    return ends


def test_a_feed_runs_when_it_is_due_and_then_waits(bench: Bench) -> None:
    bench.accounts = {"cin_a"}
    bench.ends = lambda _: RunResult(seen=2, commands=1, connection_ids={"cin_a"}, reached_ns=7)
    bench.work()
    bench.work()
    assert bench.ran == [("fee_1", False)]
    feed = bench.feed()
    assert (feed.state, feed.connection_ids, feed.reached) == ("waiting", ("cin_a",), 7)
    assert (feed.holder, feed.succeeded_at_ns) == (None, bench.clock())
    assert bench.succeeded == ["cin_a"]
    bench.clock.now_ns = feed.due_at_ns
    bench.work()
    assert len(bench.ran) == 2


def test_failures_rest_longer_each_time_and_a_success_ends_them(bench: Bench) -> None:
    bench.ends, pauses, began = failing("folder_gone"), list[int](), bench.clock()
    feed = bench.feed()
    for _ in range(12):
        bench.work()
        feed = bench.feed()
        pauses.append((feed.due_at_ns - bench.clock()) // SECOND)
        bench.clock.now_ns = feed.due_at_ns
    assert pauses[:3] == [63, 126, 252]
    assert pauses[-1] == pauses[-2] <= 6 * 3600 * 1.1
    assert (feed.state, feed.code, feed.failures) == ("resting", "folder_gone", 12)
    assert feed.failing_since_ns == began
    bench.ends = lambda _: RunResult(seen=1)
    bench.work()
    feed = bench.feed()
    assert (feed.state, feed.code, feed.failures, feed.failing_since_ns) == (
        "waiting",
        None,
        0,
        None,
    )


def test_a_machine_that_slept_for_a_week_runs_each_feed_once(bench: Bench) -> None:
    for number in (2, 3):
        name = f"fee_{number}"
        bench.store.add_feed(a_feed(feed_id=name, name=name, place=name, due_at_ns=bench.clock()))
    bench.work()
    slept_ns = 7 * 86_400 * SECOND
    bench.clock.now_ns += slept_ns
    before = bench.clock()
    bench.work()
    bench.work()  # what it missed is not made up for
    ran = [feed_id for feed_id, _ in bench.ran]
    assert sorted(ran) == sorted(2 * ["fee_1", "fee_2", "fee_3"])
    assert all(bench.feed(each).due_at_ns > before for each in set(ran))
    assert bench.troubles == []  # nobody is told of a week in which nothing was looked at


@pytest.mark.parametrize("jump_days", [-400, -1, 1, 400])
def test_a_clock_that_jumps_while_a_feed_runs_puts_no_run_off_for_long(
    bench: Bench, jump_days: int
) -> None:
    def jumping(_: FeedRow) -> RunResult:
        bench.clock.now_ns += jump_days * 86_400 * SECOND
        return RunResult(seen=1)

    bench.ends = jumping
    bench.work()
    assert (bench.feed().state, bench.feed().code) == (FeedState.WAITING, None)
    bench.ends = lambda _: RunResult(seen=1)
    bench.clock.now_ns += 7 * 3_600 * SECOND
    bench.work()
    assert len(bench.ran) == 2
    bench.clock.now_ns -= jump_days * 86_400 * SECOND  # and is put right
    bench.clock.now_ns += 7 * 3_600 * SECOND
    bench.work()
    assert len(bench.ran) == 3


def test_one_that_needs_its_owner_waits_for_a_word(bench: Bench) -> None:
    bench.ends = failing("folder_unreadable", needs_owner=True)
    bench.work()
    assert bench.feed().state == FeedState.NEEDS_YOU
    bench.clock.now_ns += 10**18
    bench.work()
    assert len(bench.ran) == 1
    bench.engine.resume("fee_1")
    bench.work()
    assert len(bench.ran) == 2


def test_what_was_erased_does_not_come_back_by_itself(bench: Bench) -> None:
    bench.store.change_feed("fee_1", lambda feed: replace(feed, connection_ids=("cin_gone",)))
    bench.work()
    assert (bench.feed().state, bench.feed().code) == ("needs_you", "account_gone")
    assert bench.ran == []
    assert bench.engine.resume("fee_1").connection_ids == ()
    bench.work()
    assert len(bench.ran) == 1


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (PutOff(), "waiting", None),
        (StorageUnavailable("no"), "resting", "storage_unavailable"),
        (ZeroDivisionError(), "resting", "internal_error"),
    ],
)
def test_whatever_a_run_raises_it_gives_the_lease_back(
    bench: Bench, error: Exception, state: str, code: str | None
) -> None:
    bench.ends = raising(error)
    bench.work()
    assert (bench.feed().state, bench.feed().code, bench.feed().holder) == (state, code, None)


def test_a_slow_feed_delays_no_other_and_few_run_at_once(bench: Bench) -> None:
    go_on = threading.Event()

    def slow(feed: FeedRow) -> RunResult:
        if feed.feed_id == "fee_1":
            go_on.wait(60)
        return RunResult(seen=1)

    bench.ends = slow
    for number in range(2, 9):
        name = f"feed {number}"
        bench.store.add_feed(
            a_feed(feed_id=f"fee_{number}", name=name, place=name, due_at_ns=bench.clock())
        )
    for _ in range(3):
        bench.engine.work()
        assert sum(each.state == "running" for each in bench.store.feeds()) <= 4
        for thread in threading.enumerate():
            if thread.name.startswith("fee_") and thread.name != "fee_1":
                thread.join()
    assert {each for each, _ in bench.ran} == {f"fee_{number}" for number in range(1, 9)}
    go_on.set()
    bench.engine.stop()


def test_another_process_leaves_a_running_feed_alone_until_its_lease_ends(bench: Bench) -> None:
    bench.store.change_feed("fee_1", lambda feed: feed_states.begin(feed, "killed", bench.clock()))
    bench.work()
    with pytest.raises(InvalidState):
        bench.engine.run("fee_1")
    bench.clock.now_ns += feed_states.LEASE_NS
    bench.work()
    assert bench.ran == [("fee_1", False)]


def test_a_pause_while_it_runs_stays(bench: Bench) -> None:
    def paused(feed: FeedRow) -> RunResult:
        bench.store.change_feed("fee_1", feed_states.pause)
        return RunResult(seen=1)

    bench.ends = paused
    bench.work()
    assert bench.feed().state == FeedState.PAUSED
    assert bench.store.feed_runs("fee_1", 1)[0].outcome == "succeeded"


def test_a_lease_is_renewed_while_a_run_lasts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_engine, "RENEW_SECONDS", 0.01)
    begun, renewed = bench.clock(), threading.Event()

    def lasting(feed: FeedRow) -> RunResult:
        bench.clock.now_ns += feed_states.LEASE_NS
        while not renewed.is_set():
            if (bench.feed().held_until_ns or 0) >= begun + 2 * feed_states.LEASE_NS:
                renewed.set()
        return RunResult(seen=1)

    bench.ends = lasting
    bench.work()
    assert renewed.is_set()


def test_what_still_settles_is_looked_at_soon(bench: Bench) -> None:
    bench.ends = lambda _: RunResult(seen=1, settling=1)
    bench.work()
    assert bench.feed().due_at_ns - bench.clock() == 5 * SECOND


def test_a_failed_run_is_a_failed_try_of_the_accounts_that_are_there(bench: Bench) -> None:
    bench.accounts = {"cin_a"}
    bench.ends = lambda _: RunResult(connection_ids={"cin_a"})
    bench.work()
    bench.ends, bench.clock.now_ns = failing("mailbox_unreachable"), bench.feed().due_at_ns
    bench.work()
    assert (bench.succeeded, bench.failed) == (["cin_a"], ["cin_a"])
    bench.accounts, bench.clock.now_ns = set(), bench.feed().due_at_ns
    bench.work()
    assert bench.feed().code == "account_gone"
    assert bench.failed == ["cin_a"]


@pytest.mark.parametrize("every", [30, 60, 3600])
def test_a_run_between_two_that_are_due_shows_no_other_time(bench: Bench, every: int) -> None:
    bench.store.change_feed("fee_1", lambda feed: replace(feed, every_seconds=every))
    bench.accounts = {"cin_a"}
    bench.ends = lambda _: RunResult(connection_ids={"cin_a"})
    step = max(600, every) * SECOND
    bench.clock.now_ns -= bench.clock.now_ns % step
    begun, shown = bench.clock(), set[int]()
    for seconds in (1, 2, 7, 500):
        bench.clock.now_ns = begun + seconds * SECOND
        bench.engine.run("fee_1")
        shown = set(bench.noted)
    assert shown == {begun}


def test_a_stale_feed_is_told_once_for_each_reason_and_again_when_it_is_well(bench: Bench) -> None:
    def run(ends: Ends) -> None:
        bench.ends, bench.clock.now_ns = ends, bench.feed().due_at_ns
        bench.work()

    for _ in range(5):
        run(failing("mailbox_unreachable"))
    assert bench.troubles == ["failing"]
    run(failing("sign_in_refused", needs_owner=True))
    assert bench.troubles == ["failing", "needs_you"]
    bench.engine.resume("fee_1")
    run(failing("mailbox_unreachable"))
    run(raising(PutOff()))
    assert bench.troubles == ["failing", "needs_you"]
    for _ in range(LEAST_ARRIVALS):
        run(lambda _: RunResult(records_new=1))
    assert bench.troubles == ["failing", "needs_you", None]
    for _ in range(2):
        bench.store.change_feed("fee_1", lambda e: replace(e, due_at_ns=e.due_at_ns + 4 * DAY))
        run(lambda _: RunResult(seen=1))
    assert bench.troubles == ["failing", "needs_you", None, "silent"]
    run(lambda _: RunResult(records_new=1))
    assert bench.troubles[-1] is None
    assert bench.feed().longest_silence_ns > 8 * DAY


def test_a_process_that_ends_before_it_told_its_owner_leaves_a_run_that_is_told_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """The process ends here."""

    def killed(*_: object) -> None:
        raise Killed

    bench.ends = failing("sign_in_refused", needs_owner=True)
    with monkeypatch.context() as patched:
        patched.setattr(SqlAuthorizationTransaction, "insert", killed)
        with pytest.raises(Killed):
            bench.engine.run("fee_1")
    assert (bench.feed().state, bench.feed().trouble) == ("running", None)
    bench.clock.now_ns += feed_states.LEASE_NS
    bench.work()
    assert (bench.feed().trouble, bench.troubles) == ("needs_you", ["needs_you"])


@dataclass
class SilentTalk:
    """A conversation with a server that says nothing, for as long as a test says."""

    ended: threading.Event = field(default_factory=threading.Event)
    silent_seconds: float = 0.0

    def leave(self) -> None:
        self.ended.set()


def test_feeds_that_wait_for_silent_servers_delay_few_others(bench: Bench) -> None:
    names = [f"fee_{number}" for number in range(1, 12)]
    for name in names[1:]:
        bench.store.add_feed(a_feed(feed_id=name, name=name, place=name, due_at_ns=bench.clock()))
    talks, waits = {name: SilentTalk() for name in names}, bench.engine.waits

    def waiting(feed: FeedRow) -> RunResult:
        with waits.under_way(feed.feed_id, talks[feed.feed_id]):
            talks[feed.feed_id].ended.wait(60)
        raise PutOff

    bench.ends = waiting

    def begun() -> int:
        """How many have a thread, which is there as soon as they are started."""
        return len({each.name for each in threading.enumerate()}.intersection(names))

    bench.engine.work()
    assert begun() == 4
    until(lambda: len(bench.ran) == 4)
    bench.engine.work()
    assert begun() == 4
    for talk in talks.values():
        talk.silent_seconds = 90.0
    until(lambda: all(waits.silent_seconds(name) for name, _ in bench.ran))
    bench.engine.work()
    until(lambda: len(bench.ran) == 8)
    bench.engine.work()
    assert begun() == 8
    bench.engine.stop()
    assert {bench.feed(name).state for name in names} == {"waiting"}
