"""Notices: what the server tells its owner unasked, when, and when no more.  Pure.

Rule: a notice is a cause that stands.  Each is told once to each channel, those of a kind that
become due together are told as one, and what ended before it was told is never told.  A notice
holds a kind, a name and an instant, and nothing that a record says.
Units: `*_ns` are UTC nanoseconds since 1970.
Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.texts import moment_of
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.domain.hidden_characters import shown

MINUTE_NS, HOUR_NS = 60 * NANOSECONDS, 3_600 * NANOSECONDS
MOST_NAME_CHARS = 60
ENDS_WITHIN_NS = 7 * DAY_NANOSECONDS
# An access of two weeks or less that ends soon is what its owner allowed a few days ago.
LONG_ACCESS_NS = 14 * DAY_NANOSECONDS
OLD_NS = 365 * DAY_NANOSECONDS
# An export that was imported of late is as new as its owner has it.
IMPORTED_LATELY_NS = 30 * DAY_NANOSECONDS
FAILURES_TOLD = 3


class NoticeKind(StrEnum):
    """What a notice is about."""

    REQUEST = "request_waits"
    UNUSUAL = "unusual_reading"
    BACKUP_FAILS = "backup_fails"
    BACKUP_MISSING = "backup_missing"
    NO_BACKUP = "no_backup"
    FEED = "feed_stale"
    OLD_SOURCE = "source_old"
    ACCESS_ENDS = "access_ends"
    CHANNEL = "channel_fails"


class NamedFact(msgspec.Struct, frozen=True):
    """Something that stands: its id, how it is called, and since when, or until when."""

    about: str
    name: str
    at_ns: int


class BackupFacts(msgspec.Struct, frozen=True):
    """How backups stand.

    Shapes: `every_ns` is `None` where none is scheduled, `made_at_ns` where none was made.
    """

    every_ns: int | None = None
    made_at_ns: int | None = None
    failing_since_ns: int | None = None


class AccessFact(msgspec.Struct, frozen=True):
    """An access that lasts, and when it was given and ends."""

    about: str
    name: str
    given_at_ns: int
    ends_at_ns: int


class AccountFact(msgspec.Struct, frozen=True):
    """An account that no feed fills: the time of its newest record, and of its last import."""

    about: str
    name: str
    newest_ns: int
    imported_at_ns: int


class OwnerFacts(msgspec.Struct, frozen=True):
    """What is looked at for notices; `channels` are those that failed several times in a row."""

    requests: Sequence[NamedFact] = ()
    alarms: Sequence[NamedFact] = ()
    feeds: Sequence[NamedFact] = ()
    channels: Sequence[NamedFact] = ()
    accounts: Sequence[AccountFact] = ()
    accesses: Sequence[AccessFact] = ()
    backups: BackupFacts = msgspec.field(default_factory=BackupFacts)
    records: int = 0


class Cause(msgspec.Struct, frozen=True):
    """Why the owner is told something; kind and `about` know it, `at_ns` is of what it names."""

    kind: NoticeKind
    about: str
    name: str
    at_ns: int

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.kind, self.about


class KindRule(msgspec.Struct, frozen=True):
    """A row of the table of kinds.

    Shapes: `causes` are those that stand by the facts of a moment; a cause is told once it stood
        `after_ns`, and at the earliest `folds_ns` after the last of its kind was told, with all
        that came meanwhile; `page` is where its owner acts.
    """

    causes: Callable[[OwnerFacts, int], Iterable[NamedFact]]
    after_ns: int
    folds_ns: int
    page: str


def _requests(facts: OwnerFacts, now_ns: int) -> Iterable[NamedFact]:
    del now_ns
    return facts.requests


def _alarms(facts: OwnerFacts, now_ns: int) -> Iterable[NamedFact]:
    del now_ns
    return facts.alarms


def _feeds(facts: OwnerFacts, now_ns: int) -> Iterable[NamedFact]:
    del now_ns
    return facts.feeds


def _channels(facts: OwnerFacts, now_ns: int) -> Iterable[NamedFact]:
    del now_ns
    return facts.channels


def _failing_backups(facts: OwnerFacts, now_ns: int) -> Iterator[NamedFact]:
    del now_ns
    backups = facts.backups
    if backups.every_ns is not None and backups.failing_since_ns is not None:
        yield NamedFact("backup", "", backups.failing_since_ns)


def _missing_backups(facts: OwnerFacts, now_ns: int) -> Iterator[NamedFact]:
    """The newest is older than two intervals and a day, and no failure says why."""
    backups = facts.backups
    made_at_ns = backups.made_at_ns
    if backups.every_ns is None or made_at_ns is None or backups.failing_since_ns is not None:
        return
    if now_ns - made_at_ns > 2 * backups.every_ns + DAY_NANOSECONDS:
        yield NamedFact("backup", "", made_at_ns)


def _no_backups(facts: OwnerFacts, now_ns: int) -> Iterator[NamedFact]:
    del now_ns
    backups = facts.backups
    if facts.records and backups.every_ns is None and backups.made_at_ns is None:
        yield NamedFact("backup", "", 0)


def _old_sources(facts: OwnerFacts, now_ns: int) -> Iterator[NamedFact]:
    for each in facts.accounts:
        is_old = now_ns - each.newest_ns > OLD_NS
        if is_old and now_ns - each.imported_at_ns > IMPORTED_LATELY_NS:
            yield NamedFact(each.about, each.name, each.newest_ns)


def _ending_accesses(facts: OwnerFacts, now_ns: int) -> Iterator[NamedFact]:
    for each in facts.accesses:
        is_long = each.ends_at_ns - each.given_at_ns > LONG_ACCESS_NS
        if is_long and 0 < each.ends_at_ns - now_ns <= ENDS_WITHIN_NS:
            yield NamedFact(each.about, each.name, each.ends_at_ns)


KINDS: Mapping[NoticeKind, KindRule] = {
    NoticeKind.UNUSUAL: KindRule(_alarms, 0, 10 * MINUTE_NS, "/owner/"),
    # whoever asked an app to connect answers within a minute, and need not be told
    NoticeKind.REQUEST: KindRule(_requests, MINUTE_NS, 10 * MINUTE_NS, "/owner/"),
    NoticeKind.BACKUP_FAILS: KindRule(_failing_backups, 0, DAY_NANOSECONDS, "/owner/"),
    NoticeKind.BACKUP_MISSING: KindRule(_missing_backups, 0, DAY_NANOSECONDS, "/owner/"),
    NoticeKind.NO_BACKUP: KindRule(
        _no_backups, 7 * DAY_NANOSECONDS, 30 * DAY_NANOSECONDS, "/owner/"
    ),
    NoticeKind.FEED: KindRule(_feeds, 0, 6 * HOUR_NS, "/owner/"),
    NoticeKind.OLD_SOURCE: KindRule(_old_sources, 0, 7 * DAY_NANOSECONDS, "/owner/uploads/exports"),
    NoticeKind.ACCESS_ENDS: KindRule(_ending_accesses, 0, DAY_NANOSECONDS, "/owner/access"),
    NoticeKind.CHANNEL: KindRule(_channels, 0, DAY_NANOSECONDS, "/owner/notices"),
}
"""The table of kinds, the most urgent first."""


def causes(facts: OwnerFacts, now_ns: int) -> tuple[Cause, ...]:
    """Everything that stands now; names cut, and cleaned of what misleads the eye."""
    return tuple(
        Cause(kind, fact.about, shown(fact.name, MOST_NAME_CHARS), fact.at_ns)
        for kind, rule in KINDS.items()
        for fact in rule.causes(facts, now_ns)
    )


class QuietHours(msgspec.Struct, frozen=True):
    """Hours of the owner's day in which nothing is told, in minutes since midnight."""

    from_minute: int
    until_minute: int

    def covers(self, now_ns: int, zone: ZoneInfo) -> bool:
        """Whether they last now, by the clocks of a zone."""
        local = moment_of(now_ns).astimezone(zone)
        minute = local.hour * 60 + local.minute
        if self.from_minute <= self.until_minute:
            return self.from_minute <= minute < self.until_minute
        return minute >= self.from_minute or minute < self.until_minute


