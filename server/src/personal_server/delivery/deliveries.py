"""Deliveries: events sent, tried again, and given up.

Rule: an attempt is noted before it is made, so that a process that ends in between makes it again;
a slow receiver holds up nobody but itself, and one that fails leaves room for those that do not.
Source: docs/contract/resource-server.md 15.3.
"""

from __future__ import annotations

import email.utils
import hmac
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from queue import Empty, SimpleQueue

import anyio
import anyio.to_thread
import httpx2
import msgspec
from anyio.abc import TaskGroup

from pdpp_kernel.values import NANOSECONDS
from personal_server.delivery.callbacks import Answer, Callbacks, UnsafeAddress
from personal_server.delivery.events import AccessPaused, Events, Letter, prune
from personal_server.delivery.pending_events import EventType
from personal_server.delivery.signatures import signed_headers
from personal_server.delivery.subscription_states import (
    ACTIVE,
    PENDING,
    fail,
    verified,
)
from personal_server.granting.audit import SERVER
from personal_server.storage.authorization_rows import EventRow, SubscriptionRow
from personal_server.storage.ports.authorization_store import AuthorizationWriter
from personal_server.storage.ports.snapshots import ChangeSignal
from personal_server.storage.tables import Assignment

GATHERED_SECONDS = 5.0
LOOKED_SECONDS = 30.0
TURN_SECONDS = 1.0
# Answers that come together are noted together.
TOGETHER_SECONDS = 0.02
# What is read and written to tell takes at most this part of the time, however many want to know.
TELLING_SHARE = 0.025
# So many events are made from one state.
MADE_TOGETHER = 16
WAITS_SECONDS = (30, 120, 600, 3_600, 21_600, 86_400)
MOST_ATTEMPTS = len(WAITS_SECONDS) + 1
LONGEST_POSTPONED_NS = 72 * 3_600 * NANOSECONDS
MOST_IN_FLIGHT, MOST_FAILING_IN_FLIGHT = 64, 32
LOOKED_THROUGH = 2_000
# How long an event waits whose access is paused, before that is looked at again.
PAUSED_NS = 60 * NANOSECONDS
# What a clock may be behind what it said before, and be trusted.
SET_BACK_NS = 2 * NANOSECONDS
_POSTPONING = frozenset({429, 502, 503, 504})
_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"

_log = logging.getLogger(__name__)


class DeliveryOutcome(StrEnum):
    """How an attempt went."""

    SENDING = "sending"
    DELIVERED = "delivered"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    UNSAFE = "unsafe_address"
    UNANSWERED = "challenge_not_answered"
    GONE = "gone"
    SILENT = "silent"
    PAUSED = "paused"
    NOT_MADE = "not_made"


class Attempt(msgspec.Struct, frozen=True):
    """An attempt that was made: how it went, and how long a receiver asked to be left alone."""

    event: EventRow
    outcome: DeliveryOutcome
    retry_after_seconds: int | None = None


