"""What is meant by a query, and how hits by meaning join those by words."""

import pytest

from personal_server.domain.search_words import parse_words
from personal_server.enforcement.ranking import Ranked
from personal_server.enforcement.rows import Candidate, NearRecord
from personal_server.enforcement.semantic import JOINED_HITS, joined, meant_text


def candidate(key: str) -> Candidate:
    return Candidate("cin_a", "notes", key, (1,), 1, 0)


def by_words(*keys: str) -> list[Ranked]:
    return [Ranked(candidate(key), -1.0) for key in keys]


def near(*keys: str) -> list[Ranked]:
    found = (NearRecord(candidate(key), 0.1, "body", 0, 1) for key in keys)
    return [Ranked(each.candidate, each.distance, each) for each in found]


def keys(ranked: list[Ranked]) -> list[str]:
    return [each.candidate.key for each in ranked]


def test_what_holds_the_words_is_never_below_what_means_something_like_them() -> None:
    found = joined(by_words("n1", "n2"), near("n3", "n2", "n4"))
    assert keys(found) == ["n1", "n2", "n3", "n4"]
    assert [each.near is not None for each in found] == [False, True, True, True]


def test_behind_many_hits_by_words_those_by_meaning_come_before_the_rest() -> None:
    many = [f"w{number}" for number in range(JOINED_HITS + 1)]
    assert keys(joined(by_words(*many), near("n1", many[-1]))) == [*many[:-1], "n1", many[-1]]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("how was the rain?", "how was the rain?"),
        ('rain "in May" -snow', "rain in May"),
        ("rain from:anna", "rain"),
        ("gard* OR park", "gard OR park"),
        ("from:anna", "from:anna"),
    ],
)
def test_what_is_embedded_has_no_signs_and_nothing_that_is_left_out(asked: str, meant: str) -> None:
    assert meant_text(asked, parse_words(asked)) == meant
