"""What was measured, as a line over days, weeks or months, with the table of its figures.

Rule: the declaration says what is measured, in which unit, and whether its values add up: those are
summed, all others have a mean, a least and a greatest.  What does not fit the time of a page is
left out and said to be.  Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Date, Text, local_moment, message
from pdpp_kernel.values import ValueKind, instant_or_day_ns
from personal_server.console.line_drawing import LineDrawing, draw_lines
from personal_server.console.month_calendar import month_after
from personal_server.console.presentations import line_fields
from personal_server.console.record_figures import (
    VALUES_SHOWN,
    ViewFigures,
    figure_of,
    stretched_time,
    value_counts,
    within_days,
)
from personal_server.console.record_view import (
    MOST_LINK_BYTES,
    RecordsLayout,
    RecordsView,
    with_parameters,
)
from personal_server.console.words import cut, field_words
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    AggregateQuery,
    Selectors,
)
from personal_server.enforcement.timeline import time_field
from personal_server.reading.newest_times import newest_time

STEPS: Mapping[str, tuple[int, Text]] = {
    "day": (31, message("by day")),
    "week": (26, message("by week")),
    "month": (24, message("by month")),
}
"""How many of each step a line has, and its name."""
MOST_BUCKETS = 100
NAME_CHARS = 60
FIRST_DAY, LAST_DAY = date(20, 1, 1), date(9980, 1, 1)
"""Those with room around them in the calendar."""
DAYS = {"day": 1, "week": 7, "month": 30}


class LineChoice(msgspec.Struct, frozen=True):
    """Something else to look at: another figure, another kind, another step."""

    words: Text
    link: str
    is_chosen: bool
    count: int | None = None


class LineBucket(msgspec.Struct, frozen=True):
    """A day, week or month of a line: its figure, and the view of its records.

    Shapes: `least` and `greatest` are none of what is summed; `unit` is empty where no single one
        is known.
    """

    begin: Date
    value: Decimal
    least: Decimal | None
    greatest: Decimal | None
    count: int
    unit: str
    link: str


class MeasurementLine(msgspec.Struct, frozen=True):
    """A line with all that can be chosen beside it.

    Shapes: `buckets` is none where counting them takes too long; `drawn` are those in the unit of
        the line, in the order of the points of the drawing.
    """

    name: Text
    unit: str
    is_sum: bool
    buckets: tuple[LineBucket, ...] | None
    drawn: tuple[LineBucket, ...]
    drawing: LineDrawing | None
    first: Date
    last: Date
    step: str
    figures: tuple[LineChoice, ...]
    kinds: tuple[LineChoice, ...] | None
    steps: tuple[LineChoice, ...]
    earlier: str | None
    later: str | None

    @property
    def decimals(self) -> int:
        """How many digits behind the point the figures have, of two."""
        figures = (
            figure
            for each in self.buckets or ()
            for figure in (each.value, each.least, each.greatest)
            if figure is not None
        )
        hundredths = {round(figure * 100) for figure in figures}
        return (
            2 if any(n % 10 for n in hundredths) else 1 if any(n % 100 for n in hundredths) else 0
        )


def line_of(
    figures: ViewFigures, of: str | None, by: str | None, zone: ZoneInfo
) -> MeasurementLine:
    """The line of a field, that of the most frequent kind where none is asked for."""
    source, view = figures.source, figures.view
    fields = line_fields(source)
    field = of if of in fields else fields[0]
    measured = source.declared.properties[field]
    kind_field = measure_field(measured)
    kinds = _kinds(figures, kind_field)
    kind = _asked_kind(view, kind_field)
    narrowed, label = view, kind or ""
    if kind_field is not None and kind is None and kinds:
        first_kind = kinds[0]
        label = first_kind.key
        narrowed = view.having(FilterText(kind_field, None, first_kind.key))
    shown = replace(figures, view=narrowed)
    step = by if by is not None and by in STEPS else _step_of(view)
    of, by = of and field, by and step
    first, last, newest = _stretch(shown, step, zone)
    is_sum = adds_up(source, measured, label)
    buckets = _buckets(shown, measured, (first, last), step, zone, is_sum=is_sum)
    places = _begins(first, last, step)
    unit = next((each.unit for each in reversed(buckets or ()) if each.unit), "")
    drawn = tuple(each for each in buckets or () if each.unit == unit)
    figures_drawn = [
        (
            places.index(each.begin.day),
            each.value,
            each.value if each.least is None else each.least,
            each.value if each.greatest is None else each.greatest,
        )
        for each in drawn
    ]
    span = last - first
    return MeasurementLine(
        name=field_words(cut(label, NAME_CHARS)) if label else field_words(field),
        unit=unit,
        is_sum=is_sum,
        buckets=None if buckets is None else tuple(reversed(buckets)),
        drawn=drawn,
        drawing=draw_lines(figures_drawn, len(places), from_zero=is_sum) if drawn else None,
        first=Date(first),
        last=Date(last - timedelta(days=1)),
        step=step,
        figures=tuple(
            LineChoice(field_words(name), with_parameters(view.link, of=name, by=by), name == field)
            for name in fields
        )
        if len(fields) > 1
        else (),
        kinds=None
        if kinds is None
        else tuple(
            LineChoice(
                field_words(cut(k.key, NAME_CHARS)),
                with_parameters(k.link, by=by),
                k.key == label,
                k.count,
            )
            for k in kinds
        ),
        steps=tuple(
            LineChoice(words, with_parameters(view.undated.link, of=of, by=name), name == step)
            for name, (_, words) in STEPS.items()
        ),
        earlier=_moved(view, first - span, first, of, step) if first - span > FIRST_DAY else None,
        later=_moved(view, last, last + span, of, step)
        if last + span < LAST_DAY and newest is not None and newest >= last
        else None,
    )


class _Kind(msgspec.Struct, frozen=True):
    key: str
    count: int
    link: str


def _kinds(figures: ViewFigures, name: str | None) -> list[_Kind] | None:
    """What is measured, the most frequent first; `None` where that takes too long."""
    source, view = figures.source, figures.view.undated
    if name is None or name not in source.declared.groupable or name not in source.fields:
        return []
    others = replace(view, filters=tuple(each for each in view.filters if each.field != name))
    query = value_counts(source, others.filters, VALUES_SHOWN, group_by=name)
    found = figures.aggregate(query)
    if found is None:
        return None
    kinds: list[_Kind] = []
    for group in found.groups or ():
        key: object = msgspec.json.decode(group.key)
        if isinstance(key, str) and key:
            link = others.having(FilterText(name, None, key)).link
            if len(link) <= MOST_LINK_BYTES:
                kinds.append(_Kind(key, group.count, link))
    return kinds


def _asked_kind(view: RecordsView, name: str | None) -> str | None:
    found = (e.text for e in view.filters if e.field == name and e.operator is None)
    return next(found, None)


def measure_field(number: Property) -> str | None:
    """The property of the same record that says what this number measures."""
    named = number.schema.get("x_pdpp_measure_field")
    return named if isinstance(named, str) else None


def adds_up(source: ReadableSource, number: Property, measured: str) -> bool:
    """Whether its values over a stretch of time are summed, of what the record measures."""
    total = number.schema.get("x_pdpp_total")
    is_total = total is True or (isinstance(total, list) and measured in total)
    return is_total and number.name in source.declared.aggregations.sum


def _step_of(view: RecordsView) -> str:
    """The step in which the days of a view are seen best."""
    if view.since is None or view.until is None:
        return "day"
    days = (date.fromisoformat(view.until) - date.fromisoformat(view.since)).days
    return "day" if days <= 92 else "week" if days <= 700 else "month"


def _stretch(figures: ViewFigures, step: str, zone: ZoneInfo) -> tuple[date, date, date | None]:
    """The first day, the day after the last, and the day of the newest record."""
    view = figures.view
    newest = _newest(figures, zone)
    most = STEPS[step][0]
    if view.until is not None:
        last = date.fromisoformat(view.until)
    else:
        last = min(newest or date(1970, 1, 31), LAST_DAY) + timedelta(days=1)
    last = min(max(last, FIRST_DAY), LAST_DAY)
    if step == "week":
        last += timedelta(days=-last.weekday() % 7)
    elif step == "month" and last.day > 1:
        last = month_after(last.replace(day=1))
    if view.since is not None:
        first = max(date.fromisoformat(view.since), FIRST_DAY)
        first = max(first, last - timedelta(days=MOST_BUCKETS * DAYS[step]))
    else:
        first = last - timedelta(days=most * DAYS[step])
    first = min(first, last - timedelta(days=1))
    if step == "week":
        first -= timedelta(days=first.weekday())
    elif step == "month":
        first = first.replace(day=1)
    return first, last, newest


def _newest(figures: ViewFigures, zone: ZoneInfo) -> date | None:
    source, view = figures.source, figures.view
    dated = time_field(source)
    if dated is None:
        return None
    with suppress(QueryTimeout), figures.opened() as (snapshot, authority):
        ports = figures.reads.ports
        newest = newest_time(ports, snapshot, authority, source, view.filters)
        at_ns = None if newest is None else instant_or_day_ns(newest)
        if at_ns is not None:
            where = UTC if dated.kind is ValueKind.DATE else zone
            return local_moment(at_ns, where).date()
    return None


def _buckets(
    figures: ViewFigures,
    measured: Property,
    days: tuple[date, date],
    step: str,
    zone: ZoneInfo,
    *,
    is_sum: bool,
) -> list[LineBucket] | None:
    """The figures in the order of time; `None` where they take too long."""
    source, view = figures.source, figures.view
    dated = time_field(source)
    if dated is None:
        return []
    bounds = tuple(
        FilterText(dated.name, operator.value, day.isoformat())
        for operator, day in zip((Operator.GTE, Operator.LT), days, strict=True)
        if stretched_time(source) is not None
    )
    aggregations = source.declared.aggregations
    metrics = [Metric.SUM if is_sum else Metric.AVG]
    if not is_sum:
        metrics += [Metric.MIN] if measured.name in aggregations.min else []
        metrics += [Metric.MAX] if measured.name in aggregations.max else []
    found: dict[Metric, dict[date, tuple[Decimal, int, str]]] = {}
    for metric in metrics:
        query = AggregateQuery(
            source.stream,
            metric.value,
            Selectors(source.connection_id),
            field=measured.name,
            group_by_time=dated.name,
            granularity=step,
            time_zone=None if dated.kind is ValueKind.DATE else zone.key,
            limit=MOST_BUCKETS,
            filters=(*view.filters, *bounds),
        )
        answer = figures.aggregate(query)
        if answer is None:
            return None
        of_metric: dict[date, tuple[Decimal, int, str]] = {}
        for group in answer.groups or ():
            key: object = msgspec.json.decode(group.key)
            figure = figure_of(group)
            if isinstance(key, str) and figure is not None:
                value, unit = figure
                of_metric[date.fromisoformat(key)] = (value, group.count, unit)
        if answer.other_count and min(of_metric, default=days[1]) > days[0]:
            return None  # of a time without ranges the newest alone are told
        found[metric] = of_metric
    least, greatest = found.get(Metric.MIN, {}), found.get(Metric.MAX, {})
    return [
        LineBucket(
            Date(begin, "month" if step == "month" else "day"),
            value,
            least[begin][0] if begin in least else None,
            greatest[begin][0] if begin in greatest else None,
            count,
            unit,
            _of_bucket(figures, begin, step, zone),
        )
        for begin, (value, count, unit) in sorted(found[metrics[0]].items())
        if days[0] <= begin < days[1]
    ]


def _of_bucket(figures: ViewFigures, begin: date, step: str, zone: ZoneInfo) -> str:
    """The records of a bucket, as the days of the zone bound them."""
    view = replace(figures.view, layout=RecordsLayout.TABLE)
    return within_days(view, figures.source, begin, _after(begin, step), zone).link


def _after(begin: date, step: str) -> date:
    if step == "month":
        return month_after(begin)
    return begin + timedelta(days=7 if step == "week" else 1)


def _begins(first: date, last: date, step: str) -> list[date]:
    found: list[date] = []
    while first < last:
        found.append(first)
        first = _after(first, step)
    return found


def _moved(view: RecordsView, first: date, last: date, of: str | None, by: str) -> str:
    moved = replace(view, since=first.isoformat(), until=last.isoformat())
    return with_parameters(moved.link, of=of, by=by)
