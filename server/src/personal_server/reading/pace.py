"""When the answer to a search may leave, so that its time tells nothing of hidden records.

Rule: the time follows from how many records the sources hold, and never from which words they hold.
Source: docs/contract/resource-server.md 4.4, "Time".
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from pdpp_kernel.criteria import WordQuery
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.snapshots import ReadSnapshot

# The shortest steps; of a search that was relaxed, which asks for each of many words, and under
# limits by content they are longer.
STEP_SECONDS, LONGER_STEP_SECONDS = 0.005, 0.02
MOST_SECONDS = 2.56
# Where only lists are merged, a record takes this share of what looking at it takes.
MERGED_SHARE = 0.1


def leaves_at(
    begun: float,
    snapshot: ReadSnapshot,
    scopes: Sequence[Scope],
    words: WordQuery,
    *,
    is_relaxed: bool = False,
) -> float | None:
    """The end of a full step since a read began, both by `perf_counter`.

    `None` where no index is walked over hidden records.
    """
    picked = [scope for scope in scopes if scope.only]
    timed = [scope for scope in scopes if scope.window is not None and not scope.only]
    if not picked and not timed:
        return None
    terms = [each for term in (*words.terms, *words.excluded) for each in term.alternatives]
    seconds = snapshot.walked_seconds(picked) if picked else 0.0
    if timed and any(term.prefix for term in terms):
        seconds += MERGED_SHARE * snapshot.walked_seconds(timed)
    step = LONGER_STEP_SECONDS if picked or is_relaxed else STEP_SECONDS
    step = doubled(step, seconds * len(terms))
    taken = perf_counter() - begun
    return begun + taken + -taken % step


def doubled(shortest: float, least: float) -> float:
    """The shortest step doubled until it is long enough, or as long as one may be."""
    step = shortest
    while step < min(least, MOST_SECONDS):
        step *= 2
    return step