@dataclass
class Deliveries:
    """Sends what is due, and looks for what there is to send.

    Shapes: `changed` tells that something was written, by whichever process; `may_end` is whether
        the clock may end anything.  One process of a store does this at a time.
    """

    events: Events
    callbacks: Callbacks
    changed: ChangeSignal
    clock: Callable[[], int]
    may_end: Callable[[], bool] = lambda: True
    monotonic: Callable[[], float] = time.monotonic
    _in_flight: dict[str, EventRow] = field(default_factory=dict[str, EventRow], init=False)
    # filled where events are sent, emptied in the thread that notes what came of them
    _attempts: SimpleQueue[Attempt] = field(default_factory=SimpleQueue[Attempt], init=False)
    # each reads in a state of its own, for which a store keeps a connection
    _making: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(2), init=False
    )
    _came_back: anyio.Event = field(default_factory=anyio.Event, init=False)
    _has_begun: bool = field(default=False, init=False)
    _last_ns: int = field(default=0, init=False)
    _seen: int = field(default=-1, init=False)
    _horizon: int | None = field(default=None, init=False)
    _noticed_at: float | None = field(default=None, init=False)
    _looked_at: float = field(default=float("-inf"), init=False)
    _worked_seconds: float = field(default=0.0, init=False)

    async def work(self) -> None:
        """Send until nothing is on its way; called again and again."""
        try:
            due = await anyio.to_thread.run_sync(self.turn)
            if due:
                await self._send_all(due)
        finally:
            if not self._attempts.empty():
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._note_attempts, self.clock())
        self._seen = await anyio.to_thread.run_sync(
            self.changed.wait, self._seen, TURN_SECONDS, abandon_on_cancel=True
        )

    async def _send_all(self, due: list[EventRow]) -> None:
        try:
            async with self.callbacks.calling() as transport, anyio.create_task_group() as group:
                await self._send_in(group, transport, due)
        finally:
            self._in_flight.clear()

    async def _send_in(
        self, group: TaskGroup, transport: httpx2.AsyncBaseTransport, due: list[EventRow]
    ) -> None:
        while due or self._in_flight or not self._attempts.empty():
            self._came_back = anyio.Event()
            for start in range(0, len(due), MADE_TOGETHER):
                few = due[start : start + MADE_TOGETHER]
                group.start_soon(self._send_few, group, transport, few)
            with anyio.move_on_after(TURN_SECONDS):
                await self._came_back.wait()
            await anyio.sleep(TOGETHER_SECONDS)
            due = await anyio.to_thread.run_sync(self.turn)

    def turn(self) -> list[EventRow]:
        """Note what came of attempts, look for what changed, and take what is due."""
        begun, now_ns = self.monotonic(), self.clock()
        self._begin(now_ns)
        self._note_attempts(now_ns)
        self._look(now_ns)
        due = self._take_due(now_ns)
        self._worked_seconds += self.monotonic() - begun
        return due

    def _begin(self, now_ns: int) -> None:
        """After a start what was being sent is due again; so is everything by a clock set back."""
        if self._has_begun and now_ns >= self._last_ns - SET_BACK_NS:
            self._last_ns = now_ns
            return
        tried = EventRow.outcome.equals(DeliveryOutcome.SENDING)
        which = (EventRow.due_at_ns.above(now_ns),) if self._has_begun else (tried,)
        with self.events.store.read() as reader:
            found = reader.count(EventRow, EventRow.done_at_ns.equals(None), *which)
        if found:
            with self.events.store.write() as writer:
                due = [EventRow.due_at_ns.to(now_ns)]
                writer.change(EventRow, due, EventRow.done_at_ns.equals(None), *which)
        self._has_begun, self._last_ns = True, now_ns

    # Looking for what changed.

    def _look(self, now_ns: int) -> None:
        at = self.monotonic()
        if self._noticed_at is None and self._has_changed():
            self._noticed_at = at
        is_gathered = self._noticed_at is not None and at - self._noticed_at >= GATHERED_SECONDS
        since_seconds = at - self._looked_at
        if self._horizon is None or not (is_gathered or since_seconds >= LOOKED_SECONDS):
            return
        if since_seconds < min(self._worked_seconds / TELLING_SHARE, LOOKED_SECONDS):
            return
        self._horizon = self.events.gather(now_ns, ends=self.may_end())
        self._noticed_at, self._looked_at, self._worked_seconds = None, at, 0.0

    def _has_changed(self) -> bool:
        """Whether anything did since the last look; not asked again until the next one."""
        before, self._horizon = self._horizon, self.events.awaited()
        return self._horizon is not None and self._horizon != before

    # Taking what is due.

    def _take_due(self, now_ns: int) -> list[EventRow]:
        with self.events.store.read() as reader:
            found = reader.rows(
                EventRow,
                EventRow.due_at_ns.at_most(now_ns),
                order=EventRow.due_at_ns,
                limit=LOOKED_THROUGH,
            )
        # after a start several are due at once: the older ones have the older bookmarks
        taken = self._chosen(sorted(found, key=lambda event: event.created_at_ns))
        if taken:
            with self.events.store.write() as writer:
                for event in taken:
                    wait_seconds = WAITS_SECONDS[min(event.attempts, len(WAITS_SECONDS) - 1)]
                    to: list[Assignment[EventRow]] = [
                        EventRow.attempts.to(event.attempts + 1),
                        EventRow.outcome.to(DeliveryOutcome.SENDING),
                        EventRow.due_at_ns.to(now_ns + wait_seconds * NANOSECONDS),
                    ]
                    writer.change(EventRow, to, EventRow.event_id.equals(event.event_id))
        return taken

    def _chosen(self, due: list[EventRow]) -> list[EventRow]:
        """One event of each subscription at a time; those that failed take half the room."""
        # meanwhile others come back
        failing = sum(event.attempts > 0 for event in tuple(self._in_flight.values()))
        taken: list[EventRow] = []
        for event in due:
            if len(self._in_flight) >= MOST_IN_FLIGHT:
                break
            if event.subscription_id in self._in_flight:
                continue
            if event.attempts and failing >= MOST_FAILING_IN_FLIGHT:
                continue
            failing += event.attempts > 0
            self._in_flight[event.subscription_id] = event
            taken.append(event)
        return taken

    # Sending.

    async def _send_few(
        self, group: TaskGroup, transport: httpx2.AsyncBaseTransport, events: list[EventRow]
    ) -> None:
        make = partial(self.events.letters, events, self.clock())
        made = await anyio.to_thread.run_sync(make, limiter=self._making)
        for event, letter in zip(events, made, strict=True):
            if isinstance(letter, Letter):
                group.start_soon(self._send, transport, letter)
            elif letter is None:
                self._came(Attempt(event, DeliveryOutcome.SILENT))
            elif isinstance(letter, AccessPaused):
                self._came(Attempt(event, DeliveryOutcome.PAUSED))
            else:  # of this event alone: the others are sent
                _log.warning("event %s cannot be made: %s", event.event_id, letter.code)
                self._came(Attempt(event, DeliveryOutcome.NOT_MADE))

    async def _send(self, transport: httpx2.AsyncBaseTransport, letter: Letter) -> None:
        self._came(await self._attempt(transport, letter))

    def _came(self, attempt: Attempt) -> None:
        self._attempts.put(attempt)
        del self._in_flight[attempt.event.subscription_id]
        self._came_back.set()

    async def _attempt(self, transport: httpx2.AsyncBaseTransport, letter: Letter) -> Attempt:
        sent_at_s = self.clock() // NANOSECONDS
        event, row = letter.event, letter.subscription
        headers = signed_headers(event.event_id, sent_at_s, letter.body, letter.secrets)
        headers["Content-Type"] = _CONTENT_TYPE
        is_challenge = event.type == EventType.VERIFY
        try:
            answer = await self.callbacks.post(
                transport, row.callback_url, headers, letter.body, reads=is_challenge
            )
        except UnsafeAddress:
            return Attempt(event, DeliveryOutcome.UNSAFE)
        except (TimeoutError, httpx2.TimeoutException):
            return Attempt(event, DeliveryOutcome.TIMED_OUT)
        except (OSError, UnicodeError, httpx2.HTTPError, httpx2.InvalidURL):
            return Attempt(event, DeliveryOutcome.UNREACHABLE)
        if 200 <= answer.status < 300:
            answered = not is_challenge or holds_challenge(answer.body, event.said or "")
            return Attempt(
                event, DeliveryOutcome.DELIVERED if answered else DeliveryOutcome.UNANSWERED
            )
        if answer.status == 410:
            return Attempt(event, DeliveryOutcome.GONE)
        seconds = asked_seconds(answer, sent_at_s)
        return Attempt(event, DeliveryOutcome.REFUSED, seconds)

    # What came of it.

    def _note_attempts(self, now_ns: int) -> None:
        attempts = self._attempts_made()
        if not attempts:
            return
        try:
            with self.events.store.write() as writer:
                for attempt in attempts:
                    self._note(writer, attempt, now_ns)
        except BaseException:
            for attempt in attempts:
                self._attempts.put(attempt)
            raise

    def _attempts_made(self) -> list[Attempt]:
        found: list[Attempt] = []
        with suppress(Empty):
            while True:
                found.append(self._attempts.get_nowait())
        return found

    def _note(self, writer: AuthorizationWriter, attempt: Attempt, now_ns: int) -> None:
        which = EventRow.event_id.equals(attempt.event.event_id)
        event = writer.get(EventRow, which)
        if event is None:
            return  # it was dropped meanwhile
        if attempt.outcome is DeliveryOutcome.SILENT:
            writer.delete(EventRow, which)
            return
        if attempt.outcome is DeliveryOutcome.PAUSED:
            before = attempt.event.outcome
            to: list[Assignment[EventRow]] = [
                EventRow.attempts.to(event.attempts - 1),
                EventRow.outcome.to(before),
                EventRow.due_at_ns.to(now_ns + PAUSED_NS),
            ]
            writer.change(EventRow, to, which)
            return
        of_it = SubscriptionRow.subscription_id.equals(event.subscription_id)
        row = writer.get(SubscriptionRow, of_it)
        assert row is not None  # noqa: S101  # its events go with it
        writer.change(
            SubscriptionRow,
            [
                SubscriptionRow.last_delivery_at_ns.to(now_ns),
                SubscriptionRow.last_delivery_status.to(attempt.outcome.value),
            ],
            of_it,
        )
        if attempt.outcome is DeliveryOutcome.DELIVERED:
            self._delivered(writer, event, row, now_ns)
            return
        _log.info("event %s was not delivered: %s", event.event_id, attempt.outcome)
        self._failed(writer, event, row, attempt, now_ns)

    def _delivered(
        self, writer: AuthorizationWriter, event: EventRow, row: SubscriptionRow, now_ns: int
    ) -> None:
        done: list[Assignment[EventRow]] = [
            EventRow.done_at_ns.to(now_ns),
            EventRow.due_at_ns.to(None),
            EventRow.outcome.to(DeliveryOutcome.DELIVERED),
            EventRow.said.to(None),
        ]
        writer.change(EventRow, done, EventRow.event_id.equals(event.event_id))
        if event.type == EventType.VERIFY:
            verified(writer, row, now_ns)
        prune(writer, event.subscription_id)

    def _failed(
        self,
        writer: AuthorizationWriter,
        event: EventRow,
        row: SubscriptionRow,
        attempt: Attempt,
        now_ns: int,
    ) -> None:
        postponed_ns = postponed_until(event, attempt, now_ns)
        due_ns = self._next_ns(event, attempt, now_ns) if postponed_ns is None else postponed_ns
        if due_ns is None and row.status in (PENDING, ACTIVE):
            fail(writer, row, attempt.outcome, SERVER, self.events.random_bytes, now_ns)
            return
        is_held = event.due_at_ns is None  # by a pause, while it was being sent
        to: list[Assignment[EventRow]] = [
            EventRow.outcome.to(attempt.outcome),
            EventRow.attempts.to(event.attempts - (postponed_ns is not None)),
            EventRow.due_at_ns.to(None if is_held else due_ns),
            EventRow.done_at_ns.to(now_ns if due_ns is None else None),
        ]
        writer.change(EventRow, to, EventRow.event_id.equals(event.event_id))

    def _next_ns(self, event: EventRow, attempt: Attempt, now_ns: int) -> int | None:
        """When the next attempt is made; `None` if there is none."""
        if attempt.outcome is DeliveryOutcome.GONE or event.attempts >= MOST_ATTEMPTS:
            return None
        # 0.8 to 1.2 of the wait, so that those that failed together do not come together
        part = 800 + int.from_bytes(self.events.random_bytes(2)) % 401
        return now_ns + WAITS_SECONDS[event.attempts - 1] * NANOSECONDS // 1_000 * part


