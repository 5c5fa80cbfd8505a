"""Notices: looked for, told to each channel once, and forgotten when their cause is over.

Rule: that a channel was told is written before it is, so that a restart, or another process of the
same store, repeats nothing; what did not arrive is taken back and told later, with what came
meanwhile.  What stands is written down also where there is no channel: the overview shows it.
Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.texts import Text
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.credentials import EVENT, RandomBytes, new_id
from personal_server.delivery.deliveries import DeliveryOutcome
from personal_server.delivery.notice_channels import (
    channels,
    notice_settings,
    quiet_hours,
    row_of,
    standing_notices,
)
from personal_server.domain.notice_texts import TEST_SENTENCE, TEST_TITLE, sentence_of, title_of
from personal_server.domain.notices import (
    KINDS,
    Cause,
    Notice,
    OwnerFacts,
    StandingNotice,
    causes,
    due_notices,
    has_passed,
)
from personal_server.storage.notice_rows import NoticeChannelRow, NoticeRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.tables import Assignment, ColumnCondition

LOOKED_NS = 30 * NANOSECONDS
WAITS_SECONDS = (60, 300, 1_800, 7_200, 21_600)
GONE_WAITS_SECONDS = 86_400
TEST = "test"

_log = logging.getLogger(__name__)


class NoticeMessage(msgspec.Struct, frozen=True):
    """A notice as a channel is sent it, in the owner's language and zone.

    Shapes: `kind` is a kind of notice, or `test`; `page` is the path of the page where its owner
        acts.
    """

    message_id: str
    kind: str
    count: int
    title: str
    text: str
    page: str
    at_ns: int


class NoticeSender(Protocol):
    """Sends to channels of one kind."""

    async def send(self, channel: NoticeChannelRow, message: NoticeMessage) -> DeliveryOutcome:
        """Send one message; what came of it.  Raises nothing that a channel causes."""
        ...


class ChannelTurn(msgspec.Struct, frozen=True):
    """What a channel is to be sent now: a test, and notices."""

    channel: NoticeChannelRow
    is_test: bool
    notices: tuple[Notice, ...]


class _Look(msgspec.Struct, frozen=True):
    """What a look found to stand, and what stood in the store when it began.

    Another process may have looked meanwhile: what that began is not over by this look, and what
    that ended does not begin by it; the next look says.
    """

    found: Mapping[tuple[str, str], Cause]
    before: frozenset[tuple[str, str]]


class _Plan(msgspec.Struct, frozen=True):
    """What a look comes to: rows that begin, change and end, and what is to be sent."""

    begun: tuple[StandingNotice, ...]
    changed: tuple[StandingNotice, ...]
    over: tuple[StandingNotice, ...]
    turns: tuple[ChannelTurn, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, and so nothing to send."""
        return not (self.begun or self.changed or self.over or self.turns)


