"""Records of several streams in the order of time, also those that hold words."""

from __future__ import annotations

from typing import Any

from pdpp_kernel.criteria import Condition, Order, WordQuery
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.enforcement.named_fields import conditions_in, words_in
from personal_server.enforcement.plans import TimelinePlan
from personal_server.enforcement.rows import PlacedRow, Position, RowPage
from personal_server.enforcement.scopes import TimedScope
from personal_server.storage.row_rules import granted_lexical_fields
from personal_server.storage.sql.compiler import MAX_ID, Where
from personal_server.storage.sql.reads.figures import lines_with
from personal_server.storage.sql.reads.pages import (
    PagePosition,
    page_positions,
    position_of,
    whole_rows,
)
from personal_server.storage.sql.reads.whole_days import days_after, start_of_day
from personal_server.storage.sql.record_ids import FIRST_IN_TIME, WIDEST_PROBE, place_in_time
from personal_server.storage.sql.source_tables import Reader, ScopedSource


def timeline(reader: Reader, plan: TimelinePlan) -> RowPage:
    """The next of each source by the index of its time, merged; texts are read of the page only."""
    spots: list[tuple[Position, PagePosition, ScopedSource]] = []
    timed = {(t.scope.connection_id, t.scope.stream.name): t for t in plan.scopes}
    for scoped in reader.places(t.scope for t in plan.scopes):
        timed_scope = timed[scoped.source.connection_id, scoped.source.stream]
        spots += [
            (_instant_position(spot, scoped, timed_scope.order), spot, scoped)
            for spot in _timed_spots(reader, scoped, timed_scope, plan)
        ]
    spots.sort(key=lambda spot: _in_time(spot[0]), reverse=plan.descending)
    page_spots = spots[: plan.limit]
    rows = whole_rows(reader, [(spot, scoped) for _, spot, scoped in page_spots])
    placed = [
        PlacedRow(row, position)
        for position, spot, scoped in page_spots
        if (row := rows.get((scoped.source.source, spot[2]))) is not None
    ]
    end = None if len(placed) == len(page_spots) else page_spots[-1][0]
    return RowPage(tuple(placed), len(spots) > plan.limit, end)


def _timed_spots(
    reader: Reader, scoped: ScopedSource, timed: TimedScope, plan: TimelinePlan
) -> list[PagePosition]:
    where, order = scoped.matching(timed.conditions), timed.order
    after = plan.after
    if after is not None and order.kind is ValueKind.DATE:
        after = days_after(after, order.days)
    if plan.words is not None:
        walk = _WordWalk(reader, scoped, timed, plan.words, after)
        if walk.is_possible:
            return walk.spots(plan.limit + 1)
        where &= lines_with(reader, scoped, plan.words)
    spots = page_positions(
        reader, scoped, where, order, plan.limit, timed.conditions, after, has_value=True
    )
    return [spot for spot in spots if spot[0] is not None]


# How the walk ends.  The index of words is walked by its ids, since an id stands where its time
# does (`place_in_time`), or behind it by `WIDEST_PROBE` (P) at most where others had the place.
# So ids are nearly in the order of time, and a page has to be exactly in it:
#
#   time     09:00      09:00      09:00      09:01                 three mails of one instant
#   id       1000       1003       1009       1060                  place 1000 of the first three
#
#   in:   two mails with "rain" from the oldest on; what was read ends with id 1003
#   out:  oldest first: an id still to come, 1004 or higher, may have any place from 1004 - P on, so
#         that those are settled whose place is at most 1003 - P: none yet, and twice as many lines
#         are read next.  Newest first: an id still to come has no place behind its own, so that all
#         are settled whose place is at or behind the last id read.
# What is settled is sorted by time and key and cut to the page; the rest is read with the next.


