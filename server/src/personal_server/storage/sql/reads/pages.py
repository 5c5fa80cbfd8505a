"""Pages, single records, children and field windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.operators import Operator
from pdpp_kernel.record import RecordPlace, StoredRecord
from pdpp_kernel.values import Comparable, ValueKind
from personal_server.enforcement.plans import (
    ChildrenPlan,
    KeysPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
)
from personal_server.enforcement.rows import (
    Children,
    Neighbours,
    PlacedRow,
    Position,
    RowPage,
)
from personal_server.storage.row_rules import foreign_value
from personal_server.storage.sql.compiler import Where, with_key
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.source_tables import Reader, ScopedSource

# An index that narrows to fewer lines than this is walked, and its lines are sorted.
FEW = 1_000

# (value, key, id) of a line, and what may follow them.
PagePosition = tuple[Any, str, int]
PageLine = tuple[Any, ...]


def page(reader: Reader, plan: RecordsPlan) -> RowPage:
    """The best of each source, merged; texts are read for the rows of the page only."""
    places = reader.places(plan.scopes)
    is_one = len(plan.scopes) == 1 and reader.session.dialect.waits
    if reader.session.dialect.waits:
        spots = _spots_at_once(reader, places, plan, whole=is_one)
    else:
        spots = [(spot, each) for each in places for spot in _page_spots(reader, each, plan)]
    if len(plan.scopes) > 1:
        spots = _merged(spots, plan.order)
    kept = spots[: plan.limit]
    rows = _carried(reader, kept) if is_one else whole_rows(reader, kept)
    placed = [
        PlacedRow(row, position_of(spot, place, plan.order))
        for spot, place in kept
        if (row := rows.get((place.source.source, spot[2]))) is not None
    ]
    # damaged records take their places, also where a page holds no other
    end = None if len(placed) == len(kept) else position_of(*kept[-1], plan.order)
    return RowPage(tuple(placed), len(spots) > plan.limit, end)


# The walk, by an example: the newest three mails with `tea`.  The word index is read from its end,
# asked for as many lines as are wanted; ids are nearly, but not quite, in the order of time:
#
#   read:    id 93 (12:04)  id 92 (12:04)  id 91 (12:05)   91 was pushed behind its instant's place
#   settled: a line whose place lies at or behind the last id read: no later id comes before it
#
# While fewer lines than wanted are settled, twice as many more are read.  What is returned is
# sorted by time, so that pages laid end to end are the list in order.  Most walks end after the
# first read: only where many lines share a microsecond are places taken.


def record(reader: Reader, plan: RecordPlan) -> tuple[StoredRecord, ...]:
    """The visible record with that key of each source."""
    places = reader.places(plan.scopes)
    asked = [
        (each.source, each.compiler.rows(each.visible() & with_key(plan.key))) for each in places
    ]
    return tuple(
        row
        for (source, _), lines in zip(asked, reader.lines_of_each(asked), strict=True)
        for row in reader.whole_by_id(source, lines).values()
    )


def records(reader: Reader, plans: Sequence[KeysPlan]) -> Mapping[RecordPlace, StoredRecord]:
    """The visible records of each source with these keys."""
    found: dict[RecordPlace, StoredRecord] = {}
    keys = {(plan.scope.connection_id, plan.scope.stream.name): plan.keys for plan in plans}
    places = reader.places(plan.scope for plan in plans)
    asked = [
        (each.source, each.compiler.rows(each.visible() & each.compiler.with_keys(keys[each.name])))
        for each in places
    ]
    for each, lines in zip(places, reader.lines_of_each(asked), strict=True):
        for row in reader.whole_by_id(each.source, lines).values():
            found[(*each.name, row.key)] = row
    return found


def children(reader: Reader, plan: ChildrenPlan) -> Mapping[str, Children]:
    """Children of each parent: one short walk per parent."""
    found: dict[str, Children] = {}
    for place in reader.places([plan.scope]):
        for parent in plan.parent_values:
            where = _child_of(parent, place, plan)
            if where is None:
                continue
            seen = place.visible().free & where
            spots = page_positions(reader, place, seen, plan.order, plan.limit_each)
            if spots:
                kept = [(spot, place) for spot in spots[: plan.limit_each]]
                rows = whole_rows(reader, kept)
                numbers = [(place.source.source, spot[2]) for spot, _ in kept]
                ordered = tuple(rows[number] for number in numbers if number in rows)
                found[parent] = Children(ordered, len(spots) > plan.limit_each)
    return found


def neighbours(reader: Reader, plan: NeighboursPlan) -> Neighbours:
    """One line of the index each way, and both texts at once."""
    conditions, back = (plan.condition,), replace(plan.order, descending=True)
    for place in reader.places([plan.scope]):
        where = place.visible().free & place.compiler.asked(place.scope, conditions)
        nearest = [
            page_positions(
                reader, place, where, order, 0, conditions, plan.position, has_value=True
            )
            for order in (back, plan.order)
        ]
        before, after = (
            spots[0][2] if spots and spots[0][0] is not None else None for spots in nearest
        )
        ids = [number for number in (before, after) if number is not None]
        rows = reader.rows_by_id(place, place.compiler.with_ids(ids)) if ids else {}
        return Neighbours(*(rows.get(number or 0) for number in (before, after)))
    return Neighbours()


def _child_of(parent: str, place: ScopedSource, plan: ChildrenPlan) -> Where | None:
    if plan.foreign_key is None:
        return with_key(parent)
    column = place.compiler.layout.column(plan.foreign_key)
    if column is None:
        return None
    value = foreign_value(parent, column.kind)
    if value is None:
        return None
    return place.compiler.equal(column, value)


def _page_spots(reader: Reader, place: ScopedSource, plan: RecordsPlan) -> list[PagePosition]:
    where = place.matching(plan.conditions)
    return page_positions(reader, place, where, plan.order, plan.limit, plan.conditions, plan.after)


def _spots_at_once(
    reader: Reader, places: Sequence[ScopedSource], plan: RecordsPlan, *, whole: bool
) -> list[tuple[PageLine, ScopedSource]]:
    """The same of all sources, with what else their lines hold."""
    asked = [
        (
            each.source,
            each.compiler.page(
                each.matching(plan.conditions),
                plan.order,
                plan.after,
                (each.source.connection_id, each.source.stream),
                plan.limit + 1,
                whole=whole,
            ),
        )
        for each in places
    ]
    found = zip(places, reader.lines_of_each(asked), strict=True)
    return [(line, place) for place, lines in found for line in lines]


def _carried(
    reader: Reader, kept: list[tuple[PageLine, ScopedSource]]
) -> dict[tuple[int, int], StoredRecord]:
    """Rows by (source, id), of lines that hold them whole."""
    rows = {
        (place.source.source, number): reader.whole(place.source, (number, key, *more))
        for (_, key, number, *more), place in kept
    }
    return {place: row for place, row in rows.items() if row is not None}


def page_positions(
    reader: Reader,
    place: ScopedSource,
    where: Where,
    order: Order,
    limit: int,
    conditions: Sequence[Condition] = (),
    after: Position | None = None,
    *,
    has_value: bool = False,
) -> list[PagePosition]:
    """Up to limit + 1 places of a source, in order; those with a sort value alone, if asked."""
    name, wanted = (place.source.connection_id, place.source.stream), limit + 1
    driver = _driver(reader, place, order, conditions)
    asked, passed_over = wanted, 0
    while True:
        found: list[PagePosition] = []
        before = reader.passed_over
        statements = place.compiler.walk(where, order, after, name, asked, driver)
        for statement in statements[:1] if has_value else statements:
            if len(found) < wanted:
                found += reader.lines(place.source, statement)
        # lines that could not be read took places of others
        if len(found) >= wanted or reader.passed_over - before == passed_over:
            return found
        passed_over = reader.passed_over - before
        asked = wanted + passed_over


def _driver(
    reader: Reader, place: ScopedSource, order: Order, conditions: Sequence[Condition]
) -> Column | None:
    """The column whose index is walked: one that narrows to few lines, else one in order.

    `None` leaves the choice to the database: nothing but the order is bounded.
    """
    if not reader.session.dialect.steers:
        return None
    compiler = place.compiler
    bounds = compiler.bounds(place.scope, conditions)
    bounds.pop(compiler.layout.column(order.field, order.kind), None)  # type: ignore[arg-type]
    if not bounds or place.scope.is_picked:
        return None
    exact = {c.field for c in conditions if c.operator is Operator.EQ}
    in_order = [c for c in bounds if c.field in exact and compiler.keeps_order(c, order)]
    if in_order and len(bounds) == 1:
        return in_order[0]
    sizes = {c: reader.value(compiler.probe(c, w, FEW)) for c, w in bounds.items()}
    best = min(sizes, key=lambda column: int(str(sizes[column])))
    if int(str(sizes[best])) < FEW:
        return best
    sorted_by = compiler.layout.column(order.field, order.kind)
    if in_order:
        return in_order[0]
    return sorted_by if sorted_by is not None and sorted_by.indexed else None


def _merged(
    spots: list[tuple[PagePosition, ScopedSource]], order: Order
) -> list[tuple[PagePosition, ScopedSource]]:
    down = order.descending
    spots.sort(key=lambda each: (each[0][1], each[1].source.connection_id), reverse=down)
    valued = [each for each in spots if each[0][0] is not None]
    valued.sort(key=lambda each: each[0][0], reverse=down)
    return valued + [each for each in spots if each[0][0] is None]


def whole_rows(
    reader: Reader, kept: list[tuple[PagePosition, ScopedSource]]
) -> dict[tuple[int, int], StoredRecord]:
    """Rows by (source, id)."""
    wanted: dict[int, tuple[ScopedSource, list[int]]] = {}
    for spot, place in kept:
        wanted.setdefault(place.source.source, (place, []))[1].append(spot[2])
    asked = [
        (place.source, place.compiler.rows(place.compiler.with_ids(ids)))
        for place, ids in wanted.values()
    ]
    return {
        (source.source, number): row
        for (source, _), lines in zip(asked, reader.lines_of_each(asked), strict=True)
        for number, row in reader.whole_by_id(source, lines).items()
    }


def position_of(spot: PagePosition, place: ScopedSource, order: Order) -> Position:
    """Where a page goes on behind a line: its sort value, key, connection and stream."""
    value: Comparable | None = spot[0]
    if order.kind is ValueKind.BOOLEAN and value is not None:
        value = bool(value)
    if order.kind is ValueKind.INSTANT and isinstance(value, float):
        value = int(value)
    return Position(value, spot[1], place.source.connection_id, place.source.stream)
