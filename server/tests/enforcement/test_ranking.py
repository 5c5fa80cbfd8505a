"""The order of hits follows from what may be seen alone."""

from __future__ import annotations

from personal_server.enforcement.ranking import Ranked, first_page_first, rank
from personal_server.enforcement.rows import Candidate


def candidate(key: str, *, connection: str = "cin_a", count: int = 1, at: int = 0) -> Candidate:
    return Candidate(connection, "notes", key, (count,), 10, at)


def keys(ranked: list[Ranked]) -> list[str]:
    return [each.candidate.key for each in ranked]


def test_more_occurrences_are_better_and_lower() -> None:
    ranked = rank([candidate("one"), candidate("two", count=2)], [2])
    assert keys(ranked) == ["two", "one"]
    assert ranked[0].score < ranked[1].score < 0


def test_equal_scores_stand_by_newer_time_then_connection_and_key() -> None:
    same = [
        candidate("b", at=1),
        candidate("a", at=1),
        candidate("z", at=9),
        candidate("a", connection="cin_0", at=1),
    ]
    places = [(r.candidate.connection_id, r.candidate.key) for r in rank(same, [4])]
    assert places == [("cin_a", "z"), ("cin_0", "a"), ("cin_a", "a"), ("cin_a", "b")]


def test_a_score_has_six_decimals() -> None:
    score = rank([candidate("a")], [1])[0].score
    assert score == round(score, 6)
    assert score == -21.52947


def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    rare = rank([candidate("a")], [1])[0].score
    common = rank([candidate("a")], [10_000])[0].score
    assert rare < common


def ranking() -> list[Ranked]:
    hits = [candidate(f"a{i}", count=9 - i) for i in range(6)]
    return rank([*hits, candidate("b0", connection="cin_b")], [7])


def first_page(limit: int) -> list[str]:
    placed = [each.candidate for each in ranking()]
    return [each.key for each in first_page_first(placed, limit)]


def test_each_connection_has_a_place_on_the_first_page() -> None:
    assert first_page(3) == ["a0", "a1", "b0", "a2", "a3", "a4", "a5"]


def test_with_fewer_places_than_connections_rank_alone_decides() -> None:
    assert first_page(1) == keys(ranking())


def test_a_page_that_holds_everything_is_the_ranking() -> None:
    assert first_page(100) == keys(ranking())
