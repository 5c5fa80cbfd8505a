"""Figures of a view of records: how many, by month, by the values of a few fields.

Rule: counts are exact or they are not there: what does not fit the time of a page is left out.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import cast
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Date, Text, message, start_of_day
from pdpp_kernel.values import ValueKind, day_number, render_instant
from personal_server.console.record_values import brief, joining_fields
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsView
from personal_server.console.words import cut, field_words
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    AggregateQuery,
    FieldSelection,
    RecordsQuery,
    Selectors,
)
from personal_server.enforcement.timeline import time_field
from personal_server.reading.aggregates import ShownAggregation, ShownGroup, read_aggregate
from personal_server.reading.owner import AuthorityReads
from personal_server.reading.records import read_records
from personal_server.storage.derived import once
from personal_server.storage.ports.snapshots import ReadSnapshot

FIGURES_SECONDS, WANTED_SECONDS, LEAST_SECONDS = 0.2, 10.0, 0.01
MONTHS_SHOWN, YEARS_SHOWN, VALUES_SHOWN, FACETS_SHOWN, FACETS_TRIED = 24, 20, 8, 3, 5
VALUE_CHARS, UNIT_CHARS = 60, 60
Figure = tuple[Decimal, str]
"""A value and its unit, which is empty where no single one is known."""
NO_VALUE = message("none")
_STRETCH = {Operator.GTE.value, Operator.LT.value}
_EPOCH = date(1970, 1, 1).toordinal()


class FacetValue(msgspec.Struct, frozen=True):
    """A value, or a stretch of time, with its records; `link` shows those alone."""

    words: Text
    count: int
    link: str | None
    height: int = 0
    chosen: bool = False


class Facet(msgspec.Struct, frozen=True):
    """A field with its most frequent values, if they were `counted` in time."""

    words: str
    values: tuple[FacetValue, ...]
    others: int = 0
    counted: bool = True


class ViewFigures(msgspec.Struct, frozen=True):
    """The figures of one view.  Units: `until` on the monotonic clock, in seconds."""

    reads: AuthorityReads
    view: RecordsView
    source: ReadableSource
    until: float

    def count(self) -> int | None:
        """How many records a view has, where that is counted in time."""
        query = RecordsQuery(
            self.source.stream,
            Selectors(self.source.connection_id),
            limit=1,
            filters=self.view.filters,
            times=self.view.times,
            cut=FieldSelection(self.source.declared.primary_key),
            count=True,
        )
        with suppress(QueryTimeout), self.opened() as (snapshot, authority):
            count = read_records(self.reads.ports, snapshot, authority, query).count
            return None if count is None else count.value
        return None

    def facets(self) -> list[Facet]:
        """The values of up to three fields that are declared for groups and say something."""
        declared = self.source.declared
        if not declared.aggregations.count:
            return []
        conditions = with_times(self.view, self.source)
        if conditions is None:
            return []
        joining = joining_fields(declared)
        granted = (n for n in declared.aggregations.group_by if n in self.source.fields)
        names = [n for n in granted if n not in joining][:FACETS_TRIED]
        facets = (self._facet(name, conditions) for name in names)
        telling = (facet for facet in facets if not facet.counted or _tells(facet))
        return list(islice(telling, FACETS_SHOWN))

    def _facet(self, name: str, conditions: tuple[FilterText, ...]) -> Facet:
        query = value_counts(self.source, conditions, VALUES_SHOWN, group_by=name)
        aggregation = self.aggregate(query)
        if aggregation is None:
            return Facet(field_words(name), (), counted=False)
        kind = self.source.declared.properties[name].kind
        values = tuple(
            _facet_value(self.view, name, kind, group) for group in aggregation.groups or ()
        )
        return Facet(field_words(name), values, aggregation.other_count or 0)

    def months(self) -> Facet | None:
        """The records of a view by month, whatever its time; by year where there are too many."""
        dated, declared = time_field(self.source), self.source.declared.aggregations
        if dated is None or dated.name not in declared.group_by_time or not declared.count:
            return None
        steps = (("month", MONTHS_SHOWN), ("year", YEARS_SHOWN))
        around = _whole_years(self.view, self.source)
        granularity, aggregation = "month", None
        for granularity, limit in steps[:1] if around else steps:
            query = value_counts(
                self.source,
                (*self.view.filters, *around),
                limit,
                group_by_time=dated.name,
                granularity=granularity,
            )
            aggregation = self.aggregate(query)
            if aggregation is None:
                return Facet("month", (), counted=False)
            if not aggregation.other_count:
                break
        all_groups = (aggregation.groups if aggregation else None) or ()
        groups = [group for group in all_groups if group.start is not None]
        most = max((group.count for group in groups), default=1)
        bars = tuple(_bar(self.view, group, granularity, most) for group in groups)
        return Facet(granularity, bars, (aggregation.other_count if aggregation else None) or 0)

    def aggregate(self, query: AggregateQuery) -> ShownAggregation | None:
        """The aggregate, where there is time for it; of a whole stream, which only the owner reads,
        once for each state.
        """

        def ask() -> ShownAggregation:
            answer = read_aggregate(self.reads.ports, snapshot, authority, query)
            return cast("ShownAggregation", answer.data)

        with suppress(QueryTimeout), self.opened() as (snapshot, authority):
            is_whole = not query.filters and self.source.grant_id is None
            return once(snapshot.derived, query, ask) if is_whole else ask()
        return None

    @contextmanager
    def opened(self) -> Generator[tuple[ReadSnapshot, ReadAuthority], None, None]:
        """A state of the store for as long as there is time.  Raises: QueryTimeout."""
        seconds_left = self.until - time.monotonic()
        if seconds_left < LEAST_SECONDS:
            raise QueryTimeout("Counting these records took too long.")
        with self.reads.open(seconds_left) as state:
            yield state


def _tells(facet: Facet) -> bool:
    return any(value.words != NO_VALUE for value in facet.values[:1])


def figure_of(shown: ShownGroup | ShownAggregation) -> Figure | None:
    """The figure of a group, or of all; none where its values are none to count with."""
    text = bytes(shown.value).decode() if isinstance(shown.value, msgspec.Raw) else ""
    if text in ("", "null"):
        return None
    return Decimal(text), cut(shown.unit, UNIT_CHARS) if isinstance(shown.unit, str) else ""


def stretched_time(source: ReadableSource) -> Property | None:
    """The time of a stream, where its records can be filtered by a stretch of it."""
    dated = time_field(source)
    ranges = () if dated is None else source.declared.range_filters.get(dated.name, ())
    return dated if {*ranges} >= _STRETCH else None


def _whole_years(view: RecordsView, source: ReadableSource) -> tuple[FilterText, ...]:
    """The years that the days of a view lie in, as conditions; none where it names no days."""
    dated = stretched_time(source)
    if view.since is None or dated is None:
        return ()
    begin = FilterText(dated.name, Operator.GTE.value, f"{view.since[:4]}-01-01")
    if view.until is None or view.until <= view.since or view.until >= "9999":
        return (begin,)
    last = (date.fromisoformat(view.until) - timedelta(days=1)).year
    return (begin, FilterText(dated.name, Operator.LT.value, f"{last + 1:04}-01-01"))


def with_times(view: RecordsView, source: ReadableSource) -> tuple[FilterText, ...] | None:
    """The conditions of a view, its days among them; `None` where those cannot be written so."""
    dated = time_field(source)
    bounds = ((Operator.GTE.value, view.since), (Operator.LT.value, view.until))
    filters = [(operator, text) for operator, text in bounds if text]
    if not filters:
        return view.filters
    ranges = () if dated is None else source.declared.range_filters.get(dated.name, ())
    if dated is None or any(operator not in ranges for operator, _ in filters):
        return None
    added = tuple(FilterText(dated.name, operator, text) for operator, text in filters)
    return (*view.filters, *added)


def within_days(
    view: RecordsView, source: ReadableSource, first: date, after: date, zone: ZoneInfo
) -> RecordsView:
    """What of a view begins from one day to the day before another, by the clocks of a zone.

    Of a time without ranges it is days of UTC, as `since` and `until` are.
    """
    dated = stretched_time(source)
    if dated is None:
        return replace(view, since=first.isoformat(), until=after.isoformat())
    texts = (
        day.isoformat()
        if dated.kind is ValueKind.DATE
        else render_instant(start_of_day(day.toordinal() - _EPOCH, zone))
        for day in (first, after)
    )
    bounds = (
        FilterText(dated.name, operator.value, text)
        for operator, text in zip((Operator.GTE, Operator.LT), texts, strict=True)
    )
    return view.undated.having(*bounds)


def value_counts(
    source: ReadableSource, filters: tuple[FilterText, ...], limit: int, **grouping: str
) -> AggregateQuery:
    """The question how many records each group has."""
    return AggregateQuery(
        source.stream,
        "count",
        Selectors(source.connection_id),
        limit=limit,
        filters=filters,
        **grouping,
    )


def _facet_value(
    view: RecordsView, name: str, kind: ValueKind | None, group: ShownGroup
) -> FacetValue:
    key: object = msgspec.json.decode(group.key)
    if key is None:
        filter_text, words = (
            FilterText(name, Operator.EXISTS.value, "false"),
            cast("Text", NO_VALUE),
        )
    else:
        text = key if isinstance(key, str) else msgspec.json.encode(key).decode()
        label = group.label if isinstance(group.label, str) else None
        filter_text, words = FilterText(name, None, text), label or brief(key, kind, VALUE_CHARS)
    link = view.having(filter_text).link
    chosen = filter_text in view.filters
    fits = len(link) <= MOST_LINK_BYTES
    shown = (cut(words, VALUE_CHARS) or message("(empty)")) if type(words) is str else words
    return FacetValue(shown, group.count, link if fits and not chosen else None, chosen=chosen)


BAR_HEIGHT = 36


def _bar(view: RecordsView, group: ShownGroup, granularity: str, most: int) -> FacetValue:
    """A month or year of a time line, whose link shows it alone."""
    begin = str(msgspec.json.decode(group.key))
    year, month = int(begin[:4]), int(begin[5:7])
    after = (year + 1, 1) if granularity == "year" or month == 12 else (year, month + 1)
    until = f"{after[0]:04}-{after[1]:02}-01"
    link = replace(view, since=begin, until=until).link
    words = Date(date(year, month, 1), granularity)
    height = max(1, round(BAR_HEIGHT * group.count / most))
    chosen = (view.since, view.until) == (begin, until)
    ends = day_number(until) is not None  # no day follows the last year of the calendar
    return FacetValue(words, group.count, link if ends else None, height, chosen)
