"""Searches: which sources take part, and what is looked for.

Rule: only granted searchable fields are ever looked at; a source that cannot take part is skipped
and said so.
Source: docs/contract/resource-server.md 11.1, 11.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pdpp_kernel.criteria import Condition, HitOrder, WordQuery
from pdpp_kernel.errors import (
    FieldNotGranted,
    InvalidFilter,
    InvalidRequest,
    NotFound,
    PersonalServerError,
    UnknownField,
)
from pdpp_kernel.record import RecordPlace
from pdpp_kernel.texts import message
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.domain.envelope import Warning, skipped
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.authority import stream_not_granted
from personal_server.enforcement.fields import conditions_on
from personal_server.enforcement.queries import ALWAYS, SearchQuery
from personal_server.enforcement.rows import Candidate, NearRecord
from personal_server.enforcement.timeline import conditions_in, time_field, without_time

MAX_QUERY_CHARS = 1_024
MAX_TERMS = 32

Sources = tuple[ReadableSource, ...]
Part = tuple[ReadableSource, tuple[Condition, ...]]
"""A source that is searched, and under which conditions."""


def searchable_fields(source: ReadableSource) -> tuple[str, ...]:
    """The granted lexical fields of a source."""
    return tuple(name for name in source.declared.lexical_fields if name in source.fields)


def checked_words(text: str) -> WordQuery:
    """What a query means.  Raises: InvalidRequest."""
    if not text.strip() or len(text) > MAX_QUERY_CHARS:
        raise InvalidRequest(
            message("'q' has 1 to %(most)s characters.", most=str(MAX_QUERY_CHARS)), param="q"
        )
    words = parse_words(text)
    if not words.terms:
        raise InvalidRequest("'q' needs a letter or a digit.", param="q")
    if sum(len(term.alternatives) for term in (*words.terms, *words.excluded)) > MAX_TERMS:
        raise InvalidRequest(message("'q' has at most %(most)s terms.", most=MAX_TERMS), param="q")
    return words


def search_parts(
    authority: ReadAuthority,
    sources: Sources,
    query: SearchQuery,
    fields_of: Callable[[ReadableSource], tuple[str, ...]] = searchable_fields,
) -> tuple[tuple[Part, ...], tuple[Warning, ...]]:
    """The sources that take part, with their conditions, and who is left out.

    Those take part that have fields to be searched (`fields_of`).

    Raises: GrantStreamNotAllowed, NotFound, InvalidRequest, and the error of the filters if no
        source can apply them.
    """
    named = named_sources(authority, sources, query.streams)
    if query.filters and len(query.streams) != 1:
        raise InvalidRequest("'filter' needs exactly one stream in 'streams'.", param="filter")
    taking_part = tuple(source for source in named if fields_of(source))
    warnings = [
        skipped(s.connection_id, s.stream, "mode_not_available")
        for s in named
        if query.streams and s not in taking_part
    ]
    if query.filters and not taking_part:
        _filtered(named, query, [])  # a filter is no less wrong where nothing is searched
    if query.times != ALWAYS or query.sort is not HitOrder.RELEVANCE:
        timeless = [source for source in taking_part if time_field(source) is None]
        warnings += without_time(timeless, query.streams)
        taking_part = tuple(source for source in taking_part if source not in timeless)
    if not taking_part:
        return (), tuple(warnings)
    return _filtered(taking_part, query, warnings)


def named_sources(authority: ReadAuthority, sources: Sources, streams: tuple[str, ...]) -> Sources:
    """The sources of these streams; all without any.  Raises: GrantStreamNotAllowed, NotFound."""
    for name in streams:
        _require_stream(authority, name)
    return tuple(source for source in sources if not streams or source.stream in streams)


def _require_stream(authority: ReadAuthority, name: str) -> None:
    if name in authority.granted_streams or any(s.stream == name for s in authority.sources):
        return
    if authority.kind is TokenKind.OWNER:
        raise NotFound(
            message("No connection here has a stream '%(stream)s'.", stream=name), param="streams"
        )
    raise stream_not_granted(authority, name, "streams")


def _filtered(
    sources: Sources, query: SearchQuery, warnings: list[Warning]
) -> tuple[tuple[Part, ...], tuple[Warning, ...]]:
    parts: list[Part] = []
    errors: list[PersonalServerError] = []
    for source in sources:
        try:
            conditions = conditions_on((source,), query.filters) + _times(source, query)
        except (UnknownField, FieldNotGranted, InvalidFilter) as error:
            errors.append(error)
            warnings.append(skipped(source.connection_id, source.stream, error.code))
        else:
            parts.append((source, conditions))
    if errors and not parts:
        raise errors[0]
    return tuple(parts), tuple(warnings)


def _times(source: ReadableSource, query: SearchQuery) -> tuple[Condition, ...]:
    field = time_field(source)
    return () if field is None else conditions_in(query.times, field)


# Ranking: the order of search hits, from candidates that hold no hidden text.
#
# Rule: collection size and mean length are constants and document frequencies are counted among
# visible records, so that nothing hidden can move a score.
# Source: docs/contract/resource-server.md 11.3.


K1 = 1.2
B = 0.75
COLLECTION_SIZE = 1_000_000
MEAN_LENGTH = 128
SCORE_DECIMALS = 6


class Ranked(NamedTuple):
    """A candidate with its score; lower is better.  What was found by meaning has its passage.

    `question`: which of those asked it answers, where wider ones followed the first; `duplicates`
    others that say the same are folded into it.  There are thousands per search.
    """

    candidate: Candidate
    score: float
    near: NearRecord | None = None
    question: int = 0
    duplicates: int = 0


def place_of(candidate: Candidate) -> RecordPlace:
    """What tells a record from all others."""
    return (candidate.connection_id, candidate.stream, candidate.key)


def rank(candidates: Sequence[Candidate], frequencies: Sequence[int]) -> list[Ranked]:
    """Best first: score, newer event time, connection, stream, key."""
    scores = _Scores([term_weight(frequency) for frequency in frequencies])
    found = [
        (
            scores[each.occurrences, each.length_tokens],
            -each.event_time_ns,
            each.connection_id,
            each.stream,
            each.key,
            each,
        )
        for each in candidates
    ]
    found.sort()
    return [Ranked(place[-1], place[0]) for place in found]


def first_page_first(ranked: Sequence[Ranked], limit: int) -> list[Ranked]:
    """The ranking with the hits of a fair first page in front, each page in rank order.

    While there are as many places as matching connections, each of them gets one.
    """
    best: dict[str, int] = {}
    for place, each in enumerate(ranked):
        best.setdefault(each.candidate.connection_id, place)
    if not len(best) <= limit < len(ranked):
        return list(ranked)
    chosen = set(best.values())
    for place in range(len(ranked)):
        if len(chosen) == limit:
            break
        chosen.add(place)
    rest = [each for place, each in enumerate(ranked) if place not in chosen]
    return [ranked[place] for place in sorted(chosen)] + rest


def term_weight(frequency: int) -> float:
    """What a term weighs that so many visible records hold."""
    return math.log(1 + (COLLECTION_SIZE - frequency + 0.5) / (frequency + 0.5))


class _Scores(dict[tuple[tuple[int, ...], int], float]):
    """By how often terms occur, and the length: most of thousands of candidates share theirs."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, held: tuple[tuple[int, ...], int]) -> float:
        occurrences, length_tokens = held
        norm = K1 * (1 - B + B * length_tokens / MEAN_LENGTH)
        total = 0.0
        for weight, count in zip(self._weights, occurrences, strict=True):
            total += weight * count * (K1 + 1) / (count + norm)
        self[held] = score = -round(total, SCORE_DECIMALS)
        return score
