"""Reads of the memory store: every plan by its definition, over all visible records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, WholeDays
from pdpp_kernel.persons import Mention, persons_of
from pdpp_kernel.record import (
    DamagedRow,
    FieldChange,
    JsonObject,
    RecordPlace,
    StoredRecord,
)
from pdpp_kernel.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    Comparable,
    ValueKind,
    comparable,
    event_instant_ns,
    order_key,
)
from personal_server.domain.connection import Connection
from personal_server.domain.local_days import local_days
from personal_server.domain.stored import Collection, StoredDeclaration, StoredStream
from personal_server.enforcement.plans import (
    AggregatePlan,
    BesidePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    FieldWindowPlan,
    KeysPlan,
    MeaningPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.rows import (
    Aggregation,
    BlobReference,
    Children,
    Feed,
    FieldWindow,
    Matches,
    Nearest,
    Neighbours,
    PlacedRow,
    Position,
    RowPage,
    Span,
    Summary,
    WindowOutcome,
)
from personal_server.enforcement.scopes import Scope, TimedScope
from personal_server.storage.folding import fold
from personal_server.storage.record_changes import blob_ids, latest_change
from personal_server.storage.row_rules import foreign_value, holds, stored_text
from tests.oracle.memory_feed import feed, is_visible
from tests.oracle.memory_figures import aggregate
from tests.oracle.memory_passages import nearest, waiting
from tests.oracle.memory_search import count_terms, holds_all, search
from tests.oracle.memory_state import State


class MemorySnapshot:
    """One state, never written to."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def derived(self) -> dict[object, Any]:
        """Nothing is remembered."""
        return {}

    @property
    def epoch(self) -> str:
        return self._state.epoch

    def era(self, sequence: int) -> str:
        return ""

    @property
    def damaged(self) -> tuple[DamagedRow, ...]:
        """Memory is believed."""
        return ()

    @property
    def horizon(self) -> int:
        return self._state.sequence

    @property
    def retained_from(self) -> int:
        return self._state.retained_from

    @property
    def forgotten_until_ns(self) -> int:
        return self._state.forgotten_until_ns

    def first_change_after(self, scopes: Iterable[Scope], instant_ns: int) -> int | None:
        places = {(scope.connection_id, scope.stream.name) for scope in scopes}
        later = (h for h in self._state.history if h.written_at_ns > instant_ns)
        return min((h.sequence for h in later if h.place in places), default=None)

    def changed_after(self, sequence: int) -> list[tuple[str, str]]:
        later = {h.place for h in self._state.history if h.sequence > sequence}
        return sorted(later & set(self._state.rows))

    def declarations(self) -> tuple[StoredDeclaration, ...]:
        current = [each for each in self._state.declarations.values() if each.current]
        return tuple(sorted(current, key=lambda each: each.connector_key))

    def connections(self) -> tuple[Connection, ...]:
        found = self._state.connections.values()
        return tuple(sorted(found, key=lambda each: each.connection_id))

    def stored_streams(self) -> tuple[StoredStream, ...]:
        connectors = {c.connection_id: c.connector_key for c in self.connections()}
        return tuple(
            StoredStream(connection_id, connectors[connection_id], stream, len(rows))
            for (connection_id, stream), rows in sorted(self._state.rows.items())
        )

    def collections(self) -> Mapping[str, Collection]:
        return self._state.collections

    def page(self, plan: RecordsPlan) -> RowPage:
        placed = [
            PlacedRow(row, _position(row, plan))
            for row in self._matching(plan.scopes, plan.conditions)
        ]
        down = plan.order.descending
        placed.sort(key=lambda each: _tie(each.position), reverse=down)
        valued = [each for each in placed if each.position.value is not None]
        valued.sort(key=lambda each: _present(each.position.value), reverse=down)
        empty = [each for each in placed if each.position.value is None]
        after = plan.after
        if after is not None:
            valued = [each for each in valued if _follows(each.position, after, down=down)]
            empty = [each for each in empty if _follows(each.position, after, down=down)]
        rows = valued + empty
        return RowPage(tuple(rows[: plan.limit]), len(rows) > plan.limit)

    def timeline(self, plan: TimelinePlan) -> RowPage:
        placed = [
            PlacedRow(row, Position(at_ns, row.key, row.connection_id, row.stream))
            for timed in plan.scopes
            for row in self._matching((timed.scope,), timed.conditions)
            if (at_ns := _event_time(row, timed)) is not None
            and (plan.words is None or holds_all(row, timed.scope, plan.words))
        ]
        placed.sort(key=lambda each: _sortable(each.position), reverse=plan.descending)
        after = plan.after
        if after is not None:
            down = plan.descending
            placed = [each for each in placed if _follows(each.position, after, down=down)]
        return RowPage(tuple(placed[: plan.limit]), len(placed) > plan.limit)

    def count(self, plan: RecordsPlan) -> int:
        return _counted(plan, self._matching(plan.scopes, plan.conditions))

    def span(self, plan: RecordsPlan) -> Span:
        rows = self._matching(plan.scopes, plan.conditions)
        name = plan.span_field
        if name is None:
            return Span(_counted(plan, rows), None, None)
        kind = plan.scopes[0].stream.properties[name].kind
        dated = [
            (point, stored_text(row.data[name]))
            for row in rows
            if kind is not None and (point := comparable(row.data.get(name), kind)) is not None
        ]
        if not dated:
            return Span(_counted(plan, rows), None, None)
        earliest = min(dated, key=lambda each: each[0])
        latest = max(dated, key=lambda each: each[0])
        return Span(_counted(plan, rows), earliest[1], latest[1])

    def summary(self, scope: Scope) -> Summary:
        rows = self._visible(scope)
        fields = scope.fields
        times = [latest_change(r.created, r.field_changes, fields).emitted_at_ns for r in rows]
        return Summary(len(rows), max(times, default=None))

    def record(self, plan: RecordPlan) -> tuple[StoredRecord, ...]:
        return tuple(row for row in self._matching(plan.scopes) if row.key == plan.key)

    def records(self, plans: Sequence[KeysPlan]) -> Mapping[RecordPlace, StoredRecord]:
        return {
            (row.connection_id, row.stream, row.key): row
            for plan in plans
            for row in self._matching((plan.scope,))
            if row.key in plan.keys
        }

    def children(self, plan: ChildrenPlan) -> Mapping[str, Children]:
        found: dict[str, Children] = {}
        page = self.page(RecordsPlan((plan.scope,), plan.order, limit=2**62))
        for parent in plan.parent_values:
            rows = [each.row for each in page.rows if _is_child(each.row, parent, plan)]
            if rows:
                limit = plan.limit_each
                found[parent] = Children(tuple(rows[:limit]), len(rows) > limit)
        return found

    def neighbours(self, plan: NeighboursPlan) -> Neighbours:
        back = replace(plan.order, descending=True)
        found: list[StoredRecord | None] = []
        for order in (back, plan.order):
            one = RecordsPlan((plan.scope,), order, 1, (plan.condition,), plan.position)
            placed = self.page(one).rows
            found.append(placed[0].row if placed and placed[0].position.value is not None else None)
        return Neighbours(*found)

    def beside(self, plan: BesidePlan) -> Mapping[str, tuple[str | None, str | None, object]]:
        placed: dict[Comparable, list[tuple[Comparable, str]]] = {}
        for row in self._matching((plan.scope,)):
            (shared, kind), (ordered, order_kind) = plan.shared, plan.ordered
            value = comparable(row.data.get(shared), kind)
            at = comparable(row.data.get(ordered), order_kind)
            is_cut = isinstance(value, str) and len(value) >= COMPARED_CODE_POINTS
            if value is not None and at is not None and not is_cut:
                placed.setdefault(value, []).append((order_key(at), row.key))
        found: dict[str, tuple[str | None, str | None, object]] = {}
        for value, rows in placed.items():
            keys = [None, *(key for _, key in sorted(rows)), None]
            for before, key, after in zip(keys, keys[1:], keys[2:], strict=False):
                if key in plan.keys:
                    found[key] = (before, after, value)
        return found

    def field_window(self, plan: FieldWindowPlan) -> tuple[FieldWindow, ...]:
        rows = self.record(RecordPlan(plan.scopes, plan.key))
        return tuple(_window(row.connection_id, row.data.get(plan.field), plan) for row in rows)

    def aggregate(self, plan: AggregatePlan) -> Aggregation:
        rows = self._matching(plan.scopes, plan.conditions)
        if plan.words:
            search = SearchPlan(plan.scopes, plan.words, window=2**62)
            found = {(hit.connection_id, hit.key) for hit in self.search(search).candidates}
            rows = [row for row in rows if (row.connection_id, row.key) in found]
        return aggregate(plan, rows)

    def search(self, plan: SearchPlan) -> Matches:
        return search(plan, {id(scope): self._visible(scope) for scope in plan.scopes})

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...]:
        return count_terms(plan, {id(scope): self._visible(scope) for scope in plan.scopes})

    def walked_seconds(self, scopes: Sequence[Scope]) -> float:  # it has no index
        return 0.0

    def nearest(self, plan: MeaningPlan) -> Nearest:
        return nearest(plan, self._state, {id(s): self._visible(s) for s in plan.scopes})

    def count_unembedded(self, scopes: Sequence[Scope]) -> int:
        return sum(waiting(s, self._state, self._visible(s)) for s in scopes)

    def embedding_model(self) -> str | None:
        return self._state.embedding_model

    def changes(self, plan: ChangesPlan) -> Feed:
        return feed(plan, self._state)

    def blob(self, plan: BlobPlan) -> tuple[BlobReference, ...]:
        found: list[BlobReference] = []
        for scope in sorted(plan.scopes, key=lambda s: (s.connection_id, s.stream.name)):
            if (scope.connection_id, plan.blob_id) not in self._state.uploads:
                continue
            fields = [name for name in scope.stream.blob_fields if name in scope.fields]
            for row in self._visible(scope):
                for name, blob_id in sorted(blob_ids(row.data, fields).items()):
                    if blob_id == plan.blob_id:
                        found.append(_reference(row, name))
        return tuple(found)

    def export(self, connection_id: str, stream: str) -> Iterator[StoredRecord]:
        rows = self._state.rows.get((connection_id, stream), {})
        return iter([rows[key] for key in sorted(rows)])

    def _visible(self, scope: Scope) -> list[StoredRecord]:
        if scope.made_of is not None:
            return [row for row in self._persons(scope) if is_visible(row.key, row.data, scope)]
        rows = self._state.rows.get((scope.connection_id, scope.stream.name), {})
        return [rows[key] for key in sorted(rows) if is_visible(key, rows[key].data, scope)]

    def _persons(self, scope: Scope) -> list[StoredRecord]:
        made = FieldChange(0, self._state.connections[scope.connection_id].created_at_ns)
        place = (scope.connection_id, scope.stream.name)
        mentions = [
            Mention(
                identity,
                name if told_by.named_by is None or told_by.named_by in other.fields else None,
                other.connector_key,
                row.connection_id,
                row.stream,
                told_by.field,
                row.key,
                card=row.key if told_by.is_card else None,
            )
            for other in scope.made_of or ()
            for row in self._visible(other)
            for told_by in other.stream.person_fields
            if told_by.field in other.fields
            for identity, name in told_by.read(row.data)
        ]
        found = persons_of(mentions, self._state.corrections)
        return [StoredRecord(*place, str(data["id"]), data, made, {}) for data in found]

    def _matching(
        self, scopes: Iterable[Scope], conditions: Iterable[Condition] = ()
    ) -> list[StoredRecord]:
        """Visible records that satisfy all conditions, by (key, connection)."""
        rows = [row for scope in scopes for row in self._visible(scope)]
        kept = [row for row in rows if all(holds(condition, row.data) for condition in conditions)]
        return sorted(kept, key=lambda row: (row.key, row.connection_id))


