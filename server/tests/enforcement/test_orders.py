"""What is done with an order of candidates that are objects; columns: `test_packed_matches.py`."""

from __future__ import annotations

from personal_server.enforcement.orders import (
    answering,
    best_of,
    merged,
    ordered,
    places_of,
    unpacked,
    without,
)
from personal_server.enforcement.ranking import Ranked, in_order, rank
from personal_server.enforcement.rows import Candidate


def found() -> list[Ranked]:
    candidates = [Candidate("cin_a", "notes", key, (count,), 10, 0) for key, count in COUNTS]
    order = ordered(candidates, [7])
    assert isinstance(order, list)
    return order


COUNTS = (("c", 1), ("a", 9), ("d", 1), ("b", 5))


def keys(order: list[Ranked]) -> str:
    return "".join(each.candidate.key for each in order)


def test_few_are_ranked_as_any() -> None:
    candidates = tuple(each.candidate for each in found())
    assert ordered(candidates, [7]) == rank(candidates, [7])
    assert keys(found()) == "abcd"


def test_another_question_changes_nothing_else() -> None:
    other = answering(found(), 2)
    assert [each.question for each in other] == [2] * 4
    assert [each._replace(question=0) for each in other] == found()


def test_places_are_those_of_the_records_that_are_there() -> None:
    wanted = {("cin_a", "notes", "d"), ("cin_a", "notes", "a"), ("cin_b", "notes", "b")}
    assert places_of(found(), wanted) == [0, 3]
    rest = without(found(), [0, 3])
    assert isinstance(rest, list)
    assert keys(rest) == "bc"


def test_a_list_stays_whole() -> None:
    assert unpacked(found(), 1) == best_of(found(), 1) == found()


def test_those_that_moved_are_put_where_they_belong() -> None:
    a, b, c, d = found()
    rest = [a, c]
    both = merged([d, b], rest)
    assert both == sorted([a, b, c, d], key=in_order)
    assert rest == [a, c]