def has_passed(since_ns: int, wait_ns: int, now_ns: int) -> bool:
    """Whether a wait is over; one that begins after now is of a clock that was set back."""
    return not since_ns <= now_ns < since_ns + wait_ns


class StandingNotice(msgspec.Struct, frozen=True):
    """A cause since it was noticed, and when each channel was told of it."""

    cause: Cause
    noticed_at_ns: int
    told: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])


class Notice(msgspec.Struct, frozen=True):
    """What a channel is told at once: all causes of a kind that it was not told of yet."""

    kind: NoticeKind
    causes: tuple[Cause, ...]


def due_notices(
    standing: Iterable[StandingNotice],
    channel_id: str,
    last_told: Mapping[str, int],
    off: Iterable[str],
    now_ns: int,
) -> list[Notice]:
    """What a channel is to be told now, the most urgent first.

    Shapes: `last_told` is when it was told of each kind last; `off` are kinds that its owner
        switched off.  A channel is told nothing of itself.
    """
    untold: dict[NoticeKind, list[StandingNotice]] = {}
    for each in standing:
        kind = each.cause.kind
        if channel_id not in each.told and each.cause.about != channel_id and kind not in off:
            untold.setdefault(kind, []).append(each)
    notices: list[Notice] = []
    for kind, rule in KINDS.items():
        waiting = untold.get(kind, [])
        is_due = any(has_passed(each.noticed_at_ns, rule.after_ns, now_ns) for each in waiting)
        if is_due and has_passed(last_told.get(kind, 0), rule.folds_ns, now_ns):
            notices.append(Notice(kind, tuple(each.cause for each in waiting)))
    return notices
