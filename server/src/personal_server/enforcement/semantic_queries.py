"""Searching by meaning: when it is done, what takes part, and how it is joined with words.

Rule: passages of granted semantic fields are compared, of visible records only; what a query says
strictly (a phrase, a prefix, what is left out) holds for records that are found by meaning, too.
Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.queries import SearchMode
from personal_server.enforcement.ranking import Ranked, place_of
from personal_server.enforcement.rows import Nearest

JOINED_HITS = 200
# Texts that have nothing to do with each other are mostly farther apart than this: seen with
# all-MiniLM-L6-v2; a model whose texts all lie near each other is cut nowhere.
FARTHEST = 0.92


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
    said = (each.said for each in words.terms if each.named is None)
    return " ".join(" ".join(said).replace('"', " ").replace("*", " ").split()) or text


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
    whole: Sequence[Ranked], some: Sequence[Ranked], meant: Sequence[Ranked]
) -> list[Ranked]:
    """Best first, each record once: what holds all words, then in turn what is near in meaning and
    what holds some of the words.

        joined([a], [b, c], [d, a, c])  →  a d b c

    """
    # What was asked for in so many words is never below what only means something like it. Below
    # that neither is the better one: where a question has other words than the records, what holds
    # some of them is chance; where it has a name in it, what is near is.
    near = {place_of(each.candidate): each for each in meant[:JOINED_HITS]}
    first = {place_of(each.candidate): each for each in whole}
    by_words = first | {place_of(each.candidate): each for each in some}
    apart = [place for place in near if place not in first]
    others = [place_of(each.candidate) for each in some]
    in_turn = (place for pair in zip_longest(apart, others) for place in pair if place is not None)
    passages = {place: each.near for place, each in near.items()}
    return [
        by_words[place]._replace(near=passages.get(place)) if place in by_words else near[place]
        for place in dict.fromkeys((*first, *in_turn))
    ]
