"""A month as a calendar: its weeks, and on each day what takes place.  Pure.

Rule: days are those of the owner's zone; what lasts several days stands on each of them, and what
lasts whole days stands first.
Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Date, Text, local_moment, moment_of, start_of_day
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, render_instant
from personal_server.console.record_figures import stretched_time
from personal_server.console.record_lists import (
    ListedRecord,
    Records,
    day_of_end,
    listed_record,
    times_of,
    times_words,
)
from personal_server.console.record_view import RecordsLayout, RecordsView
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import Times

EVENTS_A_DAY = 4
LOOKED_BACK_NS = 92 * DAY_NANOSECONDS
_EPOCH = date(1970, 1, 1)
BEGIN_NS = (date.min - _EPOCH).days * DAY_NANOSECONDS
"""Where the calendar begins."""
FIRST_MONTH, LAST_MONTH = date(1, 2, 1), date(9999, 11, 1)
"""Those in whose zones no day leaves the calendar."""


class CalendarEvent(msgspec.Struct, frozen=True):
    """What takes place on a day; `is_begun` where it began on a day before."""

    listed: ListedRecord
    is_begun: bool = False


class CalendarDay(msgspec.Struct, frozen=True):
    """A day of the month: what fits of its events; `more` of them stand at `link`."""

    day: Date
    is_today: bool
    events: tuple[CalendarEvent, ...]
    more: int
    link: str


class CalendarMonth(msgspec.Struct, frozen=True):
    """A month.

    Shapes: `weeks` begin on Monday, with none in the place of a day of another month; `names` are
        seven days that are called as their columns are.
    """

    name: Date
    names: tuple[Date, ...]
    weeks: tuple[tuple[CalendarDay | None, ...], ...]
    earlier: str | None
    later: str | None
    today: str | None
    is_empty: bool


def asked_month(view: RecordsView) -> date | None:
    """The month that the days of a view are, if they are one."""
    if view.since is None or view.until is None or not view.since.endswith("-01"):
        return None
    first = date.fromisoformat(view.since)
    is_month = month_after(first).isoformat() == view.until
    return first if is_month and FIRST_MONTH <= first <= LAST_MONTH else None


def month_after(first: date) -> date:
    """The first day of the next month."""
    return (first + timedelta(days=32)).replace(day=1)


def month_view(view: RecordsView, first: date) -> RecordsView:
    """The view of a month."""
    return replace(view, since=first.isoformat(), until=month_after(first).isoformat())


def month_times(first: date, zone: ZoneInfo) -> Times:
    """The stretch in which all begins that begins in a month of a zone.

    What lasts whole days begins at midnights in UTC, so both are in it.
    """
    begin, end = (_ns_of_day(day, zone) for day in (first, month_after(first)))
    return Times(min(begin), max(end))


def beginning_within(source: ReadableSource, times: Times) -> tuple[FilterText, ...] | None:
    """What is true of what begins in a stretch, so that an index finds it.

    Shapes: `None` where its time is none to filter by.
    """
    dated = stretched_time(source)
    if dated is None:
        return None
    bounds = ((Operator.GTE, times.since_ns), (Operator.LT, times.until_ns))
    return tuple(
        FilterText(dated.name, operator.value, _text_of(at_ns, dated.kind))
        for operator, at_ns in bounds
        if at_ns is not None
    )


def begun_before(source: ReadableSource, times: Times) -> tuple[FilterText, ...]:
    """What is true of what began before a stretch and lasts into it; empty where nothing tells.

    What began three months before is not looked for.
    """
    declared, begin_ns = source.declared, times.since_ns
    end = declared.event_end_field
    if end is None or begin_ns is None or end not in source.fields:
        return ()
    if Operator.GTE.value not in declared.range_filters.get(end, ()):
        return ()
    earlier = Times(max(BEGIN_NS, begin_ns - LOOKED_BACK_NS), begin_ns)
    kind = declared.properties[end].kind
    ends = FilterText(end, Operator.GTE.value, _text_of(begin_ns, kind))
    return *(beginning_within(source, earlier) or ()), ends


def _text_of(at_ns: int, kind: ValueKind | None) -> str:
    """A moment as a filter of that kind names it; of a day that of it in UTC."""
    if kind is ValueKind.DATE:
        return moment_of(at_ns).date().isoformat()
    return render_instant(at_ns)


def day_fields(source: ReadableSource) -> tuple[str, ...]:
    """What says on which day something takes place, beside its time."""
    names = (source.declared.event_end_field, source.declared.whole_days_field)
    return tuple(name for name in names if name in source.fields)


def calendar_of(
    view: RecordsView,
    source: ReadableSource,
    records: Records,
    first: date,
    zone: ZoneInfo,
    today: date,
) -> CalendarMonth:
    """The records of a month, each on its days."""
    days: dict[date, list[tuple[tuple[bool, int], CalendarEvent]]] = {}
    last = month_after(first) - timedelta(days=1)
    for key, data in records:
        begin_ns, end_ns, is_whole = times_of(source, data)
        if begin_ns is None:
            continue
        begins = (moment_of(begin_ns) if is_whole else local_moment(begin_ns, zone)).date()
        ends = _last_day(begins, begin_ns, end_ns, zone, is_whole=is_whole)
        listed = listed_record(view.root, source, key, data)
        times = times_words(begin_ns, end_ns, zone, is_whole=is_whole)
        for day in _days_between(max(begins, first), min(ends, last)):
            event = CalendarEvent(_on_day(listed, times, begins, day), begins < day)
            days.setdefault(day, []).append(((not is_whole, begin_ns), event))
    weeks: list[tuple[CalendarDay | None, ...]] = []
    monday = first - timedelta(days=first.weekday())
    while monday <= last:
        week = (monday + timedelta(days=n) for n in range(7))
        weeks.append(
            tuple(
                _day(view, each, sorted(days.get(each, []), key=lambda p: p[0]), zone, today)
                if each.month == first.month
                else None
                for each in week
            )
        )
        monday += timedelta(days=7)
    before = (first - timedelta(days=1)).replace(day=1)
    this_month = today.replace(day=1)
    return CalendarMonth(
        name=Date(first, "month"),
        names=tuple(Date(date(2024, 1, n), "short_day") for n in range(1, 8)),
        weeks=tuple(weeks),
        earlier=month_view(view, before).link if before >= FIRST_MONTH else None,
        later=month_view(view, month_after(first)).link if first < LAST_MONTH else None,
        today=None if this_month == first else month_view(view, this_month).link,
        is_empty=not days,
    )


def _day(
    view: RecordsView,
    day: date,
    events: list[tuple[tuple[bool, int], CalendarEvent]],
    zone: ZoneInfo,
    today: date,
) -> CalendarDay:
    shown = tuple(event for _, event in events)
    fits = shown if len(shown) <= EVENTS_A_DAY else shown[: EVENTS_A_DAY - 1]
    begin, end = _ns_of_day(day, zone), _ns_of_day(day + timedelta(days=1), zone)
    since, until = moment_of(min(begin)).date(), moment_of(max(end) - 1).date() + timedelta(days=1)
    link = replace(
        view, since=since.isoformat(), until=until.isoformat(), layout=RecordsLayout.DAYS
    ).link
    return CalendarDay(Date(day, "named_day"), day == today, fits, len(shown) - len(fits), link)


def _on_day(listed: ListedRecord, times: Text, begins: date, day: date) -> ListedRecord:
    """An event as it stands on a day: its times where it begins."""
    return replace(listed, times=times if begins == day else "")


def _last_day(
    begins: date, begin_ns: int, end_ns: int | None, zone: ZoneInfo, *, is_whole: bool
) -> date:
    """The last day on which something takes place."""
    lasts = end_ns is not None and end_ns > begin_ns
    if is_whole:
        return moment_of(end_ns - 1 if end_ns is not None and lasts else begin_ns).date()
    return day_of_end(local_moment(end_ns, zone)) if end_ns is not None and lasts else begins


def _days_between(first: date, last: date) -> Iterator[date]:
    """Both among them."""
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _ns_of_day(day: date, zone: ZoneInfo) -> tuple[int, int]:
    """When a day begins in a zone, and in UTC."""
    number = (day - _EPOCH).days
    return start_of_day(number, zone), number * DAY_NANOSECONDS