def _present(value: Comparable | None) -> Comparable:
    assert value is not None  # only called on rows that have one
    return value


def _tie(position: Position) -> tuple[str, str]:
    return (position.key, position.connection_id)


def _sort_value(data: JsonObject, field: str | None, kind: ValueKind | None) -> Comparable | None:
    """The value a record is ordered by, `None` for null values and orders by key."""
    if field is None or kind is None:
        return None
    value = comparable(data.get(field), kind)
    return None if value is None else order_key(value)


def _event_time(row: StoredRecord, timed: TimedScope) -> int | None:
    name, kind, days = timed.order.field, timed.order.kind, timed.order.days
    if name is None or kind is None:
        return None
    at_ns = event_instant_ns(row.data.get(name), kind)
    if at_ns is None or days is None or not (_is_whole(row, days) or kind is ValueKind.DATE):
        return at_ns
    return local_days(days.time_zone).start(at_ns // DAY_NANOSECONDS)


def _is_whole(row: StoredRecord, days: WholeDays | None) -> bool:
    return days is not None and row.data.get(days.flag) is True


def _position(row: StoredRecord, plan: RecordsPlan) -> Position:
    value, days = _sort_value(row.data, plan.order.field, plan.order.kind), plan.order.days
    if days is not None and isinstance(value, int) and _is_whole(row, days):
        value = local_days(days.time_zone).start(value // DAY_NANOSECONDS)
    return Position(value, row.key, row.connection_id, row.stream)


def _follows(position: Position, after: Position, *, down: bool) -> bool:
    """Whether a row stands strictly after a position; null values are last both ways."""
    if (position.value is None) != (after.value is None):
        return position.value is None
    mine, other = (_sortable(position), _sortable(after))
    return mine < other if down else mine > other


def _sortable(position: Position) -> tuple[Comparable, str, str, str]:
    value = 0 if position.value is None else position.value
    return (value, position.key, *position.place)


def _is_child(row: StoredRecord, parent: str, plan: ChildrenPlan) -> bool:
    if plan.foreign_key is None:
        return row.key == parent
    kind = plan.scope.stream.properties[plan.foreign_key].kind
    if kind is None:
        return False
    value = comparable(row.data.get(plan.foreign_key), kind)
    return value is not None and value == foreign_value(parent, kind)


def _window(connection_id: str, value: object, plan: FieldWindowPlan) -> FieldWindow:
    if value is None:
        return FieldWindow(connection_id, WindowOutcome.NO_VALUE)
    if not isinstance(value, str):
        return FieldWindow(connection_id, WindowOutcome.NOT_TEXT)
    start, match = min(plan.offset_chars, len(value)), None
    if plan.match is not None:
        match = fold(value).find(fold(plan.match))
        if match < 0:
            return FieldWindow(connection_id, WindowOutcome.NO_MATCH)
        start = max(0, match - plan.before_chars)
    return FieldWindow(
        connection_id,
        WindowOutcome.FOUND,
        text=value[start : start + plan.limit_chars],
        start_chars=start,
        total_chars=len(value),
        digest=hashlib.sha256(value.encode()).hexdigest(),
        match_start_chars=match,
        match_end_chars=None if match is None else match + len(plan.match or ""),
    )


def _reference(row: StoredRecord, field: str) -> BlobReference:
    reference = row.data[field]
    assert isinstance(reference, dict)  # blob_ids found an object here
    return BlobReference(row.connection_id, row.stream, row.key, field, dict(reference))  # type: ignore[arg-type]


def _counted(plan: RecordsPlan, rows: Sequence[StoredRecord]) -> int:
    return len(rows) if plan.most is None else min(len(rows), plan.most)
