"""Searching: rank once, keep the ranking for further pages, show hits page by page.

Rule: a ranking holds places, no text; every page reads and authorizes its records anew.
Source: docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from time import perf_counter
from typing import Any, cast

import msgspec

from pdpp_kernel.criteria import HitOrder, WordQuery
from pdpp_kernel.errors import CursorExpired
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.cursor import (
    CursorPlace,
    TokenUse,
    open_page,
    seal_place,
    sources_digest,
)
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.authorize import authorize_search
from personal_server.enforcement.first_times import first_times_found
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.ranking import first_page_first
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.search_hits import RetrievalMode, SoughtHit
from personal_server.reading.empty_answers import Emptiness, NearValue
from personal_server.reading.found_hits import (
    KEPT_HITS,
    AuthorizedSearch,
    FoundHits,
    found_lately,
    hit_records,
    is_match,
    mode_of,
    model_digest,
    request_of,
)
from personal_server.reading.freshness import least_fresh
from personal_server.reading.missing_values import without_value
from personal_server.reading.pace import leaves_at
from personal_server.reading.ports import ReadPorts
from personal_server.reading.rankings import RankedHit, Ranking, ranking_digest
from personal_server.reading.recall import SearchCoverage, source_mix
from personal_server.reading.records import unavailable_meta
from personal_server.reading.relaxing import NearWord, RelaxedSearch, written
from personal_server.reading.search_in_time import search_in_time
from personal_server.reading.semantic_search import asked_meaning
from personal_server.reading.shown_hits import (
    HitPage,
    clocks_meta,
    explain_search,
    found_nothing,
)
from personal_server.storage.ports.snapshots import ReadSnapshot

_Position = tuple[str, int, int, int, int, int, list[tuple[str, str]], int, *tuple[Any, ...]]
"""Of a cursor, which is sealed: digest of the ranking, how many hits its first page was to have,
the first hit of this page, and the figures of `SearchCoverage`; the last three (what tells the
model, how many records were not embedded, whether only the best are hits) only where one is needed.
"""


_RETRIEVAL: dict[SearchMode, RetrievalMode] = {
    SearchMode.WORDS: "lexical",
    SearchMode.MEANING: "semantic",
    SearchMode.HYBRID: "hybrid",
}


class _Turn(msgspec.Struct, frozen=True):
    """Where a page begins in which ranking, and how long the first page was to be."""

    hits: tuple[RankedHit, ...]
    findings: SearchCoverage
    first_limit: int
    questions: tuple[WordQuery, ...]
    relaxed: RelaxedSearch | None = None
    near: tuple[NearWord, ...] = ()
    begin: int = 0

    @property
    def holds_nothing(self) -> bool:
        """Whether this is the beginning of a search whose words no record holds together."""
        return self.begin == 0 and self.relaxed is not None and not self.relaxed.exact_count

    @property
    def ranking(self) -> Ranking:
        """What further pages need of it."""
        return Ranking(self.hits, self.questions, self.relaxed)


def search(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: SearchQuery,
) -> ReadResult:
    """A page of hits.

    Raises: what `authorize_search` raises, InvalidCursor, CursorExpired, QueryTimeout.
    """
    if query.sort is not HitOrder.RELEVANCE:
        return search_in_time(ports, snapshot, authority, query)
    begun = perf_counter()
    meant = asked_meaning(ports.embedder, snapshot, query)
    read = authorize_search(authority, query, meant)
    if query.cursor is None:
        turn, shown = _first_page(ports, snapshot, read, query)
    else:
        turn = _continued(ports, snapshot, read, query)
        shown = _show(snapshot, read, turn, query.limit, query)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    emptiness = Emptiness()
    if query.cursor is None and not turn.hits and read.sources:
        conditions = [read.plan.conditions.get(source.order, ()) for source in read.sources]
        emptiness = explain_search(snapshot, read, conditions, freshness)
    meta = turn.findings.meta() | source_mix(read, shown.sources, turn.findings)
    meta |= clocks_meta(query)
    if read.plan.words.ignored:
        meta["ignored_words"] = list(read.plan.words.ignored)
    if freshness is not None:
        meta["freshness"] = freshness
    meta |= unavailable_meta(authority, query.selectors) | emptiness.meta
    if turn.relaxed is not None:
        meta["relaxed"] = turn.relaxed
    if turn.near:
        meta["near"] = [*turn.near, *cast("Sequence[NearValue]", meta.get("near", ()))]
    return ReadResult(
        data=shown.hits,
        next_cursor=_next_cursor(ports, read, turn, shown.end),
        count=turn.findings.count(),
        warnings=(
            *read.warnings,
            *turn.findings.warnings(),
            *without_value(read.sources, chain.from_iterable(read.plan.conditions.values())),
            *first_times_found(authority, read.sources, query),
        ),
        meta=meta,
        disclosed=[
            *shown.disclosed(),
            *(found_nothing(read.sources) if turn.holds_nothing or not shown.hits else ()),
            *_told_words(read.sources, shown, turn),
            *emptiness.disclosed,
        ],
        leaves_at=leaves_at(
            begun,
            snapshot,
            read.plan.scopes,
            read.plan.words,
            is_relaxed=turn.relaxed is not None,
        ),
    )


def _first_page(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, query: SearchQuery
) -> tuple[_Turn, HitPage]:
    found = found_lately(ports, snapshot, read, query)
    turn = _turn(found, query.limit)
    while True:
        shown = _show(snapshot, read, turn, turn.first_limit, query)
        if shown.end == len(turn.hits) or len(shown.hits) == turn.first_limit:
            return turn, shown
        # A page that ends early has fewer places, which are shared out among the connections anew.
        fewer = _turn(found, len(shown.hits))
        if fewer.hits[: shown.end] == turn.hits[: shown.end]:
            return fewer, shown
        turn = fewer


def _turn(found: FoundHits, first_limit: int) -> _Turn:
    return _Turn(
        tuple(first_page_first(found.hits, first_limit)[:KEPT_HITS]),
        found.findings,
        first_limit,
        found.questions,
        found.relaxed,
        found.near,
    )


def _continued(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, query: SearchQuery
) -> _Turn:
    token = query.cursor or ""
    request = request_of(read)
    place = open_page(ports.sealer, TokenUse.SEARCH, token, request, read.authority, read.sources)
    position = cast("_Position", place.position)
    digest, first_limit, begin, ranked, truncated, searched, lost, pending, *meant = position
    if (meant or [""])[0] != model_digest(read):
        raise CursorExpired(
            (
                "This cursor comes from a search with another model, or with none. "
                "Search again without the cursor."
            ),
            param="cursor",
            recovery={"cursor": None},
        )
    kept = ports.rankings.find(read.authority.holder, request, digest)
    if kept is None:
        found = found_lately(ports, snapshot, read, query)
        kept = _turn(found, first_limit).ranking
    if ranking_digest(kept.hits) != digest:
        raise CursorExpired(
            "Records have changed since this search. Search again without the cursor.",
            param="cursor",
            recovery={"cursor": None},
        )
    pairs = tuple((each[0], each[1]) for each in lost)
    unembedded, is_best_only = meant[1] if meant else 0, any(meant[2:])
    findings = SearchCoverage(
        ranked, truncated, searched, pairs, pending, mode_of(read), unembedded, is_best_only
    )
    return _Turn(kept.hits, findings, first_limit, kept.questions, kept.relaxed, begin=begin)


def _show(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    turn: _Turn,
    limit: int,
    query: SearchQuery,
) -> HitPage:
    """Hits from where the page begins; records no longer visible or matching are passed over."""
    page = HitPage(snapshot, read, query, turn.begin)
    sources = {source.order: source for source in read.sources}
    coming = turn.hits[turn.begin :]
    rows = hit_records(snapshot, sources, (hit.place for hit in coming))
    for kept, (row_key, row) in zip(coming, rows, strict=True):
        source = sources.get(row_key[:2])
        if source is not None and row is not None and is_match(source, row, read.plan):
            words, mode = turn.questions[kept.question], _RETRIEVAL[turn.findings.mode]
            named = [written(term) for term in words.terms] if kept.question else None
            # what was weighed before this page is not known to be so any more
            weight = 0 if turn.begin else kept.weight
            sought = SoughtHit(words, kept.passage, mode, named, kept.duplicates, weight)
            if not page.takes(source, row, sought):
                break
        page.end += 1
        # before the next record, with which further ones may be read
        if len(page.hits) == limit or page.is_spent:
            break
    return page


def _next_cursor(ports: ReadPorts, read: AuthorizedSearch, turn: _Turn, end: int) -> str | None:
    """A cursor, if hits follow, for which the ranking is kept."""
    if end >= len(turn.hits):
        return None
    digest, findings = ranking_digest(turn.hits), turn.findings
    ports.rankings.keep(read.authority.holder, request_of(read), digest, turn.ranking)
    position = (
        digest,
        turn.first_limit,
        end,
        findings.ranked_count,
        findings.truncated_sources,
        findings.searched_sources,
        findings.lost,
        findings.pending,
        *(
            [model_digest(read), findings.unembedded, findings.is_best_only]
            if findings.mode is not SearchMode.WORDS or findings.is_best_only
            else []
        ),
    )
    place = CursorPlace(request_of(read), sources_digest(read.sources), position)
    return seal_place(ports.sealer, TokenUse.SEARCH, place)


def _told_words(sources: Sequence[ReadableSource], shown: HitPage, turn: _Turn) -> list[Disclosed]:
    """Near words are read from the searched fields, of sources without a hit too."""
    orders = {source.order for source in shown.sources} if turn.near else set[tuple[str, str]]()
    unseen = [source for source in sources if turn.near and source.order not in orders]
    return [Disclosed(source, searchable_fields(source), 0) for source in unseen]