@dataclass
class Notices:
    """Tells the owner what stands.

    Shapes: `facts` looks at everything but channels; `senders` are by the kind of channel; `zone`
        is the owner's, and `render` puts a text into the owner's language.
    """

    store: AuthorizationStore
    facts: Callable[[AuthorizationReader, int], OwnerFacts]
    senders: Mapping[str, NoticeSender]
    clock: Callable[[], int]
    random_bytes: RandomBytes
    zone: Callable[[], ZoneInfo]
    render: Callable[[Text], str]
    _looked_ns: int | None = field(default=None, init=False)

    async def work(self) -> None:
        """Look, and send what is due; called again and again."""
        turns = await anyio.to_thread.run_sync(self.turn)
        async with anyio.create_task_group() as group:
            for turn in turns:
                group.start_soon(self._send_turn, turn)

    def turn(self) -> tuple[ChannelTurn, ...]:
        """Write down what stands, and take what is due; it counts as told from here on."""
        now_ns = self.clock()
        looked_ns = self._looked_ns
        looks = looked_ns is None or not 0 <= now_ns - looked_ns < LOOKED_NS
        with self.store.read() as reader:
            look = self._look(reader, now_ns) if looks else None
            plan = self._plan(reader, look, now_ns)
        if not plan.is_empty:
            with self.store.write() as writer:
                plan = self._plan(writer, look, now_ns)
                _write(writer, plan, now_ns)
        if looks:
            self._looked_ns = now_ns
        return plan.turns

    def _look(self, reader: AuthorizationReader, now_ns: int) -> _Look:
        before = frozenset(each.cause.key for each in standing_notices(reader))
        found = causes(self.facts(reader, now_ns), now_ns)
        return _Look({cause.key: cause for cause in found}, before)

    def _plan(self, reader: AuthorizationReader, look: _Look | None, now_ns: int) -> _Plan:
        if look is None and not channels(reader):
            return _Plan((), (), (), ())
        known = standing_notices(reader)
        begun: list[StandingNotice] = []
        changed: list[StandingNotice] = []
        over: list[StandingNotice] = []
        if look is not None:
            ended = look.before - look.found.keys()
            over = [each for each in known if each.cause.key in ended]
            known = [each for each in known if each.cause.key not in ended]
            changed = [
                replace(each, cause=look.found[each.cause.key])
                for each in known
                if look.found.get(each.cause.key, each.cause) != each.cause
            ]
            old = look.before | {each.cause.key for each in known}
            begun = [
                StandingNotice(cause, now_ns) for key, cause in look.found.items() if key not in old
            ]
        news = {each.cause.key: each for each in changed}
        standing = [*(news.get(each.cause.key, each) for each in known), *begun]
        turns = tuple(self._turns(reader, standing, now_ns))
        return _Plan(tuple(begun), tuple(changed), tuple(over), turns)

    def _turns(
        self, reader: AuthorizationReader, standing: Iterable[StandingNotice], now_ns: int
    ) -> Iterator[ChannelTurn]:
        longest_ns = GONE_WAITS_SECONDS * NANOSECONDS
        rows = [
            row
            for row in channels(reader)
            if has_passed(row.due_at_ns - longest_ns, longest_ns, now_ns)
        ]
        if not rows:
            return
        settings = notice_settings(reader)
        hours = quiet_hours(settings)
        is_quiet = hours is not None and hours.covers(now_ns, self.zone())
        noticed = [] if is_quiet else list(standing)
        for row in rows:
            notices = due_notices(noticed, row.channel_id, row.told, settings.kinds_off, now_ns)
            if notices or row.test_asked:
                yield ChannelTurn(row, row.test_asked, tuple(notices))

    async def _send_turn(self, turn: ChannelTurn) -> None:
        """One after the other, up to the first that does not arrive."""
        sent = 0
        outcome = DeliveryOutcome.DELIVERED
        if turn.is_test:
            text = self._message(TEST, 1, TEST_TITLE, TEST_SENTENCE, "/owner/notices")
            outcome = await self._send(turn.channel, text)
        for notice in turn.notices:
            if outcome is not DeliveryOutcome.DELIVERED:
                break
            outcome = await self._send(turn.channel, self._of(notice))
            sent += outcome is DeliveryOutcome.DELIVERED
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._note, turn, outcome, turn.notices[sent:])

    async def _send(self, channel: NoticeChannelRow, text: NoticeMessage) -> DeliveryOutcome:
        sender = self.senders.get(channel.kind)
        if sender is None:
            return DeliveryOutcome.NOT_MADE
        try:
            return await sender.send(channel, text)
        except StorageUnavailable:  # no key of this server opens the channel's secret
            return DeliveryOutcome.NOT_MADE

    def _of(self, notice: Notice) -> NoticeMessage:
        page = KINDS[notice.kind].page
        title, text = title_of(notice.kind), sentence_of(notice)
        return self._message(notice.kind, len(notice.causes), title, text, page)

    def _message(self, kind: str, count: int, title: Text, text: Text, page: str) -> NoticeMessage:
        message_id = new_id(EVENT, self.random_bytes)
        head, sentence = self.render(title), self.render(text)
        return NoticeMessage(message_id, kind, count, head, sentence, page, self.clock())

    def _note(self, turn: ChannelTurn, outcome: DeliveryOutcome, unsent: Sequence[Notice]) -> None:
        """Write what came of it; what did not arrive is due again, later."""
        now_ns, channel_id = self.clock(), turn.channel.channel_id
        which = NoticeChannelRow.channel_id.equals(channel_id)
        with self.store.write() as writer:
            row = writer.get(NoticeChannelRow, which)
            if row is None:
                return  # its owner removed it meanwhile
            to: list[Assignment[NoticeChannelRow]] = [
                NoticeChannelRow.outcome.to(outcome),
                NoticeChannelRow.tried_at_ns.to(now_ns),
            ]
            if outcome is DeliveryOutcome.DELIVERED:
                to += _succeeded()
            else:
                _log.info("a notice was not delivered to a channel (%s): %s", row.kind, outcome)
                to += _failed(row, turn, outcome, unsent, now_ns)
                _take_back(writer, channel_id, unsent)
            writer.change(NoticeChannelRow, to, which)


