"""What the clocks of a zone say of a record: when it was, or from when to when; whole days as days.

Rule: it says no more than granted times of the same record do, in another zone.
Source: docs/contract/resource-server.md 2.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, comparable
from personal_server.domain.authority import ReadableSource
from personal_server.domain.local_days import UTC_NAMES, LocalDays, local_days
from personal_server.enforcement.asked_times import end_of, flag_of
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.disclose import Clock
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.timeline import time_field


def silent(row: StoredRecord) -> str | None:  # noqa: ARG001
    """The clock of a zone that nobody named."""
    return None


def clock_of(source: ReadableSource, time_zone: str | None, shown: Collection[str]) -> Clock:
    """What is said of each record of a source, of the shown fields alone.

    Shapes: `Mon 2026-03-09 17:00 to 18:30`, `Tue 2026-03-10 (whole day)`; `None` of a record
        without a time, of one that is dated by a day, and of one in UTC that is no whole day.
    """
    field = time_field(source)
    if time_zone is None or field is None or field.name not in shown:
        return silent
    if field.kind is not ValueKind.INSTANT:
        return silent
    name, zone = field.name, local_days(time_zone)
    end, flag = end_of(field, (source,)), flag_of(field, (source,))
    until = end.name if end is not None and end.name in shown else None

    def clock(row: StoredRecord) -> str | None:
        begun = _instant(row, name)
        if begun is None:
            return None
        over = None if until is None else _instant(row, until)
        if flag is not None and flag in shown and row.data.get(flag) is True:
            return _days(begun, over)
        # a clock of UTC says no more than the record itself
        return None if time_zone in UTC_NAMES else _times(zone, begun, over)

    return clock


def clocks_of(
    read: AuthorizedRead[RecordsPlan], time_zone: str | None
) -> Mapping[str, Clock] | None:
    """The clocks of the records of a list, by connection; `None` where nobody named a zone."""
    if time_zone is None:
        return None
    return {
        source.connection_id: clock_of(source, time_zone, read.shown[source.connection_id])
        for source in read.sources
    }


def _instant(row: StoredRecord, name: str) -> int | None:
    found = comparable(row.data.get(name), ValueKind.INSTANT)
    return found if isinstance(found, int) else None


def _times(zone: LocalDays, begun: int, over: int | None) -> str:
    first = zone.local(begun)
    text = f"{_day(first)} {first:%H:%M}"
    if over is None or over <= begun:
        return text
    last = zone.local(over)
    same = last.date() == first.date()
    return f"{text} to {last:%H:%M}" if same else f"{text} to {_day(last)} {last:%H:%M}"


def _days(begun: int, over: int | None) -> str:
    """Both are midnights (UTC), the second that of the day after the last."""
    utc = local_days("UTC")
    last = begun if over is None else max(begun, over - DAY_NANOSECONDS)
    days = [_day(utc.local(each)) for each in (begun, last)]
    return f"{days[0]} (whole day)" if days[0] == days[1] else f"{' to '.join(days)} (whole days)"


def _day(moment: datetime) -> str:
    return f"{moment:%a} {moment.year:04}-{moment:%m-%d}"
