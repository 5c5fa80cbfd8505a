"""Answers in a conversation: whoever asks seldom answers, and who speaks next often does.

Rule: what is looked at is granted and visible, read for this request; nothing of it is kept.
Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pdpp_kernel.record import RecordPlace, StoredRecord
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.search_hits import spoken_text
from personal_server.enforcement.semantic_queries import StandsBeside

# What one that asks loses, and what one gains before which something was asked.
ASKS_SHARE, ANSWERS_SHARE = 0.1, 0.15
_MARKS = ("?", "？", "؟")


def looked_at(
    places: Sequence[RecordPlace], beside: Mapping[RecordPlace, StandsBeside]
) -> list[RecordPlace]:
    """Those of some records that are in a conversation, and what stands before them."""
    found: dict[RecordPlace, None] = {}
    for place in places:
        around = beside.get(place)
        if around is not None:
            found[place] = None
            if around.before is not None:
                found[around.before] = None
    return list(found)


def gains_of(
    places: Sequence[RecordPlace],
    beside: Mapping[RecordPlace, StandsBeside],
    rows: Iterable[tuple[RecordPlace, StoredRecord | None]],
    sources: Mapping[tuple[str, str], ReadableSource],
) -> dict[RecordPlace, float]:
    """What each gains, or loses, of those in a conversation.

    Shapes: `rows` are the records that `looked_at` names, none of which is held when the next ones
        are read; `sources` is where each of them is from.
    """
    questions: set[RecordPlace] = set()  # somewhere in what is said
    asking: set[RecordPlace] = set()  # at its end
    for place, row in rows:
        said = "" if row is None else spoken_text(sources[place[:2]], row) or ""
        if any(mark in said for mark in _MARKS):
            questions.add(place)
            if said.rstrip().endswith(_MARKS):
                asking.add(place)
    return {
        place: ANSWERS_SHARE * (beside[place].before in questions) - ASKS_SHARE * (place in asking)
        for place in places
        if place in beside
    }
