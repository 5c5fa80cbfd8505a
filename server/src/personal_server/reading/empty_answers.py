"""What an answer without records says: why there are none, and which visible values are near.

Rule: all of it follows from the grant, from the runs of the source and from visible records.
Source: docs/contract/resource-server.md 2.2; docs/decisions.md C32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from pdpp_kernel.criteria import Condition
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import ValueKind, instant_ns
from pdpp_kernel.wire_objects import Count, Instant, WireObject, Word, Yes
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.search_words import tokens
from personal_server.enforcement.authorized_reads import values_plan
from personal_server.enforcement.conditions import asked_span
from personal_server.reading.freshness import ShownFreshness
from personal_server.storage.ports.snapshots import ReadSnapshot

MAX_NEAR = 5
MAX_VALUE_CHARS = 80
# The most frequent values of a field are looked through, so many at most.
MOST_VALUES = 5_000
_SHORTEST_PART = 3
_APOSTROPHES = dict.fromkeys(map(ord, "'’ʼ‘´`"))


class EmptyAnswer(WireObject):
    """Why an answer holds no records."""

    component: ClassVar = "EmptyAnswer"

    reason: Literal["nothing_matches", "not_granted", "not_collected_since"]
    collected_at: Instant | None = None


class NearValue(WireObject):
    """A visible value near one that a filter asked for, and how many records it would match.

    `listed`: none is near, and this is one of the few that there are.
    """

    component: ClassVar = "NearValue"

    field: Word
    value: str
    count: Count
    twin: Yes | None = None
    listed: Yes | None = None


class Emptiness(msgspec.Struct, frozen=True):
    """Members of `meta`, and the sources that near values came from."""

    meta: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    disclosed: Sequence[Disclosed] = ()


def explain_empty(
    snapshot: ReadSnapshot,
    sources: Sequence[ReadableSource],
    conditions: tuple[Condition, ...],
    warnings: Iterable[Warning],
    freshness: ShownFreshness | None,
) -> Emptiness:
    """What is said of a whole answer without records.

    Shapes: `sources` are of one stream where there are conditions, and all meet the same.
    """
    meta: dict[str, object] = {"empty": _reason(sources, conditions, warnings, freshness)}
    near = _near_values(snapshot, tuple(sources), conditions)
    if not near:
        return Emptiness(meta)
    named = tuple(dict.fromkeys(each.field for each in near))
    return Emptiness({**meta, "near": near}, [Disclosed(source, named, 0) for source in sources])


def _reason(
    sources: Sequence[ReadableSource],
    conditions: tuple[Condition, ...],
    warnings: Iterable[Warning],
    freshness: ShownFreshness | None,
) -> EmptyAnswer:
    if any(warning.code == "outside_time_constraint" for warning in warnings):
        return EmptyAnswer(reason="not_granted")
    collected_at = None if freshness is None else freshness.captured_at
    times = {source.declared.event_time_field for source in sources}
    times |= {source.declared.consent_time_field for source in sources}
    spans = [asked_span(name, conditions) for name in times if name is not None]
    begun = max((span[0] for span in spans if span is not None), default=None)
    if collected_at is not None and begun is not None and begun > (instant_ns(collected_at) or 0):
        return EmptyAnswer(reason="not_collected_since", collected_at=collected_at)
    return EmptyAnswer(reason="nothing_matches")


def _near_values(
    snapshot: ReadSnapshot,
    sources: tuple[ReadableSource, ...],
    conditions: tuple[Condition, ...],
) -> list[NearValue]:
    found: list[NearValue] = []
    for condition in conditions:
        if not names_values(condition, sources):
            continue
        others = tuple(each for each in conditions if each is not condition)
        values = visible_values(snapshot, sources, condition, others)
        sought = [str(each) for each in condition.values]
        if not values.keys() & set(sought):
            near = nearest(sought, values)
            listed = None if near else True
            found += [
                NearValue(condition.field, each, values[each], listed=listed)
                for each in near or few(values)
            ]
    return found[:MAX_NEAR]


def names_values(condition: Condition, sources: tuple[ReadableSource, ...]) -> bool:
    """Whether a condition names short values of a field that records share."""
    is_exact = condition.operator in (Operator.EQ, Operator.IN)
    if not is_exact or condition.kind is not ValueKind.STRING:
        return False
    return all(condition.field in source.declared.indexed for source in sources)


def visible_values(
    snapshot: ReadSnapshot,
    sources: tuple[ReadableSource, ...],
    condition: Condition,
    others: tuple[Condition, ...],
) -> dict[str, int]:
    """The values of records that meet the other conditions, with their numbers."""
    try:
        groups = snapshot.aggregate(values_plan(sources, condition, others, MOST_VALUES)).groups
    except QueryTimeout:
        return {}  # the answer is whole without them
    return {
        key: group.count
        for group in groups
        for key in group.keys
        if isinstance(key, str) and 0 < len(key) <= MAX_VALUE_CHARS
    }


def few(values: Mapping[str, int]) -> list[str]:
    """All values where there are few: `debit` is like neither `in` nor `out`, and means one."""
    if len(values) > MAX_NEAR:
        return []
    return sorted(values, key=lambda value: (-values[value], value))


def nearest(sought: Iterable[str], values: Mapping[str, int]) -> list[str]:
    """The values that differ from a sought one the least, the more frequent first.

    By case, accents and signs; by what follows; by what stands around; by letters.
    """
    plain = [text for each in sought if (text := _plain(each))]
    ranked: list[tuple[int, int, str]] = []
    for value, count in values.items():
        distances = [far for text in plain if (far := _distance(text, _plain(value))) is not None]
        if distances:
            ranked.append((min(distances), -count, value))
    return [value for _, _, value in sorted(ranked)[:MAX_NEAR]]


def _plain(text: str) -> str:
    """Its words, of which an apostrophe makes no two: `Mikes` is near `Mike's`."""
    return " ".join(tokens(text.translate(_APOSTROPHES)))


def _distance(sought: str, value: str) -> int | None:
    if sought == value:
        return 0
    short, long = sorted((sought, value), key=len)
    if len(short) >= _SHORTEST_PART:
        if long.startswith(short):
            return 1
        if short in long:
            return 2
    most = min(2, len(sought) // 3)
    edits = _edits(sought, value, most)
    return None if edits is None else 2 + edits


def _edits(one: str, other: str, most: int) -> int | None:
    """How many letters are added, lost or changed; `None` above `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    line = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        before, line = line, [row]
        for column, found in enumerate(other, 1):
            changed = before[column - 1] + (letter != found)
            line.append(min(changed, before[column] + 1, line[-1] + 1))
        if min(line) > most:
            return None
    return line[-1] if line[-1] <= most else None
