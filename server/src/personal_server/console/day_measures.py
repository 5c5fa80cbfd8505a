"""What was measured on a day, a card for each stream of an account: how many, and its figures.

Rule: what is sampled many times a day would bury the rest of a day, so it stands in figures and not
in rows; which streams those are says their declaration alone.  Counted is what begins on the day,
so that a card and the page that it leads to have the same records.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.texts import Text
from personal_server.console.measurement_lines import adds_up, measure_field
from personal_server.console.presentations import is_sampled, line_fields, place_fields
from personal_server.console.record_figures import (
    VALUES_SHOWN,
    Figure,
    ViewFigures,
    figure_of,
    stretched_time,
    value_counts,
    within_days,
)
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsLayout, RecordsView
from personal_server.console.viewpoints import account_name
from personal_server.console.words import cut, declared_name, field_words
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import MAX_GROUPS, AggregateQuery, Selectors
from personal_server.enforcement.timeline import time_field
from personal_server.reading.aggregates import ShownAggregation, ShownGroup
from personal_server.reading.owner import AuthorityReads

NAME_CHARS = 60


class DayMeasure(msgspec.Struct, frozen=True):
    """Something that was measured, with its records: their sum, or the least and the greatest.

    Shapes: no figure where its values are in no single unit or are none to count with; no `link`
        where that would be too long to open.
    """

    name: Text
    link: str | None
    count: int | None
    total: Decimal | None
    least: Decimal | None
    greatest: Decimal | None
    unit: str


class MeasuredStream(msgspec.Struct, frozen=True):
    """A stream of an account on a day.

    Shapes: `count` is none where counting takes too long, as are `measures`; `others` are records
        of what is not among the measures.
    """

    kind: Text
    account: str
    link: str
    count: int | None
    measures: Sequence[DayMeasure] | None
    others: int
    has_places: bool


def streams_of_day(
    sources: Sequence[ReadableSource],
) -> tuple[tuple[str, ...], list[ReadableSource]]:
    """The streams whose records stand in a day's rows, and the sources that stand in cards.

    A stream is in rows or in cards in every account.
    """
    timed = [source for source in sources if time_field(source) is not None]
    in_rows = {source.stream for source in timed if not _is_in_card(source)}
    return tuple(sorted(in_rows)), [each for each in timed if each.stream not in in_rows]


def _is_in_card(source: ReadableSource) -> bool:
    """Whether it is sampled, and what a day has of it can be counted."""
    is_counted = stretched_time(source) is not None and source.declared.aggregations.count
    return is_counted and is_sampled(source)


def measured_streams(
    reads: AuthorityReads,
    sources: Iterable[ReadableSource],
    day: date,
    zone: ZoneInfo,
    until: float,
) -> list[MeasuredStream]:
    """The cards of a day; none of a stream without records.  Units: as in `ViewFigures`."""
    cards = (_card(reads, source, day, zone, until) for source in sources)
    return [card for card in cards if card.count != 0]


def _card(
    reads: AuthorityReads, source: ReadableSource, day: date, zone: ZoneInfo, until: float
) -> MeasuredStream:
    whole = RecordsView(*source.order)
    view = within_days(whole, source, day, day + timedelta(days=1), zone)
    figures = ViewFigures(reads, view, source, until)
    has_places = place_fields(source) is not None
    count = figures.count()
    fields = line_fields(source)
    kind = next(filter(None, (measure_field(source.declared.properties[n]) for n in fields)), None)
    others: int = 0
    measures: list[DayMeasure] | None = []
    if count and kind is not None and kind in source.declared.groupable and kind in source.fields:
        measures, others = _by_kind(figures, fields[0], kind)
    elif count:
        measures = _by_field(figures, fields)
    layout = RecordsLayout.FIRST if has_places else RecordsLayout.TABLE
    return MeasuredStream(
        kind=declared_name(cut(source.declared.label, NAME_CHARS)),
        account=cut(account_name(source), NAME_CHARS),
        link=replace(view, layout=layout).link,
        count=count,
        measures=measures if count is not None else None,
        others=others,
        has_places=has_places,
    )


def _by_kind(figures: ViewFigures, field: str, kind: str) -> tuple[list[DayMeasure] | None, int]:
    """What a field of the records names, the most frequent first; and how many are of others."""
    source, view = figures.source, figures.view
    counted = figures.aggregate(value_counts(source, view.filters, VALUES_SHOWN, group_by=kind))
    if counted is None:
        return None, 0
    number = source.declared.properties[field]
    counts: dict[str, int] = {}
    for group in counted.groups or ():
        key: object = msgspec.json.decode(group.key)
        if isinstance(key, str) and key:
            counts[key] = group.count
    summed = {key for key in counts if adds_up(source, number, key)}
    wanted = [Metric.SUM] if summed else []
    wanted += [Metric.MIN, Metric.MAX] if len(summed) < len(counts) else []
    found: dict[Metric, Mapping[str, Figure]] = {}
    for metric in wanted:
        values = _values(figures, metric, field, kind)
        if values is None:
            return None, 0
        found[metric] = values
    measures: list[DayMeasure] = []
    for key, count in counts.items():
        metrics = (Metric.SUM,) if key in summed else (Metric.MIN, Metric.MAX)
        by_metric = {m: found[m][key] for m in metrics if key in found[m]}
        link = replace(view, layout=RecordsLayout.TABLE).having(FilterText(kind, None, key)).link
        measures.append(_measure(field_words(cut(key, NAME_CHARS)), link, count, by_metric))
    return measures, (counted.filtered_record_count - sum(counts.values()))


def _by_field(figures: ViewFigures, fields: Sequence[str]) -> list[DayMeasure] | None:
    """Each number of the records."""
    source, view = figures.source, replace(figures.view, layout=RecordsLayout.TABLE)
    measures: list[DayMeasure] = []
    for field in fields:
        is_sum = adds_up(source, source.declared.properties[field], "")
        by_metric: dict[Metric, Figure] = {}
        for metric in (Metric.SUM,) if is_sum else (Metric.MIN, Metric.MAX):
            values = _values(figures, metric, field, None)
            if values is None:
                return None
            by_metric |= {metric: values[""]} if "" in values else {}
        if by_metric:
            measures.append(_measure(field_words(field), view.link, None, by_metric))
    return measures


def _measure(
    name: Text, link: str, count: int | None, by_metric: Mapping[Metric, Figure]
) -> DayMeasure:
    units = {unit for _, unit in by_metric.values()}
    values = {metric: value for metric, (value, _) in by_metric.items()}
    return DayMeasure(
        name,
        link if len(link) <= MOST_LINK_BYTES else None,
        count,
        values.get(Metric.SUM),
        values.get(Metric.MIN),
        values.get(Metric.MAX),
        unit=units.pop() if len(units) == 1 else "",
    )


def _values(
    figures: ViewFigures, metric: Metric, field: str, kind: str | None
) -> Mapping[str, Figure] | None:
    """A figure of each kind, or of all under an empty name; `None` where it takes too long.

    A field that is not declared for the metric has none, nor have values that say their units and
    are in no single one.
    """
    source = figures.source
    if field not in getattr(source.declared.aggregations, metric.value):
        return {}
    query = AggregateQuery(
        source.stream,
        metric.value,
        Selectors(source.connection_id),
        field=field,
        group_by=kind,
        limit=MAX_GROUPS,
        filters=figures.view.filters,
    )
    found = figures.aggregate(query)
    if found is None:
        return None
    keyed: list[tuple[object, ShownGroup | ShownAggregation]] = [("", found)]
    if kind is not None:
        keyed = [(msgspec.json.decode(group.key), group) for group in found.groups or ()]
    has_unit = "x_pdpp_unit_field" in source.declared.properties[field].schema
    values: dict[str, Figure] = {}
    for key, shown in keyed:
        figure = figure_of(shown)
        if isinstance(key, str) and figure is not None and (figure[1] or not has_unit):
            values[key] = figure
    return values
