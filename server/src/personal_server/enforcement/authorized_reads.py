"""What a read may see: a plan for the store, and beside it what disclosing needs.

Rule: only `authorize` makes one; the plans that follow from one are made here, of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Condition, Grouping, Order
from pdpp_kernel.declaration import Property
from pdpp_kernel.operators import Operator
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import ValueKind, comparable, order_key
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.plans import (
    AggregatePlan,
    BesidePlan,
    ChangesPlan,
    ChildrenPlan,
    KeysPlan,
    NeighboursPlan,
    RecordsPlan,
)
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import scope_of, scopes_of

P_co = TypeVar("P_co", covariant=True)

# Per connection, the fields of `data` that are shown.
Shown = Mapping[str, tuple[str, ...]]
# Groups by unit are looked through up to so many.
MOST_UNITS = 10_000


class AuthorizedRead(msgspec.Struct, Generic[P_co], frozen=True):
    """A read that may happen.  Only `authorize` makes one; the store gets its `plan` alone.

    Shapes: `sources` is what the request selected of the authority's sources, in source order;
        the plan has a scope for each.  `asked` is what binds a cursor to the request.
    """

    authority: ReadAuthority
    sources: tuple[ReadableSource, ...]
    plan: P_co
    warnings: tuple[Warning, ...] = ()
    shown: Shown = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    expansions: tuple[AllowedExpansion, ...] = ()
    asked: tuple[object, ...] = ()


def glance_plan(sources: tuple[ReadableSource, ...], field: str | None, most: int) -> RecordsPlan:
    """How many records there are, counted no further than `most`, and from when to when.

    Their time is looked up where the ends of an index tell it: not where another one is bounded.
    """
    bounded = {s.time_constraint.field for s in sources if s.time_constraint is not None}
    return RecordsPlan(
        scopes_of(sources), span_field=field if bounded <= {field} else None, most=most
    )


def children_plan(
    expansion: AllowedExpansion, child: ReadableSource, parent_values: tuple[str, ...]
) -> ChildrenPlan:
    """The children of several parents on one connection."""
    relation = expansion.declared.relationship
    name = child.cursor_field
    kind = None if name is None else child.declared.properties[name].kind
    return ChildrenPlan(
        scope=scope_of(child),
        foreign_key=None if relation.foreign_key_on == "self" else relation.foreign_key,
        parent_values=parent_values,
        order=Order(name, kind, False),
        limit_each=expansion.limit if expansion.is_list else 1,
    )


def occurrences_plan(
    source: ReadableSource, other: ReadableSource, keys: tuple[str, ...]
) -> ChildrenPlan | None:
    """The first occurrence of each record of a source that another one shows at its times.

    `None` where the other is no stream of its occurrences, of the same grant and connection.
    """
    if (source.grant_id, source.connection_id) != (other.grant_id, other.connection_id):
        return None
    named = other.declared.fields_with_role("occurrence-of")
    joined = (r for r in source.declared.relationships if r.foreign_key_on != "self")
    foreign_keys = [
        each.foreign_key
        for each in joined
        if each.stream == other.stream and each.foreign_key in named
    ]
    time = other.declared.event_time_field
    if not foreign_keys or foreign_keys[0] not in other.fields or time not in other.fields:
        return None
    order = Order(time, other.declared.properties[time or ""].kind, False)
    return ChildrenPlan(scope_of(other), foreign_keys[0], keys, order, limit_each=1)


def values_plan(
    sources: tuple[ReadableSource, ...],
    condition: Condition,
    others: tuple[Condition, ...],
    limit: int,
) -> AggregatePlan:
    """The values of a condition's field where the other conditions hold, most frequent first."""
    grouping = Grouping(condition.field, condition.kind)
    return AggregatePlan(
        scopes_of(sources), Metric.COUNT, conditions=others, groupings=(grouping,), limit=limit
    )


def units_plan(
    plan: AggregatePlan | RecordsPlan,
    measured: Property,
    unit: Property,
    beside: Grouping | None = None,
) -> AggregatePlan:
    """In which units the values of a field are that a plan is about, by one of its groupings."""
    kinds = measured.kind or ValueKind.NUMBER, unit.kind or ValueKind.STRING
    has_value = Condition(measured.name, kinds[0], Operator.EXISTS, True)
    by_unit = Grouping(unit.name, kinds[1])
    return AggregatePlan(
        plan.scopes,
        Metric.COUNT,
        conditions=(*plan.conditions, has_value),
        groupings=(by_unit,) if beside is None else (beside, by_unit),
        limit=MOST_UNITS,
        words=plan.words if isinstance(plan, AggregatePlan) else None,
    )


def hit_plan(source: ReadableSource, keys: Iterable[str]) -> KeysPlan:
    """The records behind hits, through their own source."""
    return KeysPlan(scope_of(source), tuple(keys))


def neighbours_plan(source: ReadableSource, row: StoredRecord) -> NeighboursPlan | None:
    """The records right before and right after a row in its conversation.

    `None` where what tells conversations apart, or what orders them, is not granted or has no value
    here.  Nothing but the row's own source is read.
    """
    name, cursor = source.declared.conversation_field, source.cursor_field
    if name is None or name not in source.fields or cursor is None:
        return None
    shared, ordered = source.declared.properties[name].kind, source.declared.properties[cursor].kind
    if shared is None or ordered is None:
        return None
    value, at = comparable(row.data.get(name), shared), comparable(row.data.get(cursor), ordered)
    if value is None or at is None:
        return None
    return NeighboursPlan(
        scope_of(source),
        Condition(name, shared, Operator.EQ, value),
        Order(cursor, ordered, descending=False),
        Position(order_key(at), row.key, row.connection_id, row.stream),
    )


def beside_plan(source: ReadableSource, keys: Iterable[str]) -> BesidePlan | None:
    """Which records stand beside some in their conversations; `None` as in `neighbours_plan`."""
    declared, name, cursor = (
        source.declared,
        source.declared.conversation_field,
        source.cursor_field,
    )
    if name is None or name not in source.fields or cursor is None:
        return None
    shared, ordered = declared.properties[name].kind, declared.properties[cursor].kind
    if shared is None or ordered is None:
        return None
    return BesidePlan(scope_of(source), (name, shared), (cursor, ordered), tuple(keys))


def first_change_plan(sources: tuple[ReadableSource, ...], since: int, horizon: int) -> ChangesPlan:
    """Whether anything changed since that these sources show."""
    return ChangesPlan(scopes_of(sources), since, horizon, limit=1)
