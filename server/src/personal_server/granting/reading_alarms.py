"""Watching what is read: histories of grants, alarms, and access that waits after one.

Rule: it follows the disclosure log, after the answer and never in its way; an alarm, its audit
event and the pause it may cause are one transaction.  The client is told nothing of it.
Source: docs/contract/resource-server.md 14.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec.structs import asdict

from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.consent.credentials import ALARM, new_id
from personal_server.consent.unusual_reading import (
    CANARY,
    LATELY_MINUTES,
    ReadingNow,
    ReadingPast,
    UnusualReading,
    unusual,
)
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.domain.reading_history import (
    ReadingCount,
    WordSketch,
    by_request,
    count_request,
    searched_words,
)
from personal_server.granting.audit import SERVER, Acting, Subject, audit
from personal_server.granting.pauses import hold_after_alarm
from personal_server.storage.authorization_rows import (
    CanaryRow,
    ReadingAlarmRow,
    ReadingLimitsRow,
    ReadingSpanRow,
    ReadingWordsRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
)

MINUTE, HOUR = 60, 3_600
HOUR_NS = HOUR * NANOSECONDS
KEPT_DAYS = 35
DISMISSED_DAYS = 90
"""As long as superseded tokens: an alarm tells which of their repeats the owner knows of."""
UNSEEN_DAYS = 180
WORDS_DAYS = 30
AGAIN_NS = DAY_NANOSECONDS
CANARY_AGAIN_NS = HOUR_NS
SALT_BYTES = 32

PausePolicy = Literal["never", "canary", "always"]


@dataclass(slots=True)
class ReadingWatch:
    """Takes the entries of the disclosure log once they are written."""

    store: AuthorizationStore
    random_bytes: Callable[[int], bytes]
    pauses: PausePolicy = "never"
    _pasts: dict[str, tuple[int, ReadingPast]] = field(
        default_factory=dict[str, tuple[int, ReadingPast]], init=False
    )

    def __call__(self, entries: Sequence[DisclosureEntry]) -> None:
        """Count what was read under each grant or package, and look whether it is unusual."""
        requests = by_request(entries)
        if not requests:
            return
        with self.store.write() as writer:
            canaries = {
                (row.connection_id, row.stream, row.key): row for row in writer.rows(CanaryRow)
            }
            for held_id in dict.fromkeys(held_of for held_of, _ in requests):
                parts = [
                    reading for (held_of, _), reading in requests.items() if held_of == held_id
                ]
                self._count(writer, held_id, parts)
                for unusual in self._unusual(writer, held_id, parts[-1][-1].at_ns):
                    self._raise(writer, held_id, parts[-1][-1], unusual)
                if canaries:
                    for entry, row in _given_canaries(parts, canaries):
                        self._give(writer, held_id, entry, row)

    def _count(
        self, writer: AuthorizationWriter, held_id: str, parts: Iterable[Sequence[DisclosureEntry]]
    ) -> None:
        spans: dict[tuple[int, int], ReadingCount] = {}
        sketch: tuple[WordSketch, int] | None = None
        for entries in parts:
            at_ns, new = entries[0].at_ns, 0
            words = frozenset[str]().union(*map(searched_words, entries))
            if words:
                past, ends_at_ns = sketch or self._sketch(writer, held_id, at_ns)
                past, new = past.learn(words)
                sketch = past, ends_at_ns
            count = count_request(entries, new)
            for seconds in (MINUTE, HOUR):
                period = (seconds, at_ns - at_ns % (seconds * NANOSECONDS))
                spans[period] = spans.get(period, ReadingCount()) + count
        for (seconds, start_ns), count in spans.items():
            _add(writer, held_id, seconds, start_ns, count)
        if sketch is not None:
            past, ends_at_ns = sketch
            writer.delete(ReadingWordsRow, ReadingWordsRow.held_id.equals(held_id))
            row = ReadingWordsRow(
                held_id=held_id, salt=past.salt, seen=past.seen, ends_at_ns=ends_at_ns
            )
            writer.insert(row)

    def _sketch(
        self, reader: AuthorizationReader, held_id: str, now_ns: int
    ) -> tuple[WordSketch, int]:
        row = reader.get(ReadingWordsRow, ReadingWordsRow.held_id.equals(held_id))
        if row is None or row.ends_at_ns <= now_ns:
            ends_at_ns = now_ns + WORDS_DAYS * DAY_NANOSECONDS
            return WordSketch(self.random_bytes(SALT_BYTES)), ends_at_ns
        return WordSketch(row.salt, row.seen), row.ends_at_ns

    def _unusual(
        self, reader: AuthorizationReader, held_id: str, now_ns: int
    ) -> Iterable[UnusualReading]:
        of_it = ReadingSpanRow.held_id.equals(held_id)
        since = now_ns - LATELY_MINUTES * MINUTE * NANOSECONDS
        today_ns, hour_ns = now_ns - now_ns % DAY_NANOSECONDS, now_ns - now_ns % HOUR_NS
        minutes = reader.rows(
            ReadingSpanRow,
            of_it,
            ReadingSpanRow.seconds.equals(MINUTE),
            ReadingSpanRow.start_ns.above(since),
        )
        hours = reader.rows(
            ReadingSpanRow,
            of_it,
            ReadingSpanRow.seconds.equals(HOUR),
            ReadingSpanRow.start_ns.above(today_ns - 1),
        )
        now = ReadingNow(
            lately=count_of(minutes),
            this_hour=count_of(row for row in hours if row.start_ns == hour_ns),
            today=count_of(hours),
            hour=hour_ns % DAY_NANOSECONDS // HOUR_NS,
        )
        return unusual(now, self._past(reader, held_id, today_ns))

    def _past(self, reader: AuthorizationReader, held_id: str, today_ns: int) -> ReadingPast:
        """The days before today, which do not change while it lasts."""
        past = self._pasts.get(held_id)
        if past is None or past[0] != today_ns:
            if len(self._pasts) > _MOST_PASTS:
                self._pasts.clear()
            past = self._pasts[held_id] = today_ns, past_of(reader, held_id, today_ns)
        return past[1]

    def _give(
        self, writer: AuthorizationWriter, held_id: str, entry: DisclosureEntry, row: CanaryRow
    ) -> None:
        writer.change(
            CanaryRow,
            [CanaryRow.disclosed_at_ns.to(entry.at_ns), CanaryRow.disclosed_to.to(held_id)],
            CanaryRow.connection_id.equals(row.connection_id),
            CanaryRow.stream.equals(row.stream),
            CanaryRow.key.equals(row.key),
        )
        self._raise(writer, held_id, entry, UnusualReading(CANARY, {}))

    def _raise(
        self,
        writer: AuthorizationWriter,
        held_id: str,
        entry: DisclosureEntry,
        reading: UnusualReading,
    ) -> None:
        """An alarm, unless the same one was raised a short while ago and not looked at since."""
        at_ns, is_canary = entry.at_ns, reading.rule == CANARY
        again_ns = CANARY_AGAIN_NS if is_canary else AGAIN_NS
        raised = writer.rows(
            ReadingAlarmRow,
            ReadingAlarmRow.held_id.equals(held_id),
            ReadingAlarmRow.rule.equals(reading.rule),
            ReadingAlarmRow.at_ns.above(at_ns - again_ns),
        )
        if any(not is_canary or row.dismissed_at_ns is None for row in raised):
            return
        own = writer.get(ReadingLimitsRow, ReadingLimitsRow.held_id.equals(held_id))
        waits = self.pauses == "always" or (self.pauses == "canary" and is_canary)
        if own is not None and own.pauses is not None:
            waits = own.pauses
        detail: dict[str, object] = dict(reading.figures)
        if is_canary:
            detail = {"stream": entry.stream}
        subject = _subject(entry)
        audit(writer, "reading.unusual", SERVER, at_ns, subject, rule=reading.rule, **detail)
        if waits:
            hold_after_alarm(writer, held_id, SERVER, at_ns)
        writer.insert(
            ReadingAlarmRow(
                alarm_id=new_id(ALARM, self.random_bytes),
                held_id=held_id,
                client_id=entry.client_id,
                rule=reading.rule,
                at_ns=at_ns,
                detail=detail,
                paused=waits,
            )
        )


_MOST_PASTS = 1_000


def _subject(entry: DisclosureEntry) -> Subject:
    package = entry.package_id
    return Subject(entry.client_id, None if package else entry.grant_id, package)


def _given_canaries(
    parts: Iterable[Sequence[DisclosureEntry]],
    canaries: dict[tuple[str, str, str], CanaryRow],
) -> Iterable[tuple[DisclosureEntry, CanaryRow]]:
    for entries in parts:
        for entry in entries:
            if entry.outcome != SERVED or entry.detail is None:
                continue
            for key in entry.detail.keys:
                row = canaries.get((entry.connection_id or "", entry.stream or "", key))
                if row is not None:
                    yield entry, row


def _add(
    writer: AuthorizationWriter, held_id: str, seconds: int, start_ns: int, count: ReadingCount
) -> None:
    conditions = (
        ReadingSpanRow.held_id.equals(held_id),
        ReadingSpanRow.seconds.equals(seconds),
        ReadingSpanRow.start_ns.equals(start_ns),
    )
    row = writer.get(ReadingSpanRow, *conditions)
    total = count if row is None else count + _count(row)
    writer.delete(ReadingSpanRow, *conditions)
    row = ReadingSpanRow(held_id=held_id, seconds=seconds, start_ns=start_ns, **asdict(total))
    writer.insert(row)


def _count(row: ReadingSpanRow) -> ReadingCount:
    return ReadingCount(*(getattr(row, name) for name in ReadingCount.__struct_fields__))


def count_of(rows: Iterable[ReadingSpanRow]) -> ReadingCount:
    """What spans come to together."""
    total = ReadingCount()
    for row in rows:
        total += _count(row)
    return total


def read_since(reader: AuthorizationReader, held_id: str, since_ns: int) -> ReadingCount:
    """What was read under a grant or package since the beginning of an hour."""
    return count_of(
        reader.rows(
            ReadingSpanRow,
            ReadingSpanRow.held_id.equals(held_id),
            ReadingSpanRow.seconds.equals(HOUR),
            ReadingSpanRow.start_ns.above(since_ns - 1),
        )
    )


def past_of(reader: AuthorizationReader, held_id: str, today_ns: int) -> ReadingPast:
    """The days before today, as far as they are kept."""
    rows = reader.rows(
        ReadingSpanRow,
        ReadingSpanRow.held_id.equals(held_id),
        ReadingSpanRow.seconds.equals(HOUR),
        ReadingSpanRow.start_ns.below(today_ns),
    )
    days: dict[int, int] = {}
    for row in rows:
        day = row.start_ns // DAY_NANOSECONDS
        days[day] = days.get(day, 0) + row.records
    hours = frozenset(row.start_ns % DAY_NANOSECONDS // HOUR_NS for row in rows)
    return ReadingPast(len(days), max(days.values(), default=0), hours)


def open_alarms(
    reader: AuthorizationReader, held_id: str | None = None
) -> tuple[ReadingAlarmRow, ...]:
    """Alarms that their owner has not dismissed, newest first."""
    of_it = () if held_id is None else (ReadingAlarmRow.held_id.equals(held_id),)
    rows = reader.rows(ReadingAlarmRow, ReadingAlarmRow.dismissed_at_ns.equals(None), *of_it)
    return tuple(sorted(rows, key=lambda row: row.at_ns, reverse=True))


def dismiss_alarms(writer: AuthorizationWriter, held_id: str, acting: Acting, now_ns: int) -> int:
    """The owner has seen the alarms of a grant or package; how many there were."""
    rows = open_alarms(writer, held_id)
    writer.change(
        ReadingAlarmRow,
        [ReadingAlarmRow.dismissed_at_ns.to(now_ns)],
        ReadingAlarmRow.held_id.equals(held_id),
        ReadingAlarmRow.dismissed_at_ns.equals(None),
    )
    if rows:
        subject = Subject(rows[0].client_id)
        audit(writer, "reading.dismissed", acting, now_ns, subject, held=held_id, alarms=len(rows))
    return len(rows)


class ReadingFigures(msgspec.Struct, frozen=True):
    """What a grant or package read, what its owner allows it, and what was unusual."""

    today: ReadingCount
    past: ReadingPast
    limits: ReadingLimitsRow
    alarms: tuple[ReadingAlarmRow, ...]


def reading_figures(reader: AuthorizationReader, held_id: str, now_ns: int) -> ReadingFigures:
    """The figures of a grant or package."""
    today_ns = now_ns - now_ns % DAY_NANOSECONDS
    return ReadingFigures(
        today=read_since(reader, held_id, today_ns),
        past=past_of(reader, held_id, today_ns),
        limits=limits_of(reader, held_id),
        alarms=open_alarms(reader, held_id),
    )


def limit_words(limits: ReadingLimitsRow) -> str:
    """What may be read on a day, how long results may be, and whether an alarm pauses it."""
    limits_given = (
        (limits.records_per_day, "records"),
        (limits.requests_per_day, "requests"),
        (limits.bytes_per_day, "bytes"),
    )
    parts = [f"at most {most:,} {noun}" for most, noun in limits_given if most is not None]
    chars = limits.result_chars
    longer = () if chars is None else (f"results of up to {chars:,} characters",)
    pauses = {
        None: (),
        True: ("an alarm pauses this access",),
        False: ("this access goes on when an alarm goes off",),
    }
    notice = ("the app is notified when records change",) if limits.events else ()
    return ", ".join((*(parts or ["no daily limit"]), *longer, *pauses[limits.pauses], *notice))


def limit_reading(
    writer: AuthorizationWriter, limits: ReadingLimitsRow, acting: Acting, now_ns: int
) -> None:
    """What may be read under a grant or package from now on."""
    writer.delete(ReadingLimitsRow, ReadingLimitsRow.held_id.equals(limits.held_id))
    writer.insert(limits)
    audit(
        writer,
        "reading.limited",
        acting,
        now_ns,
        held=limits.held_id,
        records=limits.records_per_day,
        bytes=limits.bytes_per_day,
        requests=limits.requests_per_day,
        pauses=limits.pauses,
        result_chars=limits.result_chars,
        events=limits.events is True,
    )


def limits_of(reader: AuthorizationReader, held_id: str) -> ReadingLimitsRow:
    """What may be read under a grant or package; the owner may have said nothing."""
    row = reader.get(ReadingLimitsRow, ReadingLimitsRow.held_id.equals(held_id))
    return row or ReadingLimitsRow(held_id=held_id)


def forget_reading(writer: AuthorizationWriter, now_ns: int) -> None:
    """Minutes go after an hour, words after 30 days, hours after 35, dismissed alarms after 90.

    An alarm that nobody looked at goes after half a year; its audit event stays.
    """
    minutes, long_ago = now_ns - HOUR_NS, now_ns - KEPT_DAYS * DAY_NANOSECONDS
    seconds, start_ns = ReadingSpanRow.seconds, ReadingSpanRow.start_ns
    writer.delete(ReadingSpanRow, seconds.equals(MINUTE), start_ns.at_most(minutes))
    writer.delete(ReadingSpanRow, start_ns.at_most(long_ago))
    writer.delete(ReadingWordsRow, ReadingWordsRow.ends_at_ns.at_most(now_ns))
    dismissed = now_ns - DISMISSED_DAYS * DAY_NANOSECONDS
    writer.delete(ReadingAlarmRow, ReadingAlarmRow.dismissed_at_ns.at_most(dismissed))
    unseen = now_ns - UNSEEN_DAYS * DAY_NANOSECONDS
    writer.delete(ReadingAlarmRow, ReadingAlarmRow.at_ns.at_most(unseen))
