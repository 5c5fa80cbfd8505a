"""Closeness: how near the words of a query stand in a record, and which hits say the same.

Rule: both follow from granted searchable text alone, of the best hits only, so that the work of a
search is bounded; what was not looked at keeps its place.
Source: docs/contract/resource-server.md 11.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, starmap
from typing import NamedTuple

from pdpp_kernel.criteria import WordQuery
from pdpp_kernel.record import StoredRecord
from personal_server.domain.authority import ReadableSource
from personal_server.domain.search_words import TextWords, text_words
from personal_server.domain.spaced_text import spaced
from personal_server.enforcement.named_fields import words_in
from personal_server.enforcement.ranking import (
    SCORE_DECIMALS,
    Ranked,
    in_order,
    place_of,
    term_weight,
)
from personal_server.enforcement.search import searchable_fields

# So many of the best hits are looked at, until their fields come to so much text.
LOOKED_AT_HITS = 50
LOOKED_AT_CHARS = 1_000_000
FIELD_CHARS = 20_000
# Terms that stand farther apart are not near.
NEAR_WORDS = 8
# Of one term so many places are looked at.
_PLACES = 64
NEARNESS = 2.2

_LONG_WORDS = 20
_SHARED_PERCENT = 85
_TAIL_WORDS, _TAIL_PERCENT = 3, 75


class LookedAt(NamedTuple):
    """What is known of a hit: how near its terms are, by neighbours in the query, and its words.

    `gaps` are 1 where two terms stand side by side in their order, 0 where they are not near;
    `said` are the words of what can be folded, none of what cannot.
    """

    gaps: tuple[int, ...]
    said: tuple[str, ...]


def is_foldable(source: ReadableSource) -> bool:
    """Whether its records are what somebody said, of which much is said again."""
    return bool(source.declared.fields_with_role("author"))


def look_at(
    source: ReadableSource, row: StoredRecord, words: WordQuery, weight: int = 0
) -> LookedAt:
    """Look at one hit; `weight`: what the words weigh in it together, 0 where nobody knows."""
    texts = {
        name: text[:FIELD_CHARS]
        for name in searchable_fields(source)
        if isinstance(text := row.data.get(name), str)
    }
    asked = words_in(words, source.declared, source.fields)
    pairs = len(asked.terms) - 1
    counted = {name: TextWords(spaced(text), None) for name, text in texts.items()}
    gaps = [0] * pairs
    if pairs:
        found = _found(counted, asked)
        weighty = source.declared.weighty_fields
        spelled = sum(each.weight * (2 if name in weighty else 1) for name, each in found.items())
        if not weight or weight != spelled:  # or else nobody needs languages and stems
            found = _found({name: text_words(text) for name, text in texts.items()}, asked)
        for each in found.values():
            both = zip(gaps, starmap(_gap, pairwise(each.places)), strict=True)
            gaps = [min(filter(None, pair), default=0) for pair in both]
    if not is_foldable(source):
        return LookedAt(tuple(gaps), ())
    roles = (source.declared.fields_with_role(role) for role in ("author", "recipient"))
    others = {name for named in roles for name in named}
    said = [word for name, each in counted.items() if name not in others for word in each.words]
    return LookedAt(tuple(gaps), tuple(said))


class _Found(NamedTuple):
    """Where each term stands in a field, [start, end) by words, and what all of them weigh."""

    places: list[list[tuple[int, int]]]
    weight: int


def _found(counted: Mapping[str, TextWords], words: WordQuery) -> dict[str, _Found]:
    """What is found in each field."""
    return {name: _found_in(within, name, words) for name, within in counted.items()}


def _found_in(within: TextWords, field: str, words: WordQuery) -> _Found:
    found: list[list[tuple[int, int]]] = []
    weight = 0
    for term in words.terms:
        stretches: list[tuple[int, int]] = []
        for each in term.alternatives_in(field):
            places, weight_of_each = within.found(each)
            weight += weight_of_each
            stretches += [(at, at + len(each.tokens)) for at in places[:_PLACES]]
        found.append(sorted(stretches))
    return _Found(found, weight)


def _gap(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> int:
    """1 side by side, 2 the other way round or with one word between, 0 beyond `NEAR_WORDS`."""
    best = NEAR_WORDS + 1
    for begin, end in first:
        for start, stop in second:
            if start >= end:
                best = min(best, start - end + 1)
                break  # the others are farther away
            if stop <= begin:
                best = min(best, begin - stop + 2)
    return best if best <= NEAR_WORDS else 0


def refined(
    ranked: Sequence[Ranked],
    seen: Mapping[tuple[str, str, str], LookedAt],
    frequencies: Sequence[int],
) -> list[Ranked]:
    """The ranking with near terms counted, and hits that say the same folded into the best one."""
    weights = [term_weight(frequency) for frequency in frequencies]
    shared = [NEARNESS * min(pair) for pair in pairwise(weights)]
    scored: list[Ranked] = []
    for each in ranked:
        known = seen.get(place_of(each.candidate))
        if known is not None and known.gaps:
            near = zip(shared, known.gaps, strict=True)
            bonus = sum(weight / gap for weight, gap in near if gap)
            each = each._replace(score=round(each.score - bonus, SCORE_DECIMALS))
        scored.append(each)
    scored.sort(key=in_order)
    return _folded(scored, seen)


def _folded(
    ranked: Sequence[Ranked], seen: Mapping[tuple[str, str, str], LookedAt]
) -> list[Ranked]:
    heads: dict[tuple[str, str], list[tuple[int, _Said]]] = {}
    kept: list[Ranked] = []
    for each in ranked:
        known = seen.get(place_of(each.candidate))
        if known is None or not known.said:
            kept.append(each)
            continue
        record_words = _Said(known.said)
        candidate = each.candidate
        beside = heads.setdefault((candidate.connection_id, candidate.stream), [])
        at = next((at for at, other in beside if record_words.is_like(other)), None)
        if at is None:
            beside.append((len(kept), record_words))
            kept.append(each)
        else:
            kept[at] = kept[at]._replace(duplicates=kept[at].duplicates + 1)
    return kept


class _Said:
    """The words of a hit, as they are compared."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.different = frozenset(words)
        self.numbers = frozenset(word for word in self.different if not word.isalpha())

    def is_like(self, other: _Said) -> bool:
        """Whether two hits say the same, but for little."""
        if self.words == other.words:
            return True
        sizes = sorted((len(self.different), len(other.different)))
        if sizes[0] >= _LONG_WORDS:
            return self._shares_most(other, sizes)
        return sizes[1] < _LONG_WORDS and self._ends_alike(other)

    def _shares_most(self, other: _Said, sizes: Sequence[int]) -> bool:
        """Long ones, such as a reply below what it quotes; of numbers one has no others."""
        if 100 * sizes[0] < _SHARED_PERCENT * sizes[1]:
            return False
        if not (self.numbers <= other.numbers or other.numbers <= self.numbers):
            return False
        both = len(self.different & other.different)
        return 100 * both >= _SHARED_PERCENT * (sum(sizes) - both)

    def _ends_alike(self, other: _Said) -> bool:
        """Short ones that begin with another name, such as notices of who joined."""
        tail = 0
        for one, two in zip(reversed(self.words), reversed(other.words), strict=False):
            if one != two:
                break
            tail += 1
        longest = max(len(self.words), len(other.words))
        begun = (*self.words[: len(self.words) - tail], *other.words[: len(other.words) - tail])
        is_most = tail >= _TAIL_WORDS and 100 * tail >= _TAIL_PERCENT * longest
        return is_most and all(word.isalpha() for word in begun)
