"""Matches in columns are ranked as those that are objects, to the last digit."""

from __future__ import annotations

import random

import pytest

from personal_server.enforcement.orders import (
    answering,
    best_of,
    ordered,
    places_of,
    unpacked,
    without,
)
from personal_server.enforcement.packed_matches import Integers, PackedCandidates, word_totals
from personal_server.enforcement.ranking import Ranked, place_of, rank
from personal_server.enforcement.rows import Candidate
from personal_server.storage.sql.reads.word_entries import word_counts
from personal_server.storage.sql.records.word_index import marked_words

FREQUENCIES = (3, 9_000)
FAR_AHEAD = 250_000_000_000 * 10**9


def candidates(seed: int) -> list[Candidate]:
    """Many that are alike, so that all that breaks ties does; some beyond 64 bits."""
    draw = random.Random(seed)
    events = [0, 5, 86_400 * 10**9, *([FAR_AHEAD] if seed % 2 else [])]
    keys = [f"n{number}" for number in range(300)]
    draw.shuffle(keys)
    return [
        Candidate(
            draw.choice(("cin_b", "cin_a")),
            draw.choice(("notes", "mails")),
            key,
            (draw.randint(0, 3), draw.randint(0, 2)),
            draw.randint(0, 40),
            draw.choice(events),
        )
        for key in keys
    ]


def packed(found: list[Candidate]) -> PackedCandidates:
    by_place: dict[tuple[str, str], list[Candidate]] = {}
    for each in found:
        by_place.setdefault((each.connection_id, each.stream), []).append(each)
    return PackedCandidates.joined(list(by_place.values()), len(FREQUENCIES))


@pytest.mark.parametrize("seed", range(6))
def test_the_order_and_the_scores_are_the_same(seed: int) -> None:
    found = candidates(seed)
    assert list(ordered(packed(found), FREQUENCIES)) == rank(found, FREQUENCIES)
    assert sorted(packed(found)) == sorted(found)


@pytest.mark.parametrize("seed", range(2))
def test_records_are_found_left_out_and_named_as_in_a_list(seed: int) -> None:
    found = candidates(seed)
    columns, listed = ordered(packed(found), FREQUENCIES), rank(found, FREQUENCIES)
    wanted = {place_of(each) for each in found[:7]} | {("cin_a", "notes", "none")}
    places = places_of(columns, wanted)
    assert places == places_of(listed, wanted)
    elsewhere = {("cin_c", stream, key) for _, stream, key in wanted}
    assert places_of(columns, elsewhere) == []
    assert list(without(columns, places)) == without(listed, places)
    assert list(answering(columns, 2)) == answering(listed, 2)


def test_behind_the_best_stands_the_first_of_each_connection() -> None:
    found = candidates(3)
    columns, listed = ordered(packed(found), FREQUENCIES), rank(found, FREQUENCIES)
    rest = listed[10:]
    firsts = [next(each for each in rest if each.candidate[0] == c) for c in ("cin_a", "cin_b")]
    order: list[Ranked] = sorted(firsts, key=rest.index)
    assert unpacked(columns, 10) == [*listed[:10], *order]
    assert unpacked(columns, 300) == listed
    best = best_of(columns, 10)
    assert list(best) == unpacked(columns, 10)
    assert not isinstance(best, list)
    weighed = [(place_of(each.candidate), sum(each.candidate.occurrences)) for each in best]
    assert list(best.placed()) == weighed


def test_what_is_in_columns_stays_there() -> None:
    columns = packed(candidates(1))
    assert PackedCandidates.of(columns, len(FREQUENCIES)) is columns
    again = PackedCandidates.joined([columns], len(FREQUENCIES))
    assert list(again) == list(columns)


def test_an_index_tells_the_occurrences_of_a_source_with_blanks_between() -> None:
    made = PackedCandidates.of_source(("c", "s"), ["a", "b"], ["1 2", "3 0"], word([1, 2]), [7, 8])
    assert list(made) == [
        Candidate("c", "s", "a", (1, 2), 1, 7),
        Candidate("c", "s", "b", (3, 0), 2, 8),
    ]
    assert list(made[:1]) == [made[0]]


def word(lengths: list[int]) -> Integers:
    return word_totals([marked_words(["", "x " * length])[1] for length in lengths], (1,))


def test_the_words_of_some_fields_are_counted_as_one_by_one() -> None:
    counts = [marked_words(["one", "two words", None])[1], marked_words(["", "a b c", "d"])[1]]
    assert word_totals(counts, (1, 2)).tolist() == word_counts(counts, (1, 2)) == [2, 4]