def _write(writer: AuthorizationWriter, plan: _Plan, now_ns: int) -> None:
    """All of a look in one transaction, what is to be sent marked as told."""
    sent_at: dict[tuple[str, str], dict[str, int]] = {}
    for turn in plan.turns:
        row = turn.channel
        kinds = {notice.kind.value: now_ns for notice in turn.notices}
        writer.change(
            NoticeChannelRow,
            [
                NoticeChannelRow.told.to({**row.told, **kinds}),
                NoticeChannelRow.test_asked.to(False),
            ],
            NoticeChannelRow.channel_id.equals(row.channel_id),
        )
        for cause in (cause for notice in turn.notices for cause in notice.causes):
            sent_at.setdefault(cause.key, {})[row.channel_id] = now_ns
    for each in plan.over:
        writer.delete(NoticeRow, *_is(each.cause.key))
    for each in plan.begun:
        writer.insert(row_of(replace(each, told=sent_at.pop(each.cause.key, {}))))
    for each in plan.changed:
        to = [NoticeRow.name.to(each.cause.name), NoticeRow.at_ns.to(each.cause.at_ns)]
        writer.change(NoticeRow, to, *_is(each.cause.key))
    for key, marks in sent_at.items():
        _mark(writer, key, lambda before, marks=marks: {**before, **marks})


def _mark(
    writer: AuthorizationWriter,
    key: tuple[str, str],
    change: Callable[[Mapping[str, int]], dict[str, int]],
) -> None:
    row = writer.get(NoticeRow, *_is(key))
    if row is not None:
        writer.change(NoticeRow, [NoticeRow.told.to(change(row.told))], *_is(key))


def _take_back(writer: AuthorizationWriter, channel_id: str, unsent: Sequence[Notice]) -> None:
    def without(sent_at: Mapping[str, int]) -> dict[str, int]:
        return {known: at_ns for known, at_ns in sent_at.items() if known != channel_id}

    for cause in (cause for notice in unsent for cause in notice.causes):
        _mark(writer, cause.key, without)


def _is(key: tuple[str, str]) -> tuple[ColumnCondition[NoticeRow], ...]:
    return NoticeRow.kind.equals(key[0]), NoticeRow.about.equals(key[1])


def _succeeded() -> list[Assignment[NoticeChannelRow]]:
    return [
        NoticeChannelRow.failures.to(0),
        NoticeChannelRow.failing_since_ns.to(None),
        NoticeChannelRow.due_at_ns.to(0),
    ]


def _failed(
    row: NoticeChannelRow,
    turn: ChannelTurn,
    outcome: DeliveryOutcome,
    unsent: Sequence[Notice],
    now_ns: int,
) -> list[Assignment[NoticeChannelRow]]:
    """The kinds that did not arrive were told last when they were told before."""
    seconds = WAITS_SECONDS[min(row.failures, len(WAITS_SECONDS) - 1)]
    if outcome is DeliveryOutcome.GONE:
        seconds = GONE_WAITS_SECONDS
    kinds = {notice.kind for notice in unsent}
    sent_at = {kind: at_ns for kind, at_ns in row.told.items() if kind not in kinds}
    sent_at |= {kind: at_ns for kind, at_ns in turn.channel.told.items() if kind in kinds}
    since_ns = now_ns if row.failing_since_ns is None else row.failing_since_ns
    return [
        NoticeChannelRow.failures.to(row.failures + 1),
        NoticeChannelRow.failing_since_ns.to(since_ns),
        NoticeChannelRow.due_at_ns.to(now_ns + seconds * NANOSECONDS),
        NoticeChannelRow.told.to(sent_at),
    ]
