"""What `name:value` in a query means in one source."""

from __future__ import annotations

import pytest

from pdpp_kernel.criteria import Condition, Term
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.named_fields import conditions_in, words_in
from server.tests.enforcement.mailbox import ALL, MAILS


def conditions(text: str, *granted: str) -> list[tuple[str, str, object, bool]]:
    found = conditions_in(parse_words(text), MAILS, granted or ALL)
    return [(each.field, each.operator.value, each.value, each.caseless) for each in found]


def terms(text: str, *granted: str) -> list[Term]:
    return list(words_in(parse_words(text), MAILS, granted or ALL).terms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rain folder:inbox", [("folder", "eq", "inbox", True)]),
        ("rain folder:in*", [("folder", "starts_with", "in", False)]),
        ('rain folder:"in*"', [("folder", "eq", "in*", True)]),
        ("rain size:3", [("size", "eq", 3, False)]),
        ("rain size:large", []),
        ("rain tags:a", []),
        ("rain unread:true", [("unread", "eq", True, False)]),
        ("rain to:bob", [("receiver", "eq", "bob", True)]),
        ("rain TO:bob", [("receiver", "eq", "bob", True)]),
        ("rain subject:snow", []),
        ("rain unknown:snow", []),
        ("rain", []),
        ("folder:inbox", []),
        ("folder:inbox size:3", []),
        ("rain folder:a OR folder:b", []),
    ],
)
def test_a_value_of_a_field_that_is_not_searched_is_a_condition_beside_words(
    text: str, expected: list[tuple[str, str, object, bool]]
) -> None:
    assert conditions(text) == expected


@pytest.mark.parametrize("text", ["rain C++", "C++", ".net rain", "C#?"])
def test_what_has_signs_has_to_stand_so_in_a_searched_field(text: str) -> None:
    (found,) = conditions_in(parse_words(text), MAILS, ALL)
    literal = text.removeprefix("rain ").removesuffix(" rain").rstrip("?")
    assert found.any_of == tuple(
        (Condition(name, found.kind, found.operator, literal),) for name in MAILS.lexical_fields
    )
    assert all(term.tokens for term in terms(text))
    assert conditions("C++ OR rain") == conditions("rain -C++") == []


@pytest.mark.parametrize("text", ["subject:C++", "rain subject:C++"])
def test_what_has_signs_and_a_name_has_to_stand_so_in_the_named_field(text: str) -> None:
    (found,) = conditions_in(parse_words(text), MAILS, ALL)
    assert found.any_of == ((Condition("subject", found.kind, found.operator, "C++"),),)
    assert conditions(f"{text} OR snow") == conditions("rain -subject:C++") == []


@pytest.mark.parametrize("text", ["rain folder:inbox", "rain to:bob", "rain size:3"])
def test_a_field_that_is_not_granted_is_words_as_one_that_nobody_knows(text: str) -> None:
    assert conditions(text, "id", "body") == []
    found, unknown = terms(text, "id", "body"), terms("rain nobody:3", "id", "body")
    assert [term.fields for term in found] == [term.fields for term in unknown] == [(), ()]
    assert all(term.tokens and term.named is None for term in found)


def test_a_condition_leaves_no_word_in_its_place() -> None:
    rain, folder = terms("rain folder:inbox")
    assert (rain.tokens, folder.tokens) == (("rain",), ())


def test_without_any_other_word_it_is_read_as_words() -> None:
    (folder,) = terms("folder:inbox")
    assert "inbox" in folder.tokens


def test_a_searched_field_that_is_named_is_where_the_word_has_to_stand() -> None:
    rain, snow = terms("rain subject:snow")
    assert (rain.fields, snow.fields, snow.tokens) == ((), ("subject",), ("snow",))
    assert snow.said == "subject:snow"


@pytest.mark.parametrize("text", ["subject:snow", "subject:snow body:rain"])
def test_a_query_of_nothing_but_names_is_looked_for_where_they_say(text: str) -> None:
    names = [each.partition(":") for each in text.split()]
    found = terms(text)
    assert [(each.fields, each.tokens) for each in found] == [((n,), (w,)) for n, _, w in names]
    assert all(each.named is None for each in found)


def test_a_role_is_the_fields_of_that_role_in_which_words_are_searched() -> None:
    (_, ada) = terms("rain from:ada")
    assert (ada.fields, ada.tokens) == (("sender",), ("ada",))


def test_alternatives_are_read_each_in_its_field() -> None:
    (found,) = terms("subject:snow OR rain")
    assert [(each.fields, each.tokens) for each in found.alternatives] == [
        (("subject",), ("snow",)),
        ((), ("rain",)),
    ]
    assert all(each.named is None for each in found.alternatives)
    assert found.said == "subject:snow OR rain"


def test_what_is_excluded_names_its_field_too() -> None:
    words = words_in(parse_words("rain -subject:snow"), MAILS, ALL)
    assert [(each.fields, each.tokens) for each in words.excluded] == [(("subject",), ("snow",))]


def test_quotation_marks_of_a_single_piece_stay() -> None:
    _, quoted = terms('rain subject:"heavy snow"')
    assert quoted.quoted
    (either,) = terms('subject:"heavy snow" OR rain')
    assert either.quoted
    (named,) = terms("subject:snow")
    assert named.quoted
    (joined,) = terms("subject:snow OR rain")
    assert not joined.quoted


def test_alternatives_are_words_and_no_condition_of_a_field() -> None:
    assert conditions_in(parse_words("rain folder:in"), MAILS, ALL) != ()
    assert conditions_in(parse_words("rain folder:in OR folder:out"), MAILS, ALL) == ()


def test_plain_words_stay_as_they_are() -> None:
    words = parse_words("heavy rain")
    assert words_in(words, MAILS, ALL).terms == words.terms
    assert all(isinstance(each, Condition) for each in conditions_in(words, MAILS, ALL))
