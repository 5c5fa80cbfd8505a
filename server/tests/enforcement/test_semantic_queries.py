"""What is meant by a query, and how hits by meaning join those by words."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from pdpp_kernel.record import RecordPlace
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.ranking import Ranked, place_of
from personal_server.enforcement.rows import Candidate, Nearest, NearRecord
from personal_server.enforcement.semantic_queries import (
    JOINED_HITS,
    READ_HITS,
    SomeWords,
    StandsBeside,
    by_meaning,
    is_plain,
    joined,
    meaning_fields,
    meant_text,
    some_words,
    strict_part,
)
from server.tests.enforcement.mailbox import mails


def candidate(key: str) -> Candidate:
    return Candidate("cin_a", "notes", key, (1,), 1, 0)


def by_words(**scores: float) -> list[Ranked]:
    return [Ranked(candidate(key), -score) for key, score in scores.items()]


def near(**distances: float) -> list[Ranked]:
    found = (NearRecord(candidate(key), apart, "body", 0, 1) for key, apart in distances.items())
    return [Ranked(each.candidate, each.distance, each) for each in found]


NO_WORDS = SomeWords()


def no_gains(_: Sequence[RecordPlace]) -> Mapping[RecordPlace, float]:
    return {}


def keys(ranked: list[Ranked]) -> list[str]:
    return [each.candidate.key for each in ranked]


def test_what_holds_the_words_is_never_below_what_means_something_like_them() -> None:
    found = joined(by_words(n1=2, n2=1), [], near(n3=0.1, n2=0.2, n4=0.3), {}, NO_WORDS, no_gains)
    assert keys(found) == ["n1", "n2", "n3", "n4"]
    assert [each.near is not None for each in found] == [False, True, True, True]


def test_what_holds_some_words_and_what_is_near_are_weighed_together() -> None:
    some = by_words(n2=8, n3=7.2, n4=4)
    found = joined(
        by_words(n1=1), some, near(n5=0.12, n1=0.2, n4=0.22, n6=0.52), {}, NO_WORDS, no_gains
    )
    assert keys(found) == ["n1", "n4", "n2", "n3", "n5", "n6"]
    both_ways = found[1]  # shown by its words, and by its passage
    assert (both_ways.score, both_ways.near is not None) == (-4, True)


def test_what_is_near_lends_weight_to_what_stands_beside_it() -> None:
    some, meant = by_words(n1=8, n2=7.8, n3=7.8), near(n4=0.1, n5=0.9)
    places = {key: place_of(candidate(key)) for key in ("n1", "n2", "n3", "n4")}
    talks = {key: StandsBeside(None, None, key) for key in ("n1", "n4")}
    behind = {
        "n2": StandsBeside(places["n4"], None, "n2"),
        "n3": StandsBeside(None, places["n4"], "n3"),
    }
    beside = {places[key]: each for key, each in (talks | behind).items()}
    assert keys(joined([], some, meant, beside, NO_WORDS, no_gains)) == [
        "n2",
        "n3",
        "n1",
        "n4",
        "n5",
    ]
    assert keys(joined([], some, meant, {}, NO_WORDS, no_gains)) == ["n1", "n2", "n3", "n4", "n5"]


def test_what_was_said_within_the_hour_of_what_holds_most_words_gains_by_it() -> None:
    minute = 60_000_000_000
    noon = 1_767_268_800_000_000_000
    since = {"n1": 0, "n2": 60, "n3": 61, "n4": -60}
    at = {key: noon + minutes * minute for key, minutes in since.items()}
    found = {key: Candidate("cin_a", "notes", key, (1,), 1, time) for key, time in at.items()}
    some = [Ranked(found["n1"], -8.0), *(Ranked(found[key], -4.0) for key in ("n3", "n2"))]
    record = NearRecord(found["n4"], 0.5, "body", 0, 1)
    meant = [Ranked(found["n4"], 0.5, record)]
    talks = {"n1": "a", "n2": "a", "n3": "a", "n4": "b"}
    beside = {place_of(found[key]): StandsBeside(None, None, talk) for key, talk in talks.items()}
    # n1 0.25 + 0.55, n2 0.25 · ½ + 0.55, n4 0.45, n3 0.25 · ½ + 0.55 · ½
    assert keys(joined([], some, meant, beside, NO_WORDS, no_gains)) == ["n1", "n2", "n4", "n3"]
    # in the same conversation n4 0.45 + 0.55
    beside[place_of(found["n4"])] = StandsBeside(None, None, "a")
    assert keys(joined([], some, meant, beside, NO_WORDS, no_gains)) == ["n4", "n1", "n2", "n3"]


def talk(count: int, name: str = "a") -> dict[RecordPlace, StandsBeside]:
    """The records of a conversation: a1, a2 and so on, each beside the next."""
    places = [place_of(candidate(f"{name}{number}")) for number in range(1, count + 1)]
    sides = zip([None, *places], places, [*places[1:], None], strict=False)
    return {place: StandsBeside(before, after, name) for before, place, after in sides}


def test_what_stands_among_more_of_the_words_gains_by_them() -> None:
    # z3 has both words within two records of it, b3 one: the other is three away
    holders = {"b1": (1, 0), "b6": (0, 1), "z1": (1, 0), "z5": (0, 1)}
    some = [
        Ranked(candidate(key)._replace(occurrences=counts), -8.0) for key, counts in holders.items()
    ]
    beside, meant = talk(6, "b") | talk(6, "z"), near(b3=0.5, z3=0.5)
    without = keys(joined([], some, meant, beside, NO_WORDS, no_gains))
    assert without[:2] == ["b3", "z3"]
    found = keys(joined([], some, meant, beside, SomeWords((1.0, 1.0)), no_gains))
    assert found[:2] == ["z3", "b3"]


def test_a_word_that_several_say_around_a_record_counts_once() -> None:
    # b3 has the common word three times around it, z3 the rare one once
    holders = {"b1": (0, 1), "b2": (0, 1), "b4": (0, 1), "z1": (1, 0)}
    some = [
        Ranked(candidate(key)._replace(occurrences=counts), -8.0) for key, counts in holders.items()
    ]
    beside, meant = talk(6, "b") | talk(6, "z"), near(b3=0.5, z3=0.5)
    found = keys(joined([], some, meant, beside, SomeWords((2.0, 1.0)), no_gains))
    assert found.index("z3") < found.index("b3")


def test_a_conversation_in_which_who_is_named_writes_is_looked_at_first() -> None:
    # 2 where a word stands in who wrote, 1 where it stands in the text
    of_ada, about_ada = (2, 0), (1, 0)
    some = [
        Ranked(candidate("a1")._replace(occurrences=about_ada), -8.0),
        Ranked(candidate("b1")._replace(occurrences=of_ada), -8.0),
    ]
    beside, meant = talk(2, "a") | talk(2, "b"), near(a2=0.5, b2=0.5)
    told = SomeWords((1.0, 1.0), frozenset({0}))
    without = joined([], some, meant, beside, told._replace(authors=frozenset()), no_gains)
    assert keys(without) == ["a2", "b2", "a1", "b1"]
    assert keys(joined([], some, meant, beside, told, no_gains)) == ["b2", "b1", "a2", "a1"]


def test_words_weigh_by_how_many_hold_them_where_some_are_enough() -> None:
    words = parse_words("Ada cello")
    assert some_words(words, (9, 1), words.terms) == SomeWords()
    some = some_words(replace(words, least=1), (9, 1), words.terms[:1])
    assert some.authors == {0}
    assert some.weights[0] < some.weights[1]


def test_the_best_are_put_in_order_anew_by_what_they_say() -> None:
    some = by_words(**{f"n{number:02}": 100 - number for number in range(READ_HITS + 1)})

    def gains(places: Sequence[RecordPlace]) -> Mapping[RecordPlace, float]:
        assert [key for *_, key in places] == keys(some)[:READ_HITS]
        return {places[2]: 0.5, places[0]: -0.015}

    found = keys(joined([], some, near(n40=0.1), {}, NO_WORDS, gains))
    assert found[:3] == ["n02", "n01", "n00"]
    assert found[3:] == [*keys(some)[3:], "n40"]


@pytest.mark.parametrize("apart", [0.0, 0.5, 0.92])
def test_what_is_equally_near_weighs_as_much_as_the_nearest(apart: float) -> None:
    found = joined([], by_words(n1=8, n2=4), near(n2=apart, n3=apart), {}, NO_WORDS, no_gains)
    assert keys(found) == ["n2", "n1", "n3"]


def test_without_anything_near_hits_by_words_stay_as_they_are() -> None:
    found = joined(by_words(n1=1), by_words(n2=8, n3=9), [], {}, NO_WORDS, no_gains)
    assert keys(found) == ["n1", "n3", "n2"]
    assert all(each.near is None for each in found)


def test_no_more_than_a_bound_is_taken_by_meaning() -> None:
    assert (JOINED_HITS, READ_HITS) == (200, 30)
    many = {f"m{number:03}": number / 1_000 for number in range(JOINED_HITS + 1)}
    assert keys(joined([], by_words(n1=1), near(**many), {}, NO_WORDS, no_gains)) == [
        "n1",
        *list(many)[:JOINED_HITS],
    ]


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


def test_meaning_is_looked_for_in_granted_fields_and_not_among_persons() -> None:
    assert meaning_fields(mails()) == ("body",)
    assert meaning_fields(mails("id", "subject")) == ()
    assert meaning_fields(mails(made_of=())) == ()


@pytest.mark.parametrize("text", ["rain", "heavy rain?", "what rains"])
def test_words_alone_are_plain(text: str) -> None:
    assert is_plain(parse_words(text))


@pytest.mark.parametrize(
    "text", ['"heavy rain"', "rai*", "rain OR snow", "a from:ada", "rain -snow"]
)
def test_a_sign_means_words_literally(text: str) -> None:
    assert not is_plain(parse_words(text))


def test_what_is_meant_literally_has_to_be_held_however_it_is_found() -> None:
    strict = strict_part(parse_words('rain "heavy snow" -wind'))
    assert [term.tokens for term in strict.terms] == [("heavy", "snow")]
    assert [term.tokens for term in strict.excluded] == [("wind",)]


def test_what_is_too_far_away_is_no_hit() -> None:
    at = [
        NearRecord(candidate(f"n{n}"), far, "body", 0, 1) for n, far in enumerate((0.1, 0.92, 0.93))
    ]
    found = by_meaning(Nearest(tuple(at)))
    assert [(each.candidate.key, each.score) for each in found] == [("n0", 0.1), ("n1", 0.92)]
    assert found[0].near == at[0]
