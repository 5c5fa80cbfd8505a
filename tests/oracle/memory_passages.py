"""Search by meaning by its definition: every passage of every visible record, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import event_instant_ns
from pdpp_kernel.vectors import DISTANCE_DECIMALS, distance
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.rows import Candidate, Nearest, NearRecord
from personal_server.enforcement.scopes import Scope
from personal_server.storage.record_changes import latest_change
from personal_server.storage.row_rules import holds
from tests.oracle.memory_state import Place, State


def lacking(
    state: State, place: Place, fields: Sequence[str]
) -> list[tuple[StoredRecord, dict[str, str]]]:
    """Records with their texts that have no passages."""
    found: list[tuple[StoredRecord, dict[str, str]]] = []
    for row in state.rows.get(place, {}).values():
        texts = {
            name: text
            for name in fields
            if isinstance(text := row.data.get(name), str) and text.strip()
            if state.passages.get((*place, row.key, name), ("",))[0] != text
        }
        if texts:
            found.append((row, texts))
    return found


def waiting(scope: Scope, state: State, rows: Sequence[StoredRecord]) -> int:
    """How many of these rows lack passages."""
    place = (scope.connection_id, scope.stream.name)
    keys = {row.key for row, _ in lacking(state, place, scope.stream.semantic_fields)}
    return sum(row.key in keys for row in rows)


def nearest(
    plan: MeaningPlan, state: State, visible: Mapping[int, Sequence[StoredRecord]]
) -> Nearest:
    """`visible` holds the visible rows of each scope, by the scope's identity."""
    found: list[NearRecord] = []
    pending = 0
    for scope in plan.scopes:
        rows = visible[id(scope)]
        is_known = state.embedding_model == plan.model
        pending += waiting(scope, state, rows) if is_known else len(rows)
        for row in rows if is_known else ():
            if all(holds(condition, row.data) for condition in plan.conditions_on(scope)):
                found += _best(plan, scope, row, state)
    found.sort(
        key=lambda each: (
            each.distance,
            -each.candidate.event_time_ns,
            each.candidate.connection_id,
            each.candidate.stream,
            each.candidate.key,
        )
    )
    return Nearest(tuple(found[: plan.most]), pending)


def _best(plan: MeaningPlan, scope: Scope, row: StoredRecord, state: State) -> list[NearRecord]:
    place = (scope.connection_id, scope.stream.name)
    found: list[tuple[float, str, int, int]] = []
    for name in scope.stream.semantic_fields:
        text, passages = state.passages.get((*place, row.key, name), ("", ()))
        if name in scope.fields and text == row.data.get(name):
            found += [
                (
                    round(distance(plan.vector, each.vector), DISTANCE_DECIMALS),
                    name,
                    each.start_chars,
                    each.end_chars,
                )
                for each in passages
            ]
    candidate = Candidate(*place, row.key, (), 0, _event_time(row, scope))
    return [NearRecord(candidate, *best) for best in sorted(found)[:1]]


def _event_time(row: StoredRecord, scope: Scope) -> int:
    name = scope.stream.event_time_field
    if name is not None and name in scope.fields:
        kind = scope.stream.properties[name].kind
        own = None if kind is None else event_instant_ns(row.data.get(name), kind)
        if own is not None:
            return own
    return latest_change(row.created, row.field_changes, scope.fields).emitted_at_ns
