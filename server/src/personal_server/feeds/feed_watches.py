"""Waits at the places of feeds that tell when something changes, so that it is fetched at once.

Rule: one process of several waits at a place, under a lease; what it is told makes a run due, and
nothing else: polling goes on, and whatever a watch misses the next poll finds.
Source: docs/contract/feeds.md 3, 4 and 10.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.failures import places_of
from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds import feed_states
from personal_server.feeds.feed_states import LEASE_NS, SIGN_IN_REFUSED, FeedState
from personal_server.feeds.feed_trouble import trouble_event, with_trouble
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

MOST_WATCHED = 8
FIRST_REST_NS, LONGEST_REST_NS = 60 * NANOSECONDS, 3600 * NANOSECONDS
NEVER_TOLD = "watch_unsupported"
"""The place tells nobody of changes."""
_log = logging.getLogger(__name__)


class FeedWatch(Protocol):
    """Waits at one place."""

    def wait(self, feed: FeedRow, changed: Callable[[], None]) -> str:
        """Call `changed` for each change, until it ends; the code of why it ended."""
        ...

    def end(self) -> None:
        """Have it end at once."""
        ...


class _Begun(msgspec.Struct):
    """A watch in its thread."""

    watch: FeedWatch
    since_ns: int
    renew_ns: int
    thread: threading.Thread | None = None
    code: str = ""
    is_changed: threading.Event = msgspec.field(default_factory=threading.Event)

    @property
    def is_alive(self) -> bool:
        """Whether it waits still."""
        return self.thread is not None and self.thread.is_alive()

    def run(self, feed: FeedRow) -> None:
        """Until it ends, whatever ends it."""
        try:
            self.code = self.watch.wait(feed, self.is_changed.set)
        except Exception as error:  # noqa: BLE001 (the boundary of a thread)
            _log.error("a watch failed: %s at %s", type(error).__name__, places_of(error))


@dataclass(slots=True)
class FeedWatches:
    """Waits at the places of an owner's feeds.

    Shapes: `kinds` makes a watch, by the kind of a feed; `holder` names this process.
    """

    store: FeedStore
    kinds: Mapping[str, Callable[[], FeedWatch]]
    clock: Callable[[], int]
    holder: str
    _begun: dict[str, _Begun] = field(default_factory=dict[str, _Begun], init=False)
    _since_ns: int = field(default=0, init=False)
    _rests: dict[str, tuple[int, int]] = field(
        default_factory=dict[str, tuple[int, int]], init=False
    )
    """When a watch was lost, and for how long none begins after it."""

    _looked: set[str] = field(default_factory=set[str], init=False)
    """Feeds that were made due since no run of this time succeeded."""

    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._since_ns = self.clock()

    def keep(self, feeds: Iterable[FeedRow]) -> None:
        """Begin, renew and end watches, and have run what changed; it waits for none."""
        if self._is_stopped:
            return
        there = {e.feed_id: e for e in feeds if e.kind in self.kinds and feed_states.may_watch(e)}
        for feed_id in self._begun.keys() - there.keys():
            self._begun.pop(feed_id).watch.end()
        for feed in there.values():
            begun = self._begun.get(feed.feed_id)
            if begun is None:
                self._begin(feed)
            elif begun.is_alive:
                self._follow(feed, begun)
            elif feed.state == FeedState.WAITING:
                self._lose(feed, self._begun.pop(feed.feed_id))

    def stop(self) -> None:
        """End all at once, and give the leases back, so that the next process need not wait."""
        with self._lock:
            self._is_stopped = True
        for feed_id, begun in list(self._begun.items()):
            begun.watch.end()
            with suppress(PersonalServerError):  # removed; else the lease ends by itself
                self.store.change_feed(feed_id, lambda each: feed_states.leave(each, self.holder))

    def _begin(self, feed: FeedRow) -> None:
        now_ns = self.clock()
        lost_ns, rest_ns = self._rests.get(feed.feed_id, (self._since_ns, 0))
        # A password is tried by a run: a watch begins with one that was taken since.
        is_taken = feed.succeeded_at_ns is not None and feed.succeeded_at_ns >= lost_ns
        if not is_taken and feed.feed_id not in self._looked:
            self._looked.add(feed.feed_id)
            self.store.change_feed(feed.feed_id, lambda each: feed_states.hurry(each, now_ns))
        has_rested = not lost_ns <= now_ns < lost_ns + rest_ns
        if not is_taken or not has_rested or len(self._begun) >= MOST_WATCHED:
            return
        if feed_states.watch(feed, self.holder, now_ns) is feed:  # another waits there
            return
        if not self._lease(feed.feed_id, now_ns):
            return
        begun = _Begun(self.kinds[feed.kind](), now_ns, now_ns + LEASE_NS // 2)
        begun.thread = threading.Thread(
            target=begun.run, args=(feed,), name=f"watch {feed.feed_id}", daemon=True
        )
        with self._lock:
            if not self._is_stopped:
                self._begun[feed.feed_id] = begun
                begun.thread.start()

    def _follow(self, feed: FeedRow, begun: _Begun) -> None:
        now_ns = self.clock()
        if begun.is_changed.is_set() and feed.state == FeedState.WAITING:
            begun.is_changed.clear()
            self.store.change_feed(feed.feed_id, lambda each: feed_states.hurry(each, now_ns))
        if not begun.renew_ns - LEASE_NS <= now_ns < begun.renew_ns:
            begun.renew_ns = now_ns + LEASE_NS // 2
            if not self._lease(feed.feed_id, now_ns):  # another took it while this one slept
                begun.watch.end()

    def _lease(self, feed_id: str, now_ns: int) -> bool:
        try:
            leased = self.store.change_feed(
                feed_id, lambda each: feed_states.watch(each, self.holder, now_ns)
            )
        except PersonalServerError:  # removed, or nothing can be written
            return False
        return leased.watched_by == self.holder

    def _lose(self, feed: FeedRow, begun: _Begun) -> None:
        """One that ended: the next begins after a pause, longer each time that it ends at once."""
        now_ns = self.clock()
        _, rest_ns = self._rests.get(feed.feed_id, (0, FIRST_REST_NS // 2))
        lasted = now_ns - begun.since_ns > LONGEST_REST_NS
        rest_ns = FIRST_REST_NS if lasted else min(2 * rest_ns, LONGEST_REST_NS)
        if begun.code == NEVER_TOLD:
            rest_ns = 24 * LONGEST_REST_NS
        self._rests[feed.feed_id] = now_ns, rest_ns
        if begun.code == SIGN_IN_REFUSED:
            self._refuse(feed.feed_id, now_ns)

    def _refuse(self, feed_id: str, now_ns: int) -> None:
        def refused(feed: FeedRow) -> FeedRow:
            after = feed_states.refuse(feed, self.holder, SIGN_IN_REFUSED, now_ns)
            return feed if after is feed else with_trouble(after, succeeded=False)

        self.store.change_feed(
            feed_id, refused, lambda before, after: trouble_event(before, after, now_ns)
        )
