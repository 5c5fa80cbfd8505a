"""What stored rows mean: visibility, change, dates.  Pure, and the same for every backend.

Rule: these definitions are those of docs/contract/resource-server.md 4.3, 7.2 and 8; a backend that
computes them another way (indexes, SQL) must give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from personal_server.domain.criteria import Condition, Metric, Operator
from personal_server.domain.record import FieldChange, JsonObject
from personal_server.domain.values import (
    MAX_INTEGER,
    Comparable,
    ValueKind,
    comparable,
    event_instant_ns,
    exact_sum,
    order_key,
    render_sum,
)
from personal_server.enforcement.plans import AggregatePlan, Scope
from personal_server.enforcement.rows import Aggregation, Group

TIME_KINDS = (ValueKind.DATE, ValueKind.INSTANT)


def canonical_json(value: object) -> bytes:
    """One text per JSON value: members sorted, no blanks."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def changed_fields(before: JsonObject, after: JsonObject) -> frozenset[str]:
    """Top-level properties that have another value (or came, or went)."""
    names = before.keys() | after.keys()
    return frozenset(name for name in names if _differs(name, before, after))


def _differs(name: str, before: JsonObject, after: JsonObject) -> bool:
    if name not in before or name not in after:
        return True
    old, new = before[name], after[name]
    if isinstance(old, str) and isinstance(new, str):
        return old != new
    return canonical_json(old) != canonical_json(new)


def latest_change(
    created: FieldChange, changes: Mapping[str, FieldChange], fields: Iterable[str]
) -> FieldChange:
    """The write that last changed one of `fields`, or created the record."""
    relevant = [changes[name] for name in fields if name in changes]
    return max((created, *relevant), key=lambda change: change.sequence)


def window_kind(scope: Scope) -> ValueKind | None:
    """How the constrained field is compared; `None` when it cannot be, and nothing is visible."""
    if scope.window is None:
        return None
    declared = scope.stream.properties.get(scope.window.field)
    return declared.kind if declared is not None and declared.kind in TIME_KINDS else None


def in_window(data: JsonObject, scope: Scope) -> bool:
    """Source: docs/contract/resource-server.md 4.3, `in_window`."""
    if scope.window is None:
        return True
    kind = window_kind(scope)
    if kind is None:
        return False
    return scope.window.holds(event_instant_ns(data.get(scope.window.field), kind))


def holds(condition: Condition, data: JsonObject) -> bool:
    """Whether a record satisfies a condition; null values satisfy none but `exists` false."""
    found = comparable(data.get(condition.field), condition.kind)
    if condition.operator is Operator.EXISTS:
        return (found is not None) is condition.value
    if found is None:
        return False
    match condition.operator:
        case Operator.EQ | Operator.IN:
            return any(_equal(condition, found, value) for value in condition.values)
        case Operator.NE:
            return not _equal(condition, found, condition.value)
        case Operator.CONTAINS:
            return fold(str(condition.value)) in fold(str(found))
        case Operator.STARTS_WITH:
            return fold(str(found)).startswith(fold(str(condition.value)))
        case _:
            return _beyond(condition.operator, order_key(found), order_key(condition.value))


def _equal(condition: Condition, found: Comparable, value: Comparable) -> bool:
    if condition.caseless:
        return fold(str(found)) == fold(str(value))
    return found == value


def _beyond(operator: Operator, found: Any, bound: Any) -> bool:
    match operator:
        case Operator.LT:
            return found < bound
        case Operator.LTE:
            return found <= bound
        case Operator.GT:
            return found > bound
        case _:
            return found >= bound


def foreign_value(text: str, kind: ValueKind | None) -> Comparable | None:
    """The comparable of a key's string form in a foreign-key field of that kind."""
    match kind:
        case ValueKind.INTEGER | ValueKind.NUMBER:
            return int(text) if _is_canonical_integer(text) else None
        case ValueKind.BOOLEAN:
            return {"true": True, "false": False}.get(text)
        case None:
            return None
        case _:
            return comparable(text, kind)


def _is_canonical_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text


def fold(text: str) -> str:
    """Each code point in its one-code-point lower case.

    Source: docs/contract/resource-server.md 9.2.
    """
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := each.lower()) == 1 else each for each in text)


def granted_lexical_fields(scope: Scope) -> tuple[str, ...]:
    """Fields whose words may be matched in this scope."""
    return tuple(name for name in scope.stream.lexical_fields if name in scope.fields)


def blob_ids(row_data: JsonObject, blob_fields: Iterable[str]) -> dict[str, str]:
    """Blob id by blob field."""
    found: dict[str, str] = {}
    for name in blob_fields:
        reference = row_data.get(name)
        if isinstance(reference, dict):
            blob_id: object = reference.get("blob_id")  # type: ignore[union-attr]
            if isinstance(blob_id, str):
                found[name] = blob_id
    return found


def stored_text(value: object) -> str:
    """A stored time value as it stands in the record."""
    return value if isinstance(value, str) else canonical_json(value).decode()


# Groups: their order, and what is said of those not returned (docs/contract/resource-server.md 10)
@dataclass(frozen=True, slots=True)
class GroupTally:
    """A group, and the exact number it is ranked by (`None`: null)."""

    group: Group
    rank: Any


def arrange(plan: AggregatePlan, record_count: int, tallies: Sequence[GroupTally]) -> Aggregation:
    """Put all groups in order, keep what is returned, and sum up the rest."""
    timed = plan.grouping is not None and plan.grouping.granularity is not None
    kept = _newest(plan, tallies) if timed else sorted(tallies, key=_place(plan))[: plan.limit]
    groups = tuple(each.group for each in kept)
    shown = {id(each) for each in kept}
    rest = [each for each in tallies if id(each) not in shown]
    other = None
    if plan.metric is Metric.SUM:
        other = render_sum(exact_sum(Decimal(each.rank) for each in rest))
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(tallies),
        other_count=sum(each.group.count for each in rest),
        other_value=other,
    )


def newest(plan: AggregatePlan, record_count: int, counts: Mapping[Any, int]) -> Aggregation:
    """The same for counted time buckets, of which there may be very many: key → count."""
    starts = sorted(key for key in counts if key is not None)[-plan.limit :]
    shown = [*starts, *([None] if None in counts else [])]
    groups = tuple(Group(key, counts[key]) for key in shown)
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(counts),
        other_count=sum(counts.values()) - sum(group.count for group in groups),
    )


def plain_value(point: Comparable, stored: object, kind: ValueKind) -> object:
    """How a group key or extreme is shown: as stored, whole numbers as integers."""
    if kind not in (ValueKind.INTEGER, ValueKind.NUMBER):
        return stored
    is_whole = isinstance(point, float) and point.is_integer() and abs(point) <= MAX_INTEGER
    return int(point) if is_whole else point


def _newest(plan: AggregatePlan, tallies: Sequence[GroupTally]) -> list[GroupTally]:
    """The newest buckets ascending, then the null group, which does not count."""
    buckets = sorted((t for t in tallies if t.group.key is not None), key=_start)
    return buckets[-plan.limit :] + [t for t in tallies if t.group.key is None]


def _start(tally: GroupTally) -> Any:
    return tally.group.key


def _place(plan: AggregatePlan) -> Any:
    """By rank (descending, `min` ascending, nulls last), then key text, the null group last."""
    sign = 1 if plan.metric is Metric.MIN else -1

    def place(tally: GroupTally) -> tuple[bool, Any, bool, bytes]:
        key, rank = tally.group.key, tally.rank
        return (rank is None, 0 if rank is None else sign * rank, key is None, orjson.dumps(key))

    return place
