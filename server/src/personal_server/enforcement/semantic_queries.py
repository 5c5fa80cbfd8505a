"""Searching by meaning: when it is done, what takes part, and how it is joined with words.

Rule: passages of granted semantic fields are compared, of visible records only; what a query says
strictly (a phrase, a prefix, what is left out) holds for records that are found by meaning, too.
Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.record import RecordPlace
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.partial_matches import AFTER_SHARE, BEFORE_SHARE, word_weight
from personal_server.enforcement.queries import SearchMode
from personal_server.enforcement.ranking import SCORE_DECIMALS, Ranked, place_of
from personal_server.enforcement.rows import Nearest

JOINED_HITS = 200
# Texts that have nothing to do with each other are mostly farther apart than this: seen with
# all-MiniLM-L6-v2; a model whose texts all lie near each other is cut nowhere.
FARTHEST = 0.92
# What the nearest weighs against what holds most of the words.
NEAR_SHARE = 0.7
# In a conversation an answer is often near what holds the words of its question, and says none of
# them: what weighs there is what a record holds, the most that was said within the hour holds, how
# near it is and those beside it, which of the words are said around it, and whether those who are
# named write there or stand in a title.  Chosen on the half of `bench.asked` that is tuned on: with
# any of its conversations left out about the same were the best, and found more in that one, too.
OWN_SHARE, HOUR_SHARE, TOGETHER_SHARE = 0.25, 0.55, 0.45
AROUND_SHARE, WRITERS_SHARE = 0.4, 0.4
HOUR_NS = 3_600_000_000_000
# Of so many of the best what they say is looked at.
READ_HITS = 30

Gains: TypeAlias = "Callable[[Sequence[RecordPlace]], Mapping[RecordPlace, float]]"
"""What some records gain, or lose, by what they say."""


class StandsBeside(NamedTuple):
    """The records before and after another in its conversation, `None` where there is none, and
    what tells that conversation from others.
    """

    before: RecordPlace | None
    after: RecordPlace | None
    conversation: Hashable


class SomeWords(NamedTuple):
    """The words of which some are enough: what each weighs, and the places of names of authors."""

    weights: tuple[float, ...] = ()
    authors: frozenset[int] = frozenset()


def some_words(
    words: WordQuery, frequencies: Sequence[int], authors: Collection[Term]
) -> SomeWords:
    """Of a question and how many visible records hold each of its terms."""
    if words.least is None:
        return SomeWords()
    places = frozenset(place for place, term in enumerate(words.terms) if term in authors)
    return SomeWords(tuple(map(word_weight, frequencies)), places)


class AskedMeaning(msgspec.Struct, frozen=True):
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
    beside: Mapping[RecordPlace, StandsBeside],
    asked: SomeWords,
    gains: Gains,
) -> list[Ranked]:
    """Best first, each record once: what holds all words, then what holds some of the words and
    what is near in meaning, by both together.

    Shapes: `beside` says which records stand before and after one of these in its conversation;
        what is near lends those some of its weight, and what holds most of the words lends to all
        that was said within an hour of it; `asked` are the words that `some` hold; `gains` is asked
        for the best.

        whole: a
        some: b holds most of the words (1), c three quarters of that (0.75)
        meant: c is nearest (0.7), d half as near (0.35)        →  a, c 1.45, b 1, d 0.35
        where b stands right before d, in one conversation, a
        minute apart, and holds words that weigh 0.8 of all     →
            b 0.25 + 0.55 + 0.4 · 0.8 + 0.45 · 0.4 · 0.5 = 1.21
            d 0.55 + 0.4 · 0.8 + 0.45 · 0.5 = 1.1
    """
    # What was asked for in so many words is never below what only means something like it. Below
    # that a question as people write it often has a name or a rare word in common with its answer,
    # and says the rest otherwise, so that neither order is the better one.
    near = {place_of(each.candidate): each for each in meant[:JOINED_HITS]}
    first = {place_of(each.candidate): each for each in whole}
    partial = {place_of(each.candidate): each for each in some}
    nearness = _nearness(near)
    best = min((each.score for each in some), default=0.0)

    by_words = {place: each.score / best for place, each in partial.items()} if best else {}
    said = {place: (partial.get(place) or near[place]).candidate for place in {*partial, *near}}
    hours = _hours(by_words, beside, {place: each.event_time_ns for place, each in said.items()})
    held = {place: each.candidate.occurrences for place, each in partial.items()}
    around_each, writers = _around(held, beside, asked), _writers(held, beside, asked)

    def weighed(record_place: RecordPlace) -> float:
        own, nearest = by_words.get(record_place, 0.0), nearness.get(record_place, 0.0)
        around = beside.get(record_place)
        if around is None:
            return own + NEAR_SHARE * nearest
        sides = zip((BEFORE_SHARE, AFTER_SHARE), (around.before, around.after), strict=True)
        lent = sum(share * nearness.get(other, 0.0) for share, other in sides if other)
        words = OWN_SHARE * own + HOUR_SHARE * hours.get(record_place, 0.0)
        words += AROUND_SHARE * around_each.get(record_place, 0.0)
        words += WRITERS_SHARE * writers.get(around.conversation, 0.0)
        return words + TOGETHER_SHARE * (nearest + lent)

    weights = {place: weighed(place) for place in said.keys() - first.keys()}

    def order(record_place: RecordPlace) -> tuple[float, int, RecordPlace]:
        weight = round(weights[record_place], SCORE_DECIMALS)
        return (-weight, -said[record_place].event_time_ns, record_place)

    rest = sorted(weights, key=order)
    for place, gained in gains(rest[:READ_HITS]).items():
        weights[place] += gained
    rest[:READ_HITS] = sorted(rest[:READ_HITS], key=order)
    held_by_words = partial | first
    passages = {place: each.near for place, each in near.items()}
    return [
        held_by_words[place]._replace(near=passages.get(place))
        if place in held_by_words
        else near[place]
        for place in (*first, *rest)
    ]


def _hours(
    by_words: Mapping[RecordPlace, float],
    beside: Mapping[RecordPlace, StandsBeside],
    times_ns: Mapping[RecordPlace, int],
) -> dict[RecordPlace, float]:
    """By record of a conversation the most that one of the same holds that was said within an hour
    of it, itself among them.
    """
    holders: dict[Hashable, list[tuple[float, int]]] = {}
    for place, held in sorted(by_words.items(), key=lambda each: -each[1]):
        around = beside.get(place)
        if around is not None:
            holders.setdefault(around.conversation, []).append((held, times_ns[place]))
    return {
        place: next(
            (
                held
                for held, at in holders.get(beside[place].conversation, ())
                if abs(at - times_ns[place]) <= HOUR_NS
            ),
            0.0,
        )
        for place in times_ns.keys() & beside.keys()
    }


def _around(
    held: Mapping[RecordPlace, Sequence[int]],
    beside: Mapping[RecordPlace, StandsBeside],
    asked: SomeWords,
) -> dict[RecordPlace, float]:
    """By record of a conversation the share of all words, as they weigh, that it holds or one of
    the two before it and the two behind it, of those that hold some.

        a holds `rain`, the next one nothing, the one behind it `Friday`  →  all three have both
    """
    total = sum(asked.weights)
    if not total:
        return {}
    # who is two records away has the one between in common
    sides = {
        place: [place, *(at for at in (each.before, each.after) if at is not None)]
        for place, each in beside.items()
    }
    near: dict[RecordPlace, int] = {}  # a bit for each word
    for holder in held.keys() & sides.keys():
        own = sum(1 << word for word, count in enumerate(held[holder]) if count)
        for place in sides[holder]:
            near[place] = near.get(place, 0) | own
    words = dict.fromkeys(sides, 0)
    for place, places in sides.items():
        for at in places:
            words[place] |= near.get(at, 0)
    shares = {
        each: sum(weight for word, weight in enumerate(asked.weights) if each >> word & 1) / total
        for each in {*words.values()}
    }
    return {place: shares[each] for place, each in words.items()}


def _writers(
    held: Mapping[RecordPlace, Sequence[int]],
    beside: Mapping[RecordPlace, StandsBeside],
    asked: SomeWords,
) -> dict[Hashable, float]:
    """By conversation the share of the named authors whose names are in its weighty fields.

    Those are who wrote, and a title: `Ada` writes in it, or its subject names her.
    """
    named: dict[Hashable, set[int]] = {}
    for place in held.keys() & beside.keys() if asked.authors else ():
        # a word counts double in a weighty field (resource server 11.3), and once elsewhere
        weighty = {author for author in asked.authors if held[place][author] > 1}
        named.setdefault(beside[place].conversation, set()).update(weighty)
    return {conversation: len(some) / len(asked.authors) for conversation, some in named.items()}


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
