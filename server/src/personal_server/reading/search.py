"""Searching: rank once, keep the ranking for further pages, show hits page by page.

Rule: a ranking holds places, no text; every page reads and authorizes its records anew.
Source: docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from time import perf_counter
from typing import Any, cast

import msgspec

from pdpp_kernel.criteria import Condition, HitOrder, WordQuery
from pdpp_kernel.errors import CursorExpired, QueryTimeout
from pdpp_kernel.record import RecordPlace, StoredRecord
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.cursor import (
    CursorPlace,
    TokenUse,
    open_page,
    request_digest,
    seal_place,
    sources_digest,
)
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import (
    ReadResult,
)
from personal_server.enforcement.authorize import authorize_search, authorize_search_in_time
from personal_server.enforcement.authorized_reads import (
    AuthorizedRead,
    first_change_plan,
    hit_plan,
    neighbours_plan,
)
from personal_server.enforcement.closeness import (
    LOOKED_AT_CHARS,
    LOOKED_AT_HITS,
    LookedAt,
    is_foldable,
    look_at,
    refined,
)
from personal_server.enforcement.local_times import clock_of
from personal_server.enforcement.named_fields import words_in
from personal_server.enforcement.orders import (
    Order,
    answering,
    merged,
    ordered,
    places_of,
    unpacked,
    without,
)
from personal_server.enforcement.page_sizes import PageFill
from personal_server.enforcement.plans import SearchPlan, TimelinePlan
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.ranking import Ranked, first_page_first, place_of, rank
from personal_server.enforcement.rows import Matches, Nearest, Neighbours, RowPage
from personal_server.enforcement.scopes import scope_of
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.search_hits import (
    FoundPassage,
    RetrievalMode,
    SearchResult,
    disclose_context,
    disclose_hit,
    naming_conversations,
    spoken_fields,
    text_chars,
)
from personal_server.enforcement.semantic_queries import (
    JOINED_HITS,
    by_meaning,
    joined,
    meaning_fields,
    strict_part,
)
from personal_server.reading.empty_answers import Emptiness, NearValue, explain_empty
from personal_server.reading.freshness import ShownFreshness, least_fresh
from personal_server.reading.missing_values import without_value
from personal_server.reading.pace import leaves_at
from personal_server.reading.partial_hits import MOST_PARTIAL_HITS, partial_hits, places_beside
from personal_server.reading.ports import ReadPorts
from personal_server.reading.rankings import Kept, RankedHit, Ranking, ranking_digest
from personal_server.reading.recall import SearchCoverage, source_mix
from personal_server.reading.records import unavailable_meta
from personal_server.reading.relaxing import (
    FEW_HITS,
    NearWord,
    Relaxation,
    RelaxedSearch,
    relaxation,
    step_seconds,
    written,
)
from personal_server.reading.semantic_search import asked_meaning
from personal_server.reading.timeline import time_cursor, time_position
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS, ReadSnapshot
from personal_server.storage.row_rules import holds, holds_words, words_of

AuthorizedSearch = AuthorizedRead[SearchPlan]


KEPT_HITS = 1_000
# A page of hits ends early when so much text was looked at for it.
PAGE_TEXT_CHARS = 1 << 25
# So many records of hits are read at once.
READ_TOGETHER = 25
RANKING_SHARE = 2 / 3
# After more changes than this it is quicker to rank anew than to look at each of them.
MOST_CHANGES = 1_000

_Position = tuple[str, int, int, int, int, int, list[tuple[str, str]], int, *tuple[Any, ...]]
"""Of a cursor, which is sealed: digest of the ranking, how many hits its first page was to have,
the first hit of this page, and the figures of `SearchCoverage`; the last three (what tells the
model, how many records were not embedded, whether only the best are hits) only where one is needed.
"""


@dataclass(frozen=True, slots=True)
class _Turn:
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


@dataclass(frozen=True, slots=True)
class _Found:
    """All hits in their order, and what was asked to find them."""

    ranked: list[Ranked]
    findings: SearchCoverage
    questions: tuple[WordQuery, ...]
    relaxed: RelaxedSearch | None = None
    near: tuple[NearWord, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sought:
    """By what a hit was found; `written`: how the caller wrote the words, where it says which;
    `is_lean`: the caller counts characters.
    """

    words: WordQuery
    passage: FoundPassage | None = None
    mode: RetrievalMode = "lexical"
    written: Sequence[str] | None = None
    is_lean: bool = False


@dataclass(frozen=True, slots=True)
class _ShownHits:
    """The hits of a page, each already JSON, where they are, and how far the ranking was read.

    Shapes: `places` holds the source and the key of each hit, `beside` those of neighbours in its
        conversation that hits tell of.
    """

    hits: list[msgspec.Raw]
    places: list[tuple[ReadableSource, str]]
    beside: list[tuple[ReadableSource, str]]
    end: int

    @property
    def sources(self) -> list[ReadableSource]:
        """The source of each hit."""
        return [source for source, _ in self.places]


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
        return _search_in_time(ports, snapshot, authority, query)
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
        emptiness = _explained(snapshot, read, conditions, freshness)
    meta = turn.findings.meta() | source_mix(read, shown.sources, turn.findings)
    meta |= _clocks(query)
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
        ),
        meta=meta,
        disclosed=[
            *_disclosed([*shown.places, *shown.beside]),
            *(_found_nothing(read.sources) if turn.holds_nothing or not shown.hits else ()),
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


def _explained(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[Any],
    asked: Sequence[tuple[Condition, ...]],
    freshness: ShownFreshness | None,
) -> Emptiness:
    """Sources that meet the conditions of the first one speak for the search."""
    alike = [s for s, conditions in zip(read.sources, asked, strict=True) if conditions == asked[0]]
    return explain_empty(snapshot, alike, asked[0], read.warnings, freshness)


def _found(snapshot: ReadSnapshot, read: AuthorizedSearch, *, exact: bool) -> _Found:
    """Records that hold all words; below them, while they are few, those that wider questions find.

    What is found by meaning joins all of these.
    """
    # An equal share for every source, so that a slow one costs no other its place.
    share = READ_DEADLINE_SECONDS * RANKING_SHARE / max(1, len(read.sources))
    plan, mode = replace(read.plan, seconds_each=share), _mode(read)
    first = snapshot.search(plan)
    strict = ordered(first.candidates, first.document_frequencies)
    matches, wider, count = [first], Relaxation(), len(strict)
    answers: list[Order] = [strict]
    is_few = count < FEW_HITS and bool(plan.scopes) and not first.lost
    if is_few and not exact:
        wider = relaxation(snapshot, plan, count)
        if first.pending:  # an index that is being made does not know what no record holds
            wider = replace(wider, absent=())
        for words in wider.questions:
            if sum(map(len, answers)) >= FEW_HITS:
                break
            asked = replace(plan, words=words, seconds_each=step_seconds(plan))
            matches.append(snapshot.search(asked))
            answers.append(_further(snapshot, read, answers, matches, words))
    asked_too, total = len(matches) - 1, sum(map(len, answers))
    is_told = is_few and not exact and (total > count or not count)
    note = wider.told(plan.words, count, asked_too) if is_told else None
    questions = (plan.words, *wider.questions[:asked_too])
    whole = sum(
        len(answer) for answer, asked in zip(answers, questions, strict=True) if asked.least is None
    )
    near = _nearest(snapshot, read, plan, whole)
    _require_any(read, first.lost | near.lost)
    best, left_out = _refined(snapshot, read, strict, first.document_frequencies)
    ranked = list(best)
    for answer in answers[1:]:
        ranked += (shown := unpacked(answer, KEPT_HITS))
        left_out += len(answer) - len(shown)
    if mode is not SearchMode.WORDS:
        meant = _strictly(snapshot, read, by_meaning(near))
        if meant:
            folded = {_place(each) for each in strict} - {_place(each) for each in best}
            meant = [each for each in meant if _place(each) not in folded]
        is_hybrid = mode is SearchMode.HYBRID
        ranked = _both(snapshot, read, ranked, questions, meant) if is_hybrid else meant
        total = len(ranked) + (left_out if is_hybrid else 0)
    is_best_only = questions[-1].least is not None and len(answers[-1]) == MOST_PARTIAL_HITS
    coverage = replace(_coverage(read, total, matches, near), is_best_only=is_best_only)
    return _Found(ranked, coverage, questions, note, wider.near)


def _both(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    ranked: Sequence[Ranked],
    questions: Sequence[WordQuery],
    meant: Sequence[Ranked],
) -> list[Ranked]:
    """Hits by words and by meaning; those by words hold all of them, or some."""
    if not meant:
        return list(ranked)
    whole = [each for each in ranked if questions[each.question].least is None]
    some = [each for each in ranked if questions[each.question].least is not None]
    weighed = {_place(each) for each in (*some, *meant[:JOINED_HITS])}
    beside = places_beside(snapshot, read.sources, weighed - {_place(each) for each in whole})
    return joined(whole, some, meant, beside)


def _further(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    answers: Sequence[Order],
    matches: Sequence[Matches],
    words: WordQuery,
) -> Order:
    """What the last question found, and none before it, of which there are few answers."""
    known = {_place(each) for answer in answers for each in answer}
    found, number = matches[-1], len(matches) - 1
    if words.least is None:
        more = ordered(found.candidates, found.document_frequencies)
        return answering(without(more, places_of(more, known)), number)
    return answering(partial_hits(snapshot, read.sources, found, known), number)


def _place(found: Ranked) -> RecordPlace:
    return place_of(found.candidate)


def _require_any(read: AuthorizedSearch, lost: Collection[tuple[str, str]]) -> None:
    if lost and len(lost) == len(read.sources):
        raise QueryTimeout(
            "The search took too long. Add a rarer word, a stream or filters.",
            retry_after_seconds=1,
        )


def _coverage(
    read: AuthorizedSearch, count: int, matches: Sequence[Matches], near: Nearest
) -> SearchCoverage:
    lost = near.lost.union(*(each.lost for each in matches))
    truncated = frozenset[tuple[str, str]]().union(*(each.truncated for each in matches))
    return SearchCoverage(
        ranked_count=count,
        truncated_sources=len(truncated),
        searched_sources=len(read.sources) - len(lost),
        lost=tuple(sorted(lost)),
        pending=matches[0].pending,
        mode=_mode(read),
        unembedded=near.pending,
    )


def _refined(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    ranked: Order,
    frequencies: Sequence[int],
) -> tuple[list[Ranked], int]:
    """The ranking after a look at its best hits, and at those that hold all words side by side; of
    the others those that a page may show, and how many are left out.

    Where there are more matches than are looked at, these may be anywhere among them, so that the
    index is asked for them.
    """
    plan = read.plan
    sources = {source.order: source for source in read.sources}
    if len(frequencies) == 1:
        sources = {order: source for order, source in sources.items() if is_foldable(source)}
    looked_at = list(range(min(len(ranked), LOOKED_AT_HITS))) if sources else []
    others: list[Ranked] = []
    phrase = plan.words.phrase
    if sources and phrase is not None and len(ranked) > LOOKED_AT_HITS:
        asked = replace(plan, words=WordQuery((phrase,)), window=LOOKED_AT_HITS, frequency_limit=0)
        asked = replace(asked, seconds_each=step_seconds(plan))
        whole = {place_of(each): each for each in snapshot.search(asked).candidates}
        known = places_of(ranked, whole.keys())
        for at in known:
            whole.pop(_place(ranked[at]))
        looked_at += [at for at in known if at >= LOOKED_AT_HITS]
        # older than the newest matches: each word is at least where the phrase is
        older = [c._replace(occurrences=c.occurrences * len(frequencies)) for c in whole.values()]
        others = rank(older, frequencies)
    best = [*(ranked[at] for at in looked_at), *others]
    places = [row_key for row_key in map(_place, best) if row_key[:2] in sources]
    seen: dict[RecordPlace, LookedAt] = {}
    chars = 0
    for row_key, row in _records(snapshot, sources, places):
        if chars > LOOKED_AT_CHARS:
            break
        if row is not None:
            source = sources[row_key[:2]]
            chars += text_chars(source, row)
            seen[row_key] = look_at(source, row, plan.words)
    rest = without(ranked, looked_at)
    shown = unpacked(rest, KEPT_HITS)
    moved = refined(best, seen, frequencies)
    return merged(moved, shown), len(rest) - len(shown)


def _mode(read: AuthorizedSearch) -> SearchMode:
    """By what is searched, which the plan says."""
    plan = read.plan
    if plan.meaning is None or not plan.meaning.scopes:
        return SearchMode.WORDS
    return SearchMode.HYBRID if plan.scopes else SearchMode.MEANING


def _nearest(
    snapshot: ReadSnapshot, read: AuthorizedSearch, plan: SearchPlan, count: int
) -> Nearest:
    """What is near; nothing is compared where so many hold all words that none would be shown."""
    if plan.meaning is None or _mode(read) is SearchMode.WORDS:
        return Nearest(())
    if count > JOINED_HITS and _mode(read) is SearchMode.HYBRID:
        return Nearest((), snapshot.count_unembedded(plan.meaning.scopes))
    return snapshot.nearest(replace(plan.meaning, seconds_each=plan.seconds_each))


def _strictly(
    snapshot: ReadSnapshot, read: AuthorizedSearch, found: Sequence[Ranked]
) -> list[Ranked]:
    """Those that hold, and do not hold, what the query says strictly."""
    strict = strict_part(read.plan.words)
    if not strict.terms and not strict.excluded:
        return list(found)
    sources = {source.order: source for source in read.sources}
    kept: list[Ranked] = []
    rows = _records(snapshot, sources, [_place(each) for each in found])
    for each, (row_key, row) in zip(found, rows, strict=True):
        source = sources[row_key[:2]]
        words = words_in(strict, source.declared, source.fields)
        if row is None or not _is_match(source, row, read.plan):
            continue
        if holds_words(words_of(row.data, searchable_fields(source)), words):
            kept.append(each)
    return kept


def _found_lately(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, *, exact: bool
) -> _Found:
    """What was found for the same request within a minute, if nothing it may see changed since.

    Only changes of visible values count, as in a feed: that something hidden was written must not
    make an answer slower.
    """
    holder, now_ns = read.authority.holder, ports.clock()
    request = f"{_request(read)} {sources_digest(read.sources)} {_model(read)} {exact}"
    kept = ports.recent.find(holder, request, now_ns)
    if kept is not None and not _changed(snapshot, read, kept.sequence):
        return cast("_Found", kept.found)
    found = _shortened(_found(snapshot, read, exact=exact))
    findings = found.findings
    is_computed = any(source.made_of is not None for source in read.sources)
    if not (findings.lost or findings.pending or findings.unembedded or found.near or is_computed):
        ports.recent.keep(holder, request, Kept(found, snapshot.horizon, now_ns))
    return found


def _changed(snapshot: ReadSnapshot, read: AuthorizedSearch, sequence: int) -> bool:
    """Whether a visible record came, went or changed since."""
    if snapshot.horizon == sequence:
        return False
    is_near = snapshot.retained_from <= sequence <= snapshot.horizon <= sequence + MOST_CHANGES
    if not is_near:
        return True
    plan = first_change_plan(read.sources, sequence, snapshot.horizon)
    return bool(snapshot.changes(plan).items)


def _shortened(found: _Found) -> _Found:
    """Without hits that no page shows: behind the best, the first of each connection may be."""
    rest = found.ranked[KEPT_HITS:]
    first = {each.candidate.connection_id: each for each in reversed(rest)}
    kept = [each for each in rest if each is first[each.candidate.connection_id]]
    return replace(found, ranked=[*found.ranked[:KEPT_HITS], *kept])


def _turn(found: _Found, first_limit: int) -> _Turn:
    ordered = first_page_first(found.ranked, first_limit)[:KEPT_HITS]
    return _Turn(
        tuple(map(_kept, ordered)),
        found.findings,
        first_limit,
        found.questions,
        found.relaxed,
        found.near,
    )


def _first_page(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, query: SearchQuery
) -> tuple[_Turn, _ShownHits]:
    found = _found_lately(ports, snapshot, read, exact=query.exact)
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


def _kept(found: Ranked) -> RankedHit:
    (connection_id, stream, key, *_), _, near, question, duplicates = found
    passage = None
    if near is not None:
        passage = FoundPassage(near.field, near.start_chars, near.end_chars)
    return RankedHit(connection_id, stream, key, passage, question, duplicates)


_RETRIEVAL: dict[SearchMode, RetrievalMode] = {
    SearchMode.WORDS: "lexical",
    SearchMode.MEANING: "semantic",
    SearchMode.HYBRID: "hybrid",
}


def _request(read: AuthorizedSearch) -> str:
    return request_digest(read.authority.cursor_holder, "search/lexical", read.asked)


def _model(read: AuthorizedSearch) -> str:
    """What tells the model by which was searched, in short."""
    meaning = read.plan.meaning if _mode(read) is not SearchMode.WORDS else None
    return "" if meaning is None else sha256(meaning.model.encode()).hexdigest()[:8]


def _continued(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, query: SearchQuery
) -> _Turn:
    token = query.cursor or ""
    request = _request(read)
    place = open_page(ports.sealer, TokenUse.SEARCH, token, request, read.authority, read.sources)
    position = cast("_Position", place.position)
    digest, first_limit, begin, ranked, truncated, searched, lost, pending, *meant = position
    if (meant or [""])[0] != _model(read):
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
        found = _found_lately(ports, snapshot, read, exact=query.exact)
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
        ranked, truncated, searched, pairs, pending, _mode(read), unembedded, is_best_only
    )
    return _Turn(kept.hits, findings, first_limit, kept.questions, kept.relaxed, begin=begin)


def _show(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    turn: _Turn,
    limit: int,
    query: SearchQuery,
) -> _ShownHits:
    """Hits from where the page begins; records no longer visible or matching are passed over."""
    sources = {source.order: source for source in read.sources}
    clocks = {s.order: clock_of(s, query.time_zone, s.fields) for s in read.sources}
    fill, shown = PageFill(query.size), list[tuple[ReadableSource, str]]()
    beside: list[tuple[ReadableSource, str]] = []
    at, looked_at = turn.begin, 0
    coming = turn.hits[at:]
    rows = _records(snapshot, sources, [(hit.connection_id, hit.stream, hit.key) for hit in coming])
    for kept, (row_key, row) in zip(coming, rows, strict=True):
        source = sources.get(row_key[:2])
        hit, around = None, list[tuple[ReadableSource, str]]()
        if source is not None and row is not None and _is_match(source, row, read.plan):
            looked_at += text_chars(source, row)
            words, mode = turn.questions[kept.question], _RETRIEVAL[turn.findings.mode]
            named = [written(term) for term in words.terms] if kept.question else None
            found = _Sought(words, kept.passage, mode, named, is_lean=query.size.chars is not None)
            hit, around = _hit(snapshot, read.authority, source, row, found)
        if source is not None and row is not None and hit is not None:
            hit.duplicates, hit.when = kept.duplicates or None, clocks[source.order](row)
            if not fill.takes(hit):
                break
            shown.append((source, kept.key))
            beside += around
        at += 1
        # before the next record, with which further ones may be read
        if len(shown) == limit or looked_at >= PAGE_TEXT_CHARS:
            break
    return _ShownHits(fill.items, shown, beside, at)


def _hit(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    row: StoredRecord,
    sought: _Sought,
) -> tuple[SearchResult | None, list[tuple[ReadableSource, str]]]:
    """A hit, and the neighbours in its conversation that it tells of."""
    hit = disclose_hit(
        *(authority, source, row, sought.words, sought.passage, sought.mode, sought.written),
        is_lean=sought.is_lean,
    )
    if hit is None:
        return None, []
    plan = neighbours_plan(source, row)
    neighbours = Neighbours() if plan is None else snapshot.neighbours(plan)
    hit.context = disclose_context(source, neighbours)
    return hit, [(source, each.key) for each in neighbours.rows]


def _records(
    snapshot: ReadSnapshot,
    sources: Mapping[tuple[str, str], ReadableSource],
    places: Sequence[RecordPlace],
) -> Iterator[tuple[RecordPlace, StoredRecord | None]]:
    """The records of hits while they are visible, read as they are needed, some together."""
    for begin in range(0, len(places), READ_TOGETHER):
        some = places[begin : begin + READ_TOGETHER]
        keys: dict[tuple[str, str], list[str]] = {}
        for *order, key in some:
            keys.setdefault((order[0], order[1]), []).append(key)
        plans = [hit_plan(sources[order], each) for order, each in keys.items() if order in sources]
        found = snapshot.records(plans)
        yield from ((row_key, found.get(row_key)) for row_key in some)


def _is_match(source: ReadableSource, row: StoredRecord, plan: SearchPlan) -> bool:
    """Whether the record of a hit meets the conditions."""
    return all(holds(each, row.data) for each in plan.conditions_on(scope_of(source)))


def _next_cursor(ports: ReadPorts, read: AuthorizedSearch, turn: _Turn, end: int) -> str | None:
    """A cursor, if hits follow, for which the ranking is kept."""
    if end >= len(turn.hits):
        return None
    digest, findings = ranking_digest(turn.hits), turn.findings
    ports.rankings.keep(read.authority.holder, _request(read), digest, turn.ranking)
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
            [_model(read), findings.unembedded, findings.is_best_only]
            if findings.mode is not SearchMode.WORDS or findings.is_best_only
            else []
        ),
    )
    place = CursorPlace(_request(read), sources_digest(read.sources), position)
    return seal_place(ports.sealer, TokenUse.SEARCH, place)


def _disclosed(shown: Sequence[tuple[ReadableSource, str]]) -> list[Disclosed]:
    sources = {source.order: source for source, _ in shown}
    keys: dict[tuple[str, str], list[str]] = {}
    for source, key in shown:
        keys.setdefault(source.order, []).append(key)
    return [
        Disclosed(sources[order], _hit_fields(sources[order]), len(found), tuple(found))
        for order, found in ((order, dict.fromkeys(each)) for order, each in sorted(keys.items()))
    ]


def _found_nothing(sources: Sequence[ReadableSource]) -> list[Disclosed]:
    """A search whose words nothing holds, once for each grant: many of them are a way to probe."""
    by_grant = {source.grant_id: source for source in reversed(sources)}
    return [Disclosed(source, (), 0) for source in by_grant.values()]


def _told_words(
    sources: Sequence[ReadableSource], shown: _ShownHits, turn: _Turn
) -> list[Disclosed]:
    """Near words are read from the searched fields, of sources without a hit too."""
    orders = {source.order for source in shown.sources} if turn.near else set[tuple[str, str]]()
    unseen = [source for source in sources if turn.near and source.order not in orders]
    return [Disclosed(source, searchable_fields(source), 0) for source in unseen]


def _hit_fields(source: ReadableSource) -> tuple[str, ...]:
    """The fields that a hit may show."""
    declared = source.declared
    named = {*searchable_fields(source), *meaning_fields(source)}
    named |= {declared.title_field, declared.event_time_field}
    named |= {declared.event_end_field, declared.whole_days_field}
    if declared.conversation_field is not None:
        named |= {declared.conversation_field, *spoken_fields(source)}
    named |= {*declared.fields_with_role("author"), *naming_conversations(source)}
    return tuple(name for name in source.fields if name in named)


def _clocks(query: SearchQuery) -> dict[str, object]:
    """Whose days and clocks are meant, where somebody said it."""
    return {} if query.time_zone is None else {"time_zone": query.time_zone}


# Hits in the order of time: no ranking is made or kept, a page follows the one before it.


def _search_in_time(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, query: SearchQuery
) -> ReadResult:
    begun = perf_counter()
    read = authorize_search_in_time(authority, query)
    words = read.plan.words or WordQuery(())
    page = snapshot.timeline(replace(read.plan, after=time_position(ports, read, query.cursor)))
    shown = _shown_in_time(snapshot, read, page, words, query)
    is_whole = shown.end == len(page.rows)
    cursor = None
    if page.more or not is_whole:
        last = page.rows[shown.end - 1].position if shown.end else None
        end = page.end if is_whole and page.end is not None else last
        cursor = None if end is None else time_cursor(ports, read, end)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    emptiness = Emptiness()
    if query.cursor is None and not page.rows and read.sources:
        conditions = [timed.conditions for timed in read.plan.scopes]
        emptiness = _explained(snapshot, read, conditions, freshness)
    searched = SearchCoverage(0, 0, len(read.sources))
    meta = source_mix(read, shown.sources, searched) | _clocks(query)
    if words.ignored:
        meta["ignored_words"] = list(words.ignored)
    if freshness is not None:
        meta["freshness"] = freshness
    return ReadResult(
        data=shown.hits,
        next_cursor=cursor,
        warnings=(
            *read.warnings,
            *without_value(
                read.sources, chain.from_iterable(each.conditions for each in read.plan.scopes)
            ),
        ),
        meta=meta | unavailable_meta(authority, query.selectors) | emptiness.meta,
        disclosed=_disclosed([*shown.places, *shown.beside])
        or [*_found_nothing(read.sources), *emptiness.disclosed],
        leaves_at=leaves_at(begun, snapshot, [timed.scope for timed in read.plan.scopes], words),
    )


def _shown_in_time(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[TimelinePlan],
    page: RowPage,
    words: WordQuery,
    query: SearchQuery,
) -> _ShownHits:
    sources = {source.order: source for source in read.sources}
    clocks = {s.order: clock_of(s, query.time_zone, s.fields) for s in read.sources}
    fill, shown = PageFill(query.size), list[tuple[ReadableSource, str]]()
    beside: list[tuple[ReadableSource, str]] = []
    at, looked_at = 0, 0
    for at, placed in enumerate(page.rows, 1):
        source = sources[placed.position.place]
        sought = _Sought(words, is_lean=query.size.chars is not None)
        hit, around = _hit(snapshot, read.authority, source, placed.row, sought)
        if hit is not None:
            hit.when = clocks[source.order](placed.row)
            if not fill.takes(hit):
                at -= 1
                break
            shown.append((source, placed.row.key))
            beside += around
        looked_at += text_chars(source, placed.row)
        if looked_at >= PAGE_TEXT_CHARS:
            break
    return _ShownHits(fill.items, shown, beside, at)
