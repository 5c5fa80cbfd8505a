"""Searching by meaning: when it is done, what takes part, and how it is joined with words.

Rule: passages of granted semantic fields are compared, of visible records only; what a query says
strictly (a phrase, a prefix, what is left out) holds for records that are found by meaning, too.
Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.record import RecordPlace
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.partial_matches import AFTER_SHARE, BEFORE_SHARE
from personal_server.enforcement.queries import SearchMode
from personal_server.enforcement.ranking import SCORE_DECIMALS, Ranked, place_of
from personal_server.enforcement.rows import Nearest

JOINED_HITS = 200
# Texts that have nothing to do with each other are mostly farther apart than this: seen with
# all-MiniLM-L6-v2; a model whose texts all lie near each other is cut nowhere.
FARTHEST = 0.92
# What the nearest weighs against what holds most of the words.
NEAR_SHARE = 0.7

Beside: TypeAlias = "tuple[RecordPlace | None, RecordPlace | None]"
"""The records before and after another in its conversation, `None` where there is none."""


@dataclass(frozen=True, slots=True)
class AskedMeaning:
    """What a query means, as a vector of a model, and whether words are searched for as well."""

    vector: bytes
    model: str
    mode: SearchMode


def meaning_fields(source: ReadableSource) -> tuple[str, ...]:
    """The granted semantic fields of a source; persons, which are made for a read, have none."""
    if source.made_of is not None:
        return ()
    return tuple(name for name in source.declared.semantic_fields if name in source.fields)


def is_plain(words: WordQuery) -> bool:
    """Whether a query is words alone: nothing in it says that they are meant literally."""
    return not words.excluded and not any(map(_is_strict, words.terms))


def meant_text(text: str, words: WordQuery) -> str:
    """What is embedded of a query: without its signs, and without what it leaves out or names."""
    if is_plain(words):
        return text
    spelled = (each.said for each in words.terms if each.named is None)
    return " ".join(" ".join(spelled).replace('"', " ").replace("*", " ").split()) or text


def strict_part(words: WordQuery) -> WordQuery:
    """What a record has to hold, or not to hold, however it is found."""
    strict = tuple(each for each in words.terms if _is_strict(each))
    return WordQuery(strict, words.excluded)


def _is_strict(term: Term) -> bool:
    return bool(term.quoted or term.prefix or term.others or term.named)


def by_meaning(near: Nearest) -> list[Ranked]:
    """The nearest first; what is too far to have to do with the query is no hit."""
    near_enough = (each for each in near.records if each.distance <= FARTHEST)
    return [Ranked(each.candidate, each.distance, each) for each in near_enough]


def joined(
    whole: Sequence[Ranked],
    some: Sequence[Ranked],
    meant: Sequence[Ranked],
    beside: Mapping[RecordPlace, Beside],
) -> list[Ranked]:
    """Best first, each record once: what holds all words, then what holds some of the words and
    what is near in meaning, by both together.

    Shapes: `beside` says which records stand before and after one of these in its conversation;
        what is near lends those some of its weight.

        whole: a
        some: b holds most of the words (1), c three quarters of that (0.75)
        meant: c is nearest (0.7), d half as near (0.35)        →  a, c 1.45, b 1, d 0.35
        where b stands right before d                           →  b gains 0.4 of 0.35: 1.14
    """
    # What was asked for in so many words is never below what only means something like it. Below
    # that a question as people write it often has a name or a rare word in common with its answer,
    # and says the rest otherwise, so that neither order is the better one.
    near = {place_of(each.candidate): each for each in meant[:JOINED_HITS]}
    first = {place_of(each.candidate): each for each in whole}
    partial = {place_of(each.candidate): each for each in some}
    nearness = _nearness(near)
    best = min((each.score for each in some), default=0.0)

    def order(record_place: RecordPlace) -> tuple[float, int, RecordPlace]:
        by_words = partial[record_place].score / best if best and record_place in partial else 0.0
        around = zip((BEFORE_SHARE, AFTER_SHARE), beside.get(record_place, ()), strict=False)
        lent = sum(share * nearness.get(other, 0.0) for share, other in around if other is not None)
        weight = by_words + NEAR_SHARE * (nearness.get(record_place, 0.0) + lent)
        candidate = (partial.get(record_place) or near[record_place]).candidate
        return (-round(weight, SCORE_DECIMALS), -candidate.event_time_ns, record_place)

    rest = sorted(({*partial, *near} - {*first}), key=order)
    by_words = partial | first
    passages = {place: each.near for place, each in near.items()}
    return [
        by_words[place]._replace(near=passages.get(place)) if place in by_words else near[place]
        for place in (*first, *rest)
    ]


def _nearness(near: Mapping[RecordPlace, Ranked]) -> dict[RecordPlace, float]:
    """How much nearer each is than the farthest, as a share of what the nearest is.

    Distances of one model say nothing beside those of another, their order and their shares do.

        distances of a 0.32, b 0.62, c 0.92, which is `FARTHEST`  →  a 1, b 0.5, c 0
    """
    distances = [each.score for each in near.values()]
    if not distances:
        return {}
    farthest = max(distances) if len(distances) == JOINED_HITS else FARTHEST
    span = farthest - min(distances)
    return {place: (farthest - each.score) / span if span else 1.0 for place, each in near.items()}
