"""Pages, single records, children and field windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

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
from personal_server.storage.sql.reads.whole_days import with_whole_days
from personal_server.storage.sql.source_tables import Reader, ScopedSource

# An index that narrows to fewer lines than this is walked, and its lines are sorted.
FEW = 1_000

# (value, key, id) of a line, and what may follow them.
PagePosition = tuple[Any, str, int]
PageLine = tuple[Any, ...]


def page(reader: Reader, plan: RecordsPlan) -> RowPage:
    """The best of each source, merged; texts are read for the rows of the page only."""
    sources = reader.places(plan.scopes)
    at_once = reader.session.dialect.waits and plan.order.days is None
    is_one = len(plan.scopes) == 1 and at_once
    if at_once:
        spots = _spots_at_once(reader, sources, plan, whole=is_one)
    else:
        spots = [(spot, scoped) for scoped in sources for spot in _page_spots(reader, scoped, plan)]
    if len(plan.scopes) > 1:
        spots = _merged(spots, plan.order)
    page_spots = spots[: plan.limit]
    rows = _carried(reader, page_spots) if is_one else whole_rows(reader, page_spots)
    placed = [
        PlacedRow(row, position_of(spot, scoped, plan.order))
        for spot, scoped in page_spots
        if (row := rows.get((scoped.source.source, spot[2]))) is not None
    ]
    # damaged records take their places, also where a page holds no other
    end = None if len(placed) == len(page_spots) else position_of(*page_spots[-1], plan.order)
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
    sources = reader.places(plan.scopes)
    statements = [
        (scoped.source, scoped.compiler.rows(scoped.visible() & with_key(plan.key)))
        for scoped in sources
    ]
    return tuple(
        row
        for (source, _), lines in zip(statements, reader.lines_of_each(statements), strict=True)
        for row in reader.whole_by_id(source, lines).values()
    )


def records(reader: Reader, plans: Sequence[KeysPlan]) -> Mapping[RecordPlace, StoredRecord]:
    """The visible records of each source with these keys."""
    by_place: dict[RecordPlace, StoredRecord] = {}
    keys = {(plan.scope.connection_id, plan.scope.stream.name): plan.keys for plan in plans}
    sources = reader.places(plan.scope for plan in plans)
    statements = [
        (
            scoped.source,
            scoped.compiler.rows(scoped.visible() & scoped.compiler.with_keys(keys[scoped.name])),
        )
        for scoped in sources
    ]
    for scoped, lines in zip(sources, reader.lines_of_each(statements), strict=True):
        for row in reader.whole_by_id(scoped.source, lines).values():
            by_place[(*scoped.name, row.key)] = row
    return by_place


def children(reader: Reader, plan: ChildrenPlan) -> Mapping[str, Children]:
    """Children of each parent: one short walk per parent."""
    by_parent: dict[str, Children] = {}
    for scoped in reader.places([plan.scope]):
        for parent in plan.parent_values:
            where = _child_of(parent, scoped, plan)
            if where is None:
                continue
            visible = scoped.visible().free & where
            spots = page_positions(reader, scoped, visible, plan.order, plan.limit_each)
            if spots:
                page_spots = [(spot, scoped) for spot in spots[: plan.limit_each]]
                rows = whole_rows(reader, page_spots)
                numbers = [(scoped.source.source, spot[2]) for spot, _ in page_spots]
                ordered = tuple(rows[number] for number in numbers if number in rows)
                by_parent[parent] = Children(ordered, len(spots) > plan.limit_each)
    return by_parent


def neighbours(reader: Reader, plan: NeighboursPlan) -> Neighbours:
    """One line of the index each way, and both texts at once."""
    conditions, back = (plan.condition,), replace(plan.order, descending=True)
    for scoped in reader.places([plan.scope]):
        where = scoped.visible().free & scoped.compiler.asked(scoped.scope, conditions)
        nearest = [
            page_positions(
                reader, scoped, where, order, 0, conditions, plan.position, has_value=True
            )
            for order in (back, plan.order)
        ]
        before, after = (
            spots[0][2] if spots and spots[0][0] is not None else None for spots in nearest
        )
        ids = [number for number in (before, after) if number is not None]
        rows = reader.rows_by_id(scoped, scoped.compiler.with_ids(ids)) if ids else {}
        return Neighbours(*(rows.get(number or 0) for number in (before, after)))
    return Neighbours()


def _child_of(parent: str, scoped: ScopedSource, plan: ChildrenPlan) -> Where | None:
    if plan.foreign_key is None:
        return with_key(parent)
    column = scoped.compiler.layout.column(plan.foreign_key)
    if column is None:
        return None
    value = foreign_value(parent, column.kind)
    if value is None:
        return None
    return scoped.compiler.equal(column, value)


def _page_spots(reader: Reader, scoped: ScopedSource, plan: RecordsPlan) -> list[PagePosition]:
    where = scoped.matching(plan.conditions)
    return page_positions(
        reader, scoped, where, plan.order, plan.limit, plan.conditions, plan.after
    )


def _spots_at_once(
    reader: Reader, sources: Sequence[ScopedSource], plan: RecordsPlan, *, whole: bool
) -> list[tuple[PageLine, ScopedSource]]:
    """The same of all sources, with what else their lines hold."""
    statements = [
        (
            scoped.source,
            scoped.compiler.page(
                scoped.matching(plan.conditions),
                plan.order,
                plan.after,
                (scoped.source.connection_id, scoped.source.stream),
                plan.limit + 1,
                whole=whole,
            ),
        )
        for scoped in sources
    ]
    answers = zip(sources, reader.lines_of_each(statements), strict=True)
    return [(line, scoped) for scoped, lines in answers for line in lines]


def _carried(
    reader: Reader, page_spots: list[tuple[PageLine, ScopedSource]]
) -> dict[tuple[int, int], StoredRecord]:
    """Rows by (source, id), of lines that hold them whole."""
    rows = {
        (scoped.source.source, number): reader.whole(scoped.source, (number, key, *more))
        for (_, key, number, *more), scoped in page_spots
    }
    return {row_place: row for row_place, row in rows.items() if row is not None}


def page_positions(
    reader: Reader,
    scoped: ScopedSource,
    where: Where,
    order: Order,
    limit: int,
    conditions: Sequence[Condition] = (),
    after: Position | None = None,
    *,
    has_value: bool = False,
) -> list[PagePosition]:
    """Up to limit + 1 places of a source, in order; those with a sort value alone, if asked."""
    if order.days is not None and order.days.flag:

        def walk(which: Where, by: Order, behind: Position | None) -> list[PagePosition]:
            return page_positions(
                reader, scoped, which, by, limit, conditions, behind, has_value=has_value
            )

        return with_whole_days(scoped, where, order, after, walk)
    name, limit_wanted = (scoped.source.connection_id, scoped.source.stream), limit + 1
    driver = _driver(reader, scoped, order, conditions)
    limit_now, passed_over = limit_wanted, 0
    while True:
        positions: list[PagePosition] = []
        before = reader.passed_over
        statements = scoped.compiler.walk(where, order, after, name, limit_now, driver)
        for statement in statements[:1] if has_value else statements:
            if len(positions) < limit_wanted:
                positions += reader.lines(scoped.source, statement)
        # lines that could not be read took places of others
        if len(positions) >= limit_wanted or reader.passed_over - before == passed_over:
            return positions
        passed_over = reader.passed_over - before
        limit_now = limit_wanted + passed_over


def _driver(
    reader: Reader, scoped: ScopedSource, order: Order, conditions: Sequence[Condition]
) -> Column | None:
    """The column whose index is walked: one that narrows to few lines, else one in order.

    `None` leaves the choice to the database: nothing but the order is bounded.
    """
    if not reader.session.dialect.steers:
        return None
    compiler = scoped.compiler
    bounds = compiler.bounds(scoped.scope, conditions)
    bounds.pop(compiler.layout.column(order.field, order.kind), None)  # type: ignore[arg-type]
    if not bounds or scoped.scope.is_picked:
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
    spots.sort(key=lambda spot: (spot[0][1], spot[1].source.connection_id), reverse=down)
    valued = [spot for spot in spots if spot[0][0] is not None]
    valued.sort(key=lambda spot: spot[0][0], reverse=down)
    return valued + [spot for spot in spots if spot[0][0] is None]


def whole_rows(
    reader: Reader, page_spots: list[tuple[PagePosition, ScopedSource]]
) -> dict[tuple[int, int], StoredRecord]:
    """Rows by (source, id)."""
    ids_by_source: dict[int, tuple[ScopedSource, list[int]]] = {}
    for spot, scoped in page_spots:
        ids_by_source.setdefault(scoped.source.source, (scoped, []))[1].append(spot[2])
    statements = [
        (scoped.source, scoped.compiler.rows(scoped.compiler.with_ids(ids)))
        for scoped, ids in ids_by_source.values()
    ]
    return {
        (source.source, number): row
        for (source, _), lines in zip(statements, reader.lines_of_each(statements), strict=True)
        for number, row in reader.whole_by_id(source, lines).items()
    }


def position_of(spot: PagePosition, scoped: ScopedSource, order: Order) -> Position:
    """Where a page goes on behind a line: its sort value, key, connection and stream."""
    value: Comparable | None = spot[0]
    if order.kind is ValueKind.BOOLEAN and value is not None:
        value = bool(value)
    if order.kind is ValueKind.INSTANT and isinstance(value, float):
        value = int(value)
    return Position(value, spot[1], scoped.source.connection_id, scoped.source.stream)
