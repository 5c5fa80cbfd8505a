"""What stored rows mean: visibility, change, dates.  Pure, and the same for every backend.

Rule: these definitions are those of docs/contract/resource-server.md 4.3, 7.2 and 8; a backend that
computes them another way (indexes, SQL) must give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import orjson

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Condition, GroupOrder, Term, WordQuery
from pdpp_kernel.operators import Takes
from pdpp_kernel.record import FieldChange, JsonObject
from pdpp_kernel.values import (
    MAX_INTEGER,
    Comparable,
    ValueKind,
    comparable,
    event_instant_ns,
    exact_number,
    exact_sum,
    render_sum,
    without_nul,
)
from personal_server.domain.search_words import TextWords, Vocabulary, text_words
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.enforcement.scopes import Scope

TIME_KINDS = (ValueKind.DATE, ValueKind.INSTANT)
# The mark of an author who is one; every other mark is shown.
A_PERSON = "person"
# How many steps a number is cut into, where nobody says how wide they are.
MOST_STEPS = 20


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


def is_in(data: JsonObject, scope: Scope) -> bool:
    """Source: docs/contract/resource-server.md 4.3, `visible`, by time and content."""
    return in_window(data, scope) and all(holds(each, data) for each in scope.only)


def holds(condition: Condition, data: JsonObject) -> bool:
    """Whether a record satisfies a condition; null values satisfy none but `exists` false."""
    operator, values = condition.operator, condition.values
    found = comparable(data.get(condition.field), condition.kind)
    if found is None and operator.takes is not Takes.PRESENCE:
        return False
    if condition.caseless or operator.takes is Takes.PART:
        return operator.holds(fold(str(found)), [fold(str(value)) for value in values])
    return operator.holds(found, values)


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
    text = without_nul(text)
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := each.lower()) == 1 else each for each in text)


def granted_lexical_fields(scope: Scope) -> tuple[str, ...]:
    """Fields whose words may be matched in this scope."""
    return tuple(name for name in scope.stream.lexical_fields if name in scope.fields)


def words_of(
    data: JsonObject, fields: Iterable[str], vocabulary: Vocabulary | None = None
) -> dict[str, TextWords]:
    """The words of each text that a record has in these fields."""
    return {
        name: text_words(text, vocabulary)
        for name in fields
        if isinstance(text := data.get(name), str)
    }


def holds_words(texts: Mapping[str, TextWords], words: WordQuery) -> bool:
    """Whether texts hold enough terms in one of them or another, and none excluded."""
    held = {place for place, term in enumerate(words.terms) if holds_term(texts, term)}
    return words.is_met(held) and not any(holds_term(texts, term) for term in words.excluded)


def holds_term(texts: Mapping[str, TextWords], term: Term) -> bool:
    """Whether one of the texts holds it."""
    return any(text.holds(term, name) for name, text in texts.items())


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
    """A group, the exact number it is ranked by (`None`: null), and its keys as they compare."""

    group: Group
    rank: Any
    points: tuple[Any, ...]


Tallies = Sequence[GroupTally]


def arrange(plan: AggregatePlan, record_count: int, tallies: Tallies) -> Aggregation:
    """Put all groups in order, keep what is returned, and sum up the rest."""
    kept = _kept(plan, tallies)
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


def labelled(key: object, label: str | None, marks: Collection[object]) -> str | None:
    """How people see a key: its label, and the mark that all records with it share.

    Source: docs/contract/resource-server.md 10.
    """
    (mark,) = marks if len(marks) == 1 else (None,)
    if not isinstance(mark, str) or mark in ("", A_PERSON):
        return label
    seen = label or (key if isinstance(key, str) else None)
    return f"{seen} ({mark})" if seen else f"({mark})"


def newest(plan: AggregatePlan, record_count: int, counts: Mapping[Any, int]) -> Aggregation:
    """The same for counted time buckets, of which there may be very many: key → count."""
    starts = sorted(key for key in counts if key is not None)[-plan.limit :]
    shown = [*starts, *([None] if None in counts else [])]
    groups = tuple(Group((key,), counts[key], labels=(None,)) for key in shown)
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(counts),
        other_count=sum(counts.values()) - sum(group.count for group in groups),
    )


def step_start(value: float | None, width: Fraction) -> Fraction | None:
    """The lower bound of the step that holds a number."""
    return None if value is None else exact_number(value) // width * width


def step_width(low: float, high: float, kind: ValueKind) -> Decimal:
    """The least of 1, 2 and 5 times a power of ten that goes at most 20 times into the span."""
    least = (exact_number(high) - exact_number(low)) / MOST_STEPS
    if least == 0 or (kind is ValueKind.INTEGER and least <= 1):
        return Decimal(1)
    power = (Decimal(least.numerator) / Decimal(least.denominator)).adjusted() - 1
    widths = (Decimal((0, (digit,), power + more)) for more in range(4) for digit in (1, 2, 5))
    return next(width for width in widths if Fraction(width) >= least)


def plain_value(point: Comparable, stored: object, kind: ValueKind) -> object:
    """How a group key or extreme is shown: as stored, whole numbers as integers."""
    if kind not in (ValueKind.INTEGER, ValueKind.NUMBER):
        return stored
    is_whole = isinstance(point, float) and point.is_integer() and abs(point) <= MAX_INTEGER
    return int(point) if is_whole else point


def _kept(plan: AggregatePlan, tallies: Tallies) -> Tallies:
    """The groups that are returned, as they are ordered."""
    if plan.sort is not None:
        return _sorted(plan, plan.sort, tallies)[: plan.limit]
    if plan.time_line is None:
        if len(plan.groupings) == 1 and plan.groupings[0].has_natural_order:
            return _by_key(tallies, 0)[: plan.limit]
        down = plan.metric is not Metric.MIN
        leading = _leading(tallies, _rank, plan.limit, descending=down)
        return sorted(leading, key=_place(plan))[: plan.limit]
    if len(plan.groupings) == 1:
        buckets = [t for t in _by_key(tallies, 0) if t.points[0] is not None]
        return buckets[-plan.limit :] + [t for t in tallies if t.points[0] is None]
    line = plan.time_line
    leading = _leading(tallies, lambda tally: tally.points[line], plan.limit, descending=True)
    ranked = sorted(leading, key=_place(plan))
    kept = _by_key(ranked, line, descending=True)[: plan.limit]
    return _by_key(sorted(kept, key=_place(plan)), line)


def _leading(
    tallies: Tallies, value: Callable[[GroupTally], Any], limit: int, *, descending: bool
) -> Tallies:
    """Those that can be among the first, equal ones included: the rest need no order."""
    known = sorted(
        (found for each in tallies if (found := value(each)) is not None), reverse=descending
    )
    if len(known) < limit:
        return tallies
    last = known[limit - 1]
    return [
        each
        for each in tallies
        if (found := value(each)) is not None and (found >= last if descending else found <= last)
    ]


def _rank(tally: GroupTally) -> Any:
    return tally.rank


def _sorted(plan: AggregatePlan, order: GroupOrder, tallies: Tallies) -> Tallies:
    """As asked; of two groupings the time, else the first, weighs more."""
    down = order.is_descending
    if not order.is_by_key:
        leading = _leading(tallies, _rank, plan.limit, descending=down)
        return _nulls_last(sorted(leading, key=_ties(plan)), _rank, descending=down)
    ordered: Tallies = tallies
    for number in sorted(range(len(plan.groupings)), key=lambda n: (n == plan.timed, -n)):
        ordered = _by_key(ordered, number, descending=down)
    return ordered


def _by_key(tallies: Tallies, number: int, *, descending: bool = False) -> list[GroupTally]:
    return _nulls_last(tallies, lambda tally: tally.points[number], descending=descending)


def _nulls_last(
    tallies: Tallies, value: Callable[[GroupTally], Any], *, descending: bool
) -> list[GroupTally]:
    """Those of equal value stay as they stand."""
    present = [each for each in tallies if value(each) is not None]
    absent = [each for each in tallies if value(each) is None]
    return sorted(present, key=value, reverse=descending) + absent


def _place(plan: AggregatePlan) -> Callable[[GroupTally], tuple[Any, ...]]:
    """By rank (descending, `min` ascending, nulls last), then by the keys."""
    sign = 1 if plan.metric is Metric.MIN else -1
    ties = _ties(plan)

    def place(tally: GroupTally) -> tuple[Any, ...]:
        rank = tally.rank
        return (rank is None, 0 if rank is None else sign * rank, *ties(tally))

    return place


def _ties(plan: AggregatePlan) -> Callable[[GroupTally], tuple[Any, ...]]:
    """By JSON text, times and steps by their value; the null group last."""
    by_value = [grouping.has_natural_order for grouping in plan.groupings]

    def ties(tally: GroupTally) -> tuple[Any, ...]:
        found: list[Any] = []
        for key, point, natural in zip(tally.group.keys, tally.points, by_value, strict=True):
            text: Any = point if natural else orjson.dumps(key)
            found += [key is None, text if key is not None else type(text)()]
        return tuple(found)

    return ties
