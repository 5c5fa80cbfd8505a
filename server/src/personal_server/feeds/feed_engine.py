"""What runs feeds: those that are due, a few at a time, each under a lease in the database.

Rule: of all processes one runs a feed; a run that failed costs that feed a pause and no other
anything; whatever ends a process, the next run goes on from what is stored.
Source: docs/contract/feeds.md 2, 3 and 4.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pdpp_kernel.errors import InvalidState, NotFound, PersonalServerError
from pdpp_kernel.failures import places_of
from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds import feed_states
from personal_server.feeds.feed_ledger import SETTLED_AFTER_NS
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.feed_schedule import due_after_failure, due_after_success, shown_ns
from personal_server.feeds.feed_states import RENEW_SECONDS, FeedState
from personal_server.feeds.feed_trouble import trouble_event, with_arrival, with_trouble
from personal_server.feeds.feed_waits import FeedWaits
from personal_server.feeds.feed_watches import FeedWatches
from personal_server.storage.feed_rows import FeedRow, FeedRunRow
from personal_server.storage.ports.feed_stores import FeedStore

MOST_RUNNING, MOST_SILENT = 4, 4
PUT_OFF_NS = 30 * NANOSECONDS
STOP_SECONDS = 5.0
ACCOUNT_GONE = "account_gone"
_BYTE = 255
_log = logging.getLogger(__name__)


class FeedRuns(Protocol):
    """Runs feeds of one kind."""

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Look and import.  Raises: PutOff."""
        ...


class FedAccounts(Protocol):
    """The accounts that feeds fill."""

    def usable(self) -> frozenset[str]:
        """The ids of those that take records."""
        ...

    def note_run(
        self, feed_id: str, connection_ids: Iterable[str], at_ns: int, *, succeeded: bool
    ) -> None:
        """They are as current as their place, or were not to be brought up to date."""
        ...


