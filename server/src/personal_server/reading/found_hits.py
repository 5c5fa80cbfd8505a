"""Which records a search finds, and in which order.

Rule: what is not visible to the caller changes neither the hits nor how long they take.
Source: docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.record import RecordPlace, StoredRecord
from personal_server.domain.authority import ReadableSource
from personal_server.domain.cursor import request_digest, sources_digest
from personal_server.enforcement.authorized_reads import AuthorizedRead, first_change_plan, hit_plan
from personal_server.enforcement.closeness import (
    LOOKED_AT_CHARS,
    LOOKED_AT_HITS,
    LookedAt,
    is_foldable,
    look_at,
    refined,
)
from personal_server.enforcement.named_fields import words_in
from personal_server.enforcement.orders import (
    Order,
    answering,
    best_of,
    merged,
    ordered,
    places_of,
    unpacked,
    without,
)
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.ranking import Ranked, in_order, place_of, rank
from personal_server.enforcement.rows import Matches, Nearest
from personal_server.enforcement.scopes import scope_of
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.search_hits import FoundPassage, text_chars
from personal_server.enforcement.semantic_queries import (
    JOINED_HITS,
    SomeWords,
    by_meaning,
    joined,
    some_words,
    strict_part,
)
from personal_server.reading.partial_hits import MOST_PARTIAL_HITS, partial_hits, places_beside
from personal_server.reading.ports import ReadPorts
from personal_server.reading.rankings import Kept, RankedHit
from personal_server.reading.recall import SearchCoverage
from personal_server.reading.relaxing import (
    FEW_HITS,
    NearWord,
    Relaxation,
    RelaxedSearch,
    relaxation,
    step_seconds,
)
from personal_server.reading.semantic_search import QueryEmbedder, without_authors
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS, ReadSnapshot
from personal_server.storage.row_rules import holds, holds_words, words_of

AuthorizedSearch = AuthorizedRead[SearchPlan]

KEPT_HITS = 1_000
# So many records of hits are read at once.
READ_TOGETHER = 25
RANKING_SHARE = 2 / 3
# After more changes than this it is quicker to rank anew than to look at each of them.
MOST_CHANGES = 1_000


class FoundHits(msgspec.Struct, frozen=True):
    """All hits in their order, and what was asked to find them."""

    hits: Sequence[RankedHit]
    findings: SearchCoverage
    questions: tuple[WordQuery, ...]
    relaxed: RelaxedSearch | None = None
    near: tuple[NearWord, ...] = ()


def found_lately(
    ports: ReadPorts, snapshot: ReadSnapshot, read: AuthorizedSearch, query: SearchQuery
) -> FoundHits:
    """What was found for the same request within a minute, if nothing it may see changed since.

    Only changes of visible values count, as in a feed: that something hidden was written must not
    make an answer slower.
    """
    holder, now_ns = read.authority.holder, ports.clock()
    request = f"{request_of(read)} {sources_digest(read.sources)} {model_digest(read)}"
    kept = ports.recent.find(holder, request, now_ns)
    if kept is not None and not _changed(snapshot, read, kept.sequence):
        return cast("FoundHits", kept.found)
    found = _shortened(_found(ports.embedder, snapshot, read, query))
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


def _shortened(found: FoundHits) -> FoundHits:
    """Without hits that no page shows: behind the best, the first of each connection may be."""
    rest = found.hits[KEPT_HITS:]
    first = {each.connection_id: each for each in reversed(rest)}
    kept = [each for each in rest if each is first[each.connection_id]]
    return replace(found, hits=[*found.hits[:KEPT_HITS], *kept])


def _found(
    embedder: QueryEmbedder | None,
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    query: SearchQuery,
) -> FoundHits:
    """Records that hold all words; below them, while they are few, those that wider questions find.

    What is found by meaning joins all of these.
    """
    # An equal share for every source, so that a slow one costs no other its place.
    share = READ_DEADLINE_SECONDS * RANKING_SHARE / max(1, len(read.sources))
    plan, mode = replace(read.plan, seconds_each=share), mode_of(read)
    first = snapshot.search(plan)
    strict = ordered(first.candidates, first.document_frequencies)
    matches, wider, count = [first], Relaxation(), len(strict)
    answers: list[Order] = [strict]
    is_few = count < FEW_HITS and bool(plan.scopes) and not first.lost
    if is_few and not query.exact:
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
    is_told = is_few and not query.exact and (total > count or not count)
    note = wider.told(plan.words, count, asked_too) if is_told else None
    questions = (plan.words, *wider.questions[:asked_too])
    whole = sum(
        len(answer) for answer, asked in zip(answers, questions, strict=True) if asked.least is None
    )
    if wider.authors:
        plan = _without_authors(embedder, query, plan, wider.authors)
    near = _nearest(snapshot, read, plan, whole)
    _require_any(read, first.lost | near.lost)
    best, rest, left_out = _refined(snapshot, read, strict, first)
    is_computed = any(each.declared.fields_with_role("occurrence-of") for each in read.sources)
    if mode is not SearchMode.WORDS or answers[1:] or is_computed:
        best, rest = [*best, *rest], []
    ranked = best.copy()
    for answer in answers[1:]:
        ranked += (shown := unpacked(answer, KEPT_HITS))
        left_out += len(answer) - len(shown)
    if mode is not SearchMode.WORDS:
        meant = _strictly(snapshot, read, by_meaning(near))
        if meant:
            folded = {_place(each) for each in strict} - {_place(each) for each in best}
            meant = [each for each in meant if _place(each) not in folded]
        if is_hybrid := mode is SearchMode.HYBRID:
            sought = some_words(questions[-1], matches[-1].document_frequencies, wider.authors)
            ranked = _both(snapshot, read, ranked, questions, meant, sought)
        else:
            ranked = meant
        total = len(ranked) + (left_out if is_hybrid else 0)
    if is_computed:
        from personal_server.reading.occurrences import without_occurrences  # noqa: PLC0415 (few)

        ranked = without_occurrences(snapshot, read.sources, ranked, LOOKED_AT_HITS)
    is_best_only = questions[-1].least is not None and len(answers[-1]) == MOST_PARTIAL_HITS
    findings = replace(_coverage(read, total, matches, near), is_best_only=is_best_only)
    hits = _hits([ranked, rest], questions, is_indexed=not first.pending)
    return FoundHits(hits, findings, questions, note, wider.near)


def _without_authors(
    embedder: QueryEmbedder | None, query: SearchQuery, plan: SearchPlan, authors: Iterable[Term]
) -> SearchPlan:
    """The plan with what its question means but for who wrote."""
    assert embedder is not None  # noqa: S101 (names are told apart where it is asked)
    assert plan.meaning is not None  # noqa: S101 (the same)
    left = without_authors(embedder, plan.meaning, query.text, plan.words, authors)
    return replace(plan, meaning=left)


def _hits(
    parts: Sequence[Order], questions: Sequence[WordQuery], *, is_indexed: bool
) -> list[RankedHit]:
    """Where hits are, and their weights, but of what holds some of the words, and of what an index
    finds that is being made anew.
    """
    is_weighed = [each.least is None and is_indexed for each in questions]
    return [hit for part in parts for hit in _placed(part, is_weighed)]


def _placed(found: Order, is_weighed: Sequence[bool]) -> Iterator[RankedHit]:
    """Where hits are; of those in columns nothing else is made."""
    if not isinstance(found, list):
        for place, weight in found.placed():
            yield RankedHit(*place, weight=weight if is_weighed[0] else 0)
        return
    for candidate, _, near, question, duplicates in found:
        passage = near and FoundPassage(near.field, near.start_chars, near.end_chars)
        weight = sum(candidate.occurrences) if is_weighed[question] else 0
        yield RankedHit(*place_of(candidate), passage, question, duplicates, weight)


def _both(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    ranked: Sequence[Ranked],
    questions: Sequence[WordQuery],
    meant: Sequence[Ranked],
    asked: SomeWords,
) -> list[Ranked]:
    """Hits by words and by meaning; those by words hold all of them, or some."""
    whole = [each for each in ranked if questions[each.question].least is None]
    some = [each for each in ranked if questions[each.question].least is not None]
    if not some and not meant:
        return whole
    weighed = {_place(each) for each in (*some, *meant[:JOINED_HITS])}
    beside = places_beside(snapshot, read.sources, weighed - {_place(each) for each in whole})
    sources = {source.order: source for source in read.sources}

    def gains(places: Sequence[RecordPlace]) -> Mapping[RecordPlace, float]:
        if not beside:
            return {}
        from personal_server.enforcement.spoken_answers import (  # noqa: PLC0415 (few)
            gains_of,
            looked_at,
        )

        rows = hit_records(snapshot, sources, looked_at(places, beside))
        return gains_of(places, beside, rows, sources)

    return joined(whole, some, meant, beside, asked, gains)


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
        mode=mode_of(read),
        unembedded=near.pending,
    )


def _refined(
    snapshot: ReadSnapshot,
    read: AuthorizedSearch,
    ranked: Order,
    found: Matches,
) -> tuple[list[Ranked], Order, int]:
    """The ranking after a look at its best hits, and at those that hold all words side by side;
    behind these the others that a page may show, and how many are left out.

    Where there are more matches than are looked at, these may be anywhere among them, so that the
    index is asked for them.
    """
    plan, frequencies = read.plan, found.document_frequencies
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
    weights = {_place(each): sum(each.candidate.occurrences) for each in best[: len(looked_at)]}
    places = [row_key for row_key in map(_place, best) if row_key[:2] in sources]
    seen: dict[RecordPlace, LookedAt] = {}
    chars = 0
    for row_key, row in hit_records(snapshot, sources, places):
        if chars > LOOKED_AT_CHARS:
            break
        if row is not None:
            source = sources[row_key[:2]]
            chars += text_chars(source, row)
            weight = 0 if found.pending else weights.get(row_key, 0)
            seen[row_key] = look_at(source, row, plan.words, weight)
    behind = without(ranked, looked_at)
    rest = best_of(behind, KEPT_HITS)
    left_out = len(behind) - len(rest)
    moved = [_weighed_by(weights, each) for each in refined(best, seen, frequencies)]
    if moved and rest and in_order(moved[-1]) > in_order(rest[0]):
        return merged(moved, list(rest)), [], left_out
    return moved, rest, left_out


def _weighed_by(weights: Mapping[RecordPlace, int], found: Ranked) -> Ranked:
    """Without a weight that is only the least that it can be."""
    if _place(found) in weights:
        return found
    return found._replace(candidate=found.candidate._replace(occurrences=()))


def mode_of(read: AuthorizedSearch) -> SearchMode:
    """By what is searched, which the plan says."""
    plan = read.plan
    if plan.meaning is None or not plan.meaning.scopes:
        return SearchMode.WORDS
    return SearchMode.HYBRID if plan.scopes else SearchMode.MEANING


def _nearest(
    snapshot: ReadSnapshot, read: AuthorizedSearch, plan: SearchPlan, count: int
) -> Nearest:
    """What is near; nothing is compared where so many hold all words that none would be shown."""
    if plan.meaning is None or mode_of(read) is SearchMode.WORDS:
        return Nearest(())
    if count > JOINED_HITS and mode_of(read) is SearchMode.HYBRID:
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
    rows = hit_records(snapshot, sources, [_place(each) for each in found])
    for each, (row_key, row) in zip(found, rows, strict=True):
        source = sources[row_key[:2]]
        words = words_in(strict, source.declared, source.fields)
        if row is None or not is_match(source, row, read.plan):
            continue
        if holds_words(words_of(row.data, searchable_fields(source)), words):
            kept.append(each)
    return kept


def hit_records(
    snapshot: ReadSnapshot,
    sources: Mapping[tuple[str, str], ReadableSource],
    places: Iterable[RecordPlace],
) -> Iterator[tuple[RecordPlace, StoredRecord | None]]:
    """The records of hits while they are visible, read as they are needed, some together."""
    coming = iter(places)
    while some := list(islice(coming, READ_TOGETHER)):
        keys: dict[tuple[str, str], list[str]] = {}
        for *order, key in some:
            keys.setdefault((order[0], order[1]), []).append(key)
        plans = [hit_plan(sources[order], each) for order, each in keys.items() if order in sources]
        found = snapshot.records(plans)
        yield from ((row_key, found.get(row_key)) for row_key in some)


def is_match(source: ReadableSource, row: StoredRecord, plan: SearchPlan) -> bool:
    """Whether the record of a hit meets the conditions."""
    return all(holds(each, row.data) for each in plan.conditions_on(scope_of(source)))


def request_of(read: AuthorizedSearch) -> str:
    """What tells one search of a holder from another, whichever page is asked for."""
    return request_digest(read.authority.cursor_holder, "search/lexical", read.asked)


def model_digest(read: AuthorizedSearch) -> str:
    """What tells the model by which was searched, in short."""
    meaning = read.plan.meaning if mode_of(read) is not SearchMode.WORDS else None
    return "" if meaning is None else sha256(meaning.model.encode()).hexdigest()[:8]
