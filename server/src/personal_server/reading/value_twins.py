"""Values that a filter did not name, and that differ from one it named as people mistype.

Rule: only visible records that meet the other conditions are looked at, as a grouping of the same
request would show them.
Source: docs/contract/resource-server.md 2.2; docs/decisions.md C32, C37.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from pdpp_kernel.criteria import Condition
from personal_server.domain.authority import ReadableSource
from personal_server.domain.disclosure import Disclosed
from personal_server.enforcement.authorized_reads import values_plan
from personal_server.enforcement.plans import AggregatePlan
from personal_server.reading.empty_answers import (
    MAX_NEAR,
    MOST_VALUES,
    Emptiness,
    NearValue,
    names_values,
    visible_values,
)
from personal_server.storage.derived import once
from personal_server.storage.ports.snapshots import ReadSnapshot


def value_twins(
    snapshot: ReadSnapshot,
    sources: Sequence[ReadableSource],
    conditions: tuple[Condition, ...],
) -> Emptiness:
    """What an answer that found something leaves out by case, accents or blanks alone."""
    found: list[NearValue] = []
    for condition in conditions:
        if condition.field in _keys_of(sources[0]) or not names_values(condition, tuple(sources)):
            continue
        sought = [str(each) for each in condition.values]
        others = tuple(each for each in conditions if each is not condition)
        alike = _alike(snapshot, tuple(sources), condition, others)
        values = dict(each for plain in _plain_of(sought) for each in alike.get(plain, ()))
        twins = twins_of(sought, values, caseless=condition.caseless)
        found += [NearValue(condition.field, each, values[each], twin=True) for each in twins]
    if not found:
        return Emptiness()
    named = tuple(dict.fromkeys(each.field for each in found))
    meta: dict[str, object] = {"near": found[:MAX_NEAR]}
    return Emptiness(meta, [Disclosed(source, named, 0) for source in sources])


def twins_of(sought: Sequence[str], values: Iterable[str], *, caseless: bool = False) -> list[str]:
    """The values that are not among those sought, and are but for case, accents and blanks."""
    plain = {*_plain_of(sought)}
    met = {each.casefold() if caseless else each for each in sought}
    return [
        value
        for value in values
        if _plain(value) in plain and (value.casefold() if caseless else value) not in met
    ]


# So many are kept, of up to 5,000 values each.
_MOST_KEPT = 8
Alike = dict[str, list[tuple[str, int]]]
"""Values and how many records have each, by their letters alone."""


def _alike(
    snapshot: ReadSnapshot,
    sources: tuple[ReadableSource, ...],
    condition: Condition,
    others: tuple[Condition, ...],
) -> Alike:
    """All visible values; those of a few fields are kept as long as nothing is written."""
    kept: list[tuple[AggregatePlan, Alike]] = once(
        snapshot.derived, "values alike", list[tuple[AggregatePlan, Alike]]
    )
    plan = values_plan(sources, condition, others, MOST_VALUES)
    alike = next((values for known, values in [*kept] if known == plan), None)
    if alike is None:
        alike = Alike()
        for value, count in visible_values(snapshot, sources, condition, others).items():
            alike.setdefault(_plain(value), []).append((value, count))
        if alike:  # without any, there may have been no time to look
            kept[_MOST_KEPT - 1 :] = []
            kept.insert(0, (plan, alike))
    return alike


def _plain_of(sought: Sequence[str]) -> list[str]:
    """Their letters alone, each once."""
    return [plain for plain in dict.fromkeys(map(_plain, sought)) if plain]


def _keys_of(source: ReadableSource) -> set[str | None]:
    """Fields that hold keys, which nobody types."""
    declared = source.declared
    keys = {each.foreign_key for each in declared.relationships}
    return {*keys, *declared.primary_key, declared.conversation_field}


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(each for each in letters if not unicodedata.combining(each))
    return "".join(bare.casefold().split())