def postponed_until(event: EventRow, attempt: Attempt, now_ns: int) -> int | None:
    """Until when a receiver may have asked to be left alone."""
    seconds = attempt.retry_after_seconds
    if seconds is None:
        return None
    until_ns = now_ns + seconds * NANOSECONDS
    return until_ns if until_ns <= event.created_at_ns + LONGEST_POSTPONED_NS else None


def holds_challenge(body: bytes, challenge: str) -> bool:
    """Whether an answer repeats a challenge."""
    try:
        answered = msgspec.json.decode(body, type=_Echo).challenge
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return hmac.compare_digest(answered.encode("utf-8", "surrogatepass"), challenge.encode())


class _Echo(msgspec.Struct):
    """The answer to a challenge; what else it says is nobody's matter."""

    challenge: str


def asked_seconds(answer: Answer, now_s: int) -> int | None:
    """How long a receiver asks to be left alone, if it may ask that."""
    if answer.status not in _POSTPONING:
        return None
    seconds = _retry_after(answer.headers, now_s)
    return seconds if seconds is not None and 1 <= seconds <= WAITS_SECONDS[-1] else None


def _retry_after(headers: Mapping[str, str], now_s: int) -> int | None:
    """Seconds, or a date.  Source: RFC 9110 10.2.3."""
    header = headers.get("retry-after", "").strip()
    if header.isascii() and header.isdecimal():
        return int(header[:9])
    try:
        return round(email.utils.parsedate_to_datetime(header).timestamp()) - now_s
    except (ValueError, OverflowError):
        return None