class _WordWalk:
    """The lines of a source that hold words, in the order of time: ids of the index stand in it.

    A line whose place in time was taken stands a little behind it, so that one is in its turn only
    where no id that is still to come may have an earlier place.
    """

    def __init__(
        self,
        reader: Reader,
        scoped: ScopedSource,
        timed: TimedScope,
        words: WordQuery,
        after: Position | None,
    ) -> None:
        self._reader, self._place, self._order, self._after = reader, scoped, timed.order, after
        scope = scoped.scope
        self._words = words_in(words, scope.stream, scope.fields)
        named_fields = conditions_in(words, scope.stream, scope.fields)
        self._where = scoped.matching((*timed.conditions, *named_fields))
        self._bounds = timed.conditions
        self._fields = granted_lexical_fields(scope)

    @property
    def is_possible(self) -> bool:
        """Whether the index knows all words, knows no hidden record, and stands in this order."""
        compiler = self._place.compiler
        layout = compiler.layout
        column = layout.column(layout.placed)
        is_placed = column is not None and column.field == self._order.field and column.indexed
        days = self._order.days
        is_placed = is_placed and not (days is not None and days.flag)
        knows_all = compiler.is_indexed and set(self._fields) <= set(layout.lexical)
        return is_placed and knows_all and not self._place.scope.is_picked

    def spots(self, limit: int) -> list[PagePosition]:
        """The next ones."""
        positions: list[PagePosition] = []
        limit_now, passed_over = limit, self._reader.passed_over
        first, last = self._ends()
        while True:
            lines = self._lines(first, last, limit_now)
            positions += lines
            read = len(lines) + self._reader.passed_over - passed_over
            passed_over = self._reader.passed_over
            if read < limit_now or not lines:
                return self._in_order(positions)
            end = lines[-1][2]
            first, last = (first, end - 1) if self._order.descending else (end + 1, last)
            if sum(self._is_settled(spot, end) for spot in positions) >= limit:
                settled = [spot for spot in positions if self._is_settled(spot, end)]
                return self._in_order(settled)[:limit]
            limit_now *= 2

    def _is_settled(self, spot: PagePosition, end: int) -> bool:
        """Whether none that stands behind the last id read comes before it."""
        at = self._place_of(spot[0])
        return at >= end if self._order.descending else at <= end - WIDEST_PROBE

    def _place_of(self, value: Any) -> int:
        unit = DAY_NANOSECONDS if self._order.kind is ValueKind.DATE else 1
        return place_in_time(int(value) * unit, 0, self._place.compiler.layout)

    def _ends(self) -> tuple[int, int]:
        """Between which ids the lines lie."""
        after = None if self._after is None else self._after.value
        since = [c.value for c in self._bounds if c.operator is Operator.GTE and self._is_time(c)]
        until = [c.value for c in self._bounds if c.operator is Operator.LT and self._is_time(c)]
        (until if self._order.descending else since).extend([] if after is None else [after])
        first = max(map(self._place_of, since), default=FIRST_IN_TIME)
        last = min((self._place_of(value) + WIDEST_PROBE for value in until), default=MAX_ID)
        return first, min(last, MAX_ID)

    def _is_time(self, condition: Condition) -> bool:
        return condition.field == self._order.field

    def _lines(self, first: int, last: int, limit: int) -> list[PagePosition]:
        compiler, source = self._place.compiler, self._place.source
        indexes = {name: compiler.layout.lexical.index(name) for name in self._fields}
        scope = self._place.scope
        where = compiler.words(self._words, indexes, scope=scope) & compiler.stretch(scope)
        where &= Where(("f.rowid >= ?", "f.rowid <= ?"), (first, last)) & self._where
        name = (source.connection_id, source.stream)
        return self._reader.lines(
            source, compiler.walk_of_words(where, self._order, self._after, name, limit)
        )

    def _in_order(self, positions: list[PagePosition]) -> list[PagePosition]:
        return sorted(positions, key=lambda position: position[:2], reverse=self._order.descending)


def _instant_position(spot: PagePosition, scoped: ScopedSource, order: Order) -> Position:
    position = position_of(spot, scoped, order)
    is_day = order.kind is ValueKind.DATE
    return position._replace(value=start_of_day(int(spot[0]), order.days)) if is_day else position


def _in_time(position: Position) -> tuple[Any, str, str, str]:
    return (position.value, position.key, *position.place)