@dataclass(slots=True)
class FeedEngine:
    """Runs the feeds of an owner.

    Shapes: `runs` by the kind of a feed; `holder` names this process to the others.
    """

    store: FeedStore
    runs: Mapping[str, FeedRuns]
    accounts: FedAccounts
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    holder: str
    watches: FeedWatches | None = None
    waits: FeedWaits = field(default_factory=FeedWaits)
    _running: dict[str, threading.Thread] = field(
        default_factory=dict[str, threading.Thread], init=False
    )

    def work(self) -> None:
        """Start what is due, as far as there is room; it does not wait for any."""
        for feed_id in [name for name, each in self._running.items() if not each.is_alive()]:
            del self._running[feed_id]
        feeds = self.store.feeds()
        if self.watches is not None:
            self.watches.keep(feeds)
        for feed in feeds:
            if not self._has_room:
                return
            if feed.feed_id not in self._running and feed_states.may_begin(feed, self.clock()):
                self._start(feed)

    @property
    def _has_room(self) -> bool:
        """Whether one more may run: some that wait for silent servers hold nobody up."""
        silent = sum(bool(self.waits.silent_seconds(each)) for each in self._running)
        return len(self._running) - min(silent, MOST_SILENT) < MOST_RUNNING

    def stop(self) -> None:
        """Wait a little for what runs; the importer has been told to stop."""
        if self.watches is not None:
            self.watches.stop()
        self.waits.leave_all()
        for each in list(self._running.values()):
            each.join(STOP_SECONDS)

    def run(self, feed_id: str, *, retries: bool = False) -> RunResult | None:
        """Run one now, and return what it did; nothing where it was put off.

        Raises: InvalidState where it is paused or runs elsewhere; NotFound.
        """
        begun_ns = self.clock()
        feed = self.store.change_feed(
            feed_id, lambda each: feed_states.begin(each, self.holder, begun_ns)
        )
        with _Renewed(self, feed_id):
            result = self._result(feed, retries=retries)
        self._end(feed, result, begun_ns)
        return result

    def resume(self, feed_id: str) -> FeedRow:
        """Let it go on; where its account is gone it begins anew.  Raises: InvalidState."""
        now_ns = self.clock()

        def resumed(feed: FeedRow) -> FeedRow:
            begins_anew = feed.code == ACCOUNT_GONE
            feed = feed_states.resume(feed, now_ns)
            if not begins_anew:
                return feed
            return replace(feed, connection_ids=(), account=None, reached=None)

        begins_anew = any(
            each.feed_id == feed_id and each.code == ACCOUNT_GONE for each in self.store.feeds()
        )
        if begins_anew:
            self.store.forget_ledger(feed_id)
        return self.store.change_feed(feed_id, resumed)

    def _start(self, feed: FeedRow) -> None:
        thread = threading.Thread(
            target=self._run_due, args=(feed.feed_id,), name=feed.feed_id, daemon=True
        )
        self._running[feed.feed_id] = thread
        thread.start()

    def _run_due(self, feed_id: str) -> None:
        """One that was due a moment ago; another process may have been quicker."""
        try:
            self.run(feed_id)
        except (InvalidState, NotFound):
            pass
        except Exception as error:  # noqa: BLE001 (the boundary of a thread)
            _log.error("a feed failed: %s at %s", type(error).__name__, places_of(error))

    def _result(self, feed: FeedRow, *, retries: bool) -> RunResult | None:
        """What a run did, or why it did nothing; `None` where it is put off."""
        if not self.accounts.usable().issuperset(feed.connection_ids):
            return RunResult(code=ACCOUNT_GONE, needs_owner=True)
        try:
            return self.runs[feed.kind].run(feed, retries=retries)
        except PutOff:
            return None
        except PersonalServerError as error:
            return RunResult(code=error.code)
        except Exception as error:  # noqa: BLE001 (a run costs its own feed only)
            _log.error("a feed failed: %s at %s", type(error).__name__, places_of(error))
            return RunResult(code="internal_error")

    def _end(self, feed: FeedRow, result: RunResult | None, begun_ns: int) -> None:
        """Give the lease back with what the run says, then write the receipt."""
        now_ns = self.clock()
        chance = self.random_bytes(1)[0] / _BYTE
        took_ns = max(0, now_ns - begun_ns)

        def released(each: FeedRow) -> FeedRow:
            if result is None:
                return feed_states.put_off(each, self.holder, now_ns + PUT_OFF_NS)
            if each.holder == self.holder:
                ids = sorted({*each.connection_ids, *result.connection_ids})
                each = replace(each, connection_ids=tuple(ids), reached=result.reached_ns)
                each = with_arrival(each, now_ns) if result.records_new else each
            if result.code is not None:
                due_ns = due_after_failure(each, now_ns, chance)
                due_ns = max(due_ns, now_ns + result.pause_seconds * NANOSECONDS)
                return feed_states.fail(
                    each, self.holder, result.code, now_ns, due_ns, needs_owner=result.needs_owner
                )
            worked_ns = 0 if result.is_fetched or not result.commands else took_ns
            due_ns = due_after_success(each, now_ns, worked_ns, chance)
            if result.settling:
                due_ns = min(due_ns, now_ns + SETTLED_AFTER_NS)
            return feed_states.succeed(each, self.holder, now_ns, due_ns)

        def ended(each: FeedRow) -> FeedRow:
            after = released(each)
            if after is not each:
                succeeded = result is not None and result.code is None
                after = with_trouble(after, succeeded=succeeded)
            return after

        try:
            after = self.store.change_feed(
                feed.feed_id, ended, lambda before, after: trouble_event(before, after, now_ns)
            )
        except NotFound:  # removed meanwhile
            return
        self.store.keep_feed_run(_receipt(feed.feed_id, result, begun_ns, now_ns))
        if result is not None:
            ids = self.accounts.usable().intersection(after.connection_ids)
            at_ns, succeeded = shown_ns(after, now_ns), result.code is None
            self.accounts.note_run(feed.feed_id, sorted(ids), at_ns, succeeded=succeeded)


class _Renewed:
    """Renews the lease of a feed while a block lasts."""

    def __init__(self, engine: FeedEngine, feed_id: str) -> None:
        self._engine = engine
        self._feed_id = feed_id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        engine = self._engine
        while not self._ended.wait(RENEW_SECONDS):
            silent_ns = int(engine.waits.silent_seconds(self._feed_id) * NANOSECONDS)

            def renewed(feed: FeedRow, silent_ns: int = silent_ns) -> FeedRow:
                return feed_states.renew(feed, engine.holder, engine.clock(), silent_ns)

            try:
                after = engine.store.change_feed(self._feed_id, renewed)
            except NotFound:
                engine.waits.leave(self._feed_id)
            except PersonalServerError as error:  # the next one may be written
                _log.warning("a lease was not renewed: %s", error.code)
            else:
                if after.holder != engine.holder:  # paused, or run by another
                    engine.waits.leave(self._feed_id)


def _receipt(feed_id: str, result: RunResult | None, begun_ns: int, ended_ns: int) -> FeedRunRow:
    if result is None:
        return FeedRunRow(
            feed_id=feed_id, began_at_ns=begun_ns, ended_at_ns=ended_ns, outcome="put_off"
        )
    outcome = "succeeded" if result.code is None else "failed"
    return FeedRunRow(
        feed_id=feed_id,
        began_at_ns=begun_ns,
        ended_at_ns=ended_ns,
        outcome=FeedState.NEEDS_YOU if result.needs_owner else outcome,
        code=result.code,
        seen=result.seen,
        new=result.new,
        changed=result.changed,
        gone=result.gone,
        rejected=result.rejected,
        settling=result.settling,
        records_new=result.records_new,
        records_updated=result.records_updated,
        size_bytes=result.size_bytes,
        commands=result.commands,
    )
