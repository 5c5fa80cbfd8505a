"""Partial hits: the best records that hold some of the words of a search, in their conversations.

Rule: neighbours are visible records that the same search found; nothing of them is kept.  How many
are looked for does not depend on what is hidden.
Source: docs/contract/resource-server.md 11.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pdpp_kernel.record import RecordPlace
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.authorized_reads import beside_plan
from personal_server.enforcement.partial_matches import Context, rank_in_context, rank_partial
from personal_server.enforcement.ranking import Ranked, place_of
from personal_server.enforcement.rows import Candidate, Matches
from personal_server.enforcement.semantic_queries import StandsBeside
from personal_server.storage.ports.snapshots import ReadSnapshot

# Of so many of the best, by their own words, the neighbours are looked for.
READ_IN_CONTEXT = 300
# More records that hold some of the words are no hits.
MOST_PARTIAL_HITS = 100


def partial_hits(
    snapshot: ReadSnapshot,
    sources: Iterable[ReadableSource],
    found: Matches,
    known: set[RecordPlace],
) -> list[Ranked]:
    """The best of what holds some of the words, but for hits that are known."""
    candidates = list(found.candidates)
    ranked = rank_partial(candidates, found.document_frequencies)
    ranked = [each for each in ranked if place_of(each.candidate) not in known]
    contexts = _contexts(snapshot, sources, ranked[:READ_IN_CONTEXT], candidates)
    if contexts:
        ranked = rank_in_context(ranked, contexts, found.document_frequencies)
    return ranked[:MOST_PARTIAL_HITS]


def _contexts(
    snapshot: ReadSnapshot,
    sources: Iterable[ReadableSource],
    best: Sequence[Ranked],
    found: Sequence[Candidate],
) -> Mapping[RecordPlace, Context]:
    """By record what stands beside it, of those that are in a conversation."""
    beside = places_beside(snapshot, sources, [place_of(each.candidate) for each in best])
    known = {place_of(each): each for each in found} if beside else {}
    return {
        place: Context(
            *(None if at is None else known.get(at) for at in (others.before, others.after))
        )
        for place, others in beside.items()
    }


def places_beside(
    snapshot: ReadSnapshot, sources: Iterable[ReadableSource], places: Collection[RecordPlace]
) -> Mapping[RecordPlace, StandsBeside]:
    """By record, of those in a conversation, which, and what visible ones stand beside it."""
    found: dict[RecordPlace, StandsBeside] = {}
    for source in sources:
        keys = [key for *order, key in places if tuple(order) == source.order]
        plan = beside_plan(source, keys) if keys else None
        if plan is not None:
            for key, (*sides, shared) in snapshot.beside(plan).items():
                before, after = (None if at is None else (*source.order, at) for at in sides)
                found[*source.order, key] = StandsBeside(before, after, (*source.order, shared))
    return found
