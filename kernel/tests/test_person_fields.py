"""What a property's schema says of persons."""

from __future__ import annotations

import pytest

from pdpp_kernel.person_fields import (
    MAX_NAME_CODE_POINTS,
    PERSON_MEMBER,
    PersonField,
    PersonForm,
    address_of,
    handle_of,
    number_of,
    person_field,
    shown_name,
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"form": "address"}, PersonField("from", PersonForm.ADDRESS, None, None, False)),
        (
            {"form": "address", "card": True},
            PersonField("from", PersonForm.ADDRESS, None, None, True),
        ),
        (
            {"form": "number", "card": "yes"},
            PersonField("from", PersonForm.NUMBER, None, None, False),
        ),
        (
            {"form": "handle", "network": "x"},
            PersonField("from", PersonForm.HANDLE, "x", None, False),
        ),
        (
            {"form": "handle", "network": 3},
            PersonField("from", PersonForm.HANDLE, None, None, False),
        ),
        (
            {"form": "number", "named_by": "name"},
            PersonField("from", PersonForm.NUMBER, None, "name", False),
        ),
        # what is written for people holds the name itself
        (
            {"form": "written", "named_by": "name"},
            PersonField("from", PersonForm.WRITTEN, None, None, False),
        ),
        (
            {"form": "number", "named_by": 1},
            PersonField("from", PersonForm.NUMBER, None, None, False),
        ),
        ({"form": "face"}, None),
        ({}, None),
        ("address", None),
        (None, None),
    ],
)
def test_what_is_understood_is_read_and_anything_else_says_nothing(
    said: object, expected: PersonField | None
) -> None:
    assert person_field("from", {PERSON_MEMBER: said}) == expected
    assert person_field("from", {}) is None


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a" * 128 + "@example.org", True),
        ("a" * 129 + "@example.org", False),
        ("a@" + "b" * 253, True),
        ("a@" + "b" * 254, False),
        ("mailto:a@b", True),
        ("mailto:", False),
    ],
)
def test_an_address_has_two_sides_each_with_a_longest(text: str, *, is_one: bool) -> None:
    assert (address_of(text) is not None) is is_one


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1234567", "1234567"),
        ("123456", None),
        ("1" * 15, "1" * 15),
        ("1" * 16, None),
        ("+1234567", "+1234567"),
        ("+123456", None),
        ("001234567", "+1234567"),
        ("00123456", None),
        ("+001234567", "+001234567"),
        ("TEL: 1234567", "1234567"),
        ("1234567 " + "-" * 56, "1234567"),
        ("1234567 " + "-" * 57, None),
        ("1 (0) 234567", "10234567"),
        ("+1 (0) 234567", "+1234567"),
        ("1234567 ext. 3", "1234567"),
        ("1234567a", None),
    ],
)
def test_a_number_has_7_to_15_digits_and_is_of_a_country_or_not(
    text: str, number: str | None
) -> None:
    found = number_of(text)
    assert (None if found is None else found.value) == number


@pytest.mark.parametrize(
    ("text", "network", "handle"),
    [
        (" Ada ", "Skype", "skype:ada"),
        ("Skype : Ada", None, "skype:ada"),
        ("a:b:c", None, "a:b:c"),
        ("a:b", "irc", "irc:a:b"),
        ("", "irc", None),
        ("ada", "", None),
        ("ada", None, None),
    ],
)
def test_a_handle_is_a_name_in_a_network(
    text: str, network: str | None, handle: str | None
) -> None:
    found = handle_of(text, network)
    assert (None if found is None else found.value) == handle


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" Ada \n Byron ", "Ada Byron"),
        ("a" * 201, "a" * MAX_NAME_CODE_POINTS),
        (" ", None),
        ("ada@example.org", None),
        ("0170 1234567", None),
        ("Room 12", "Room 12"),
    ],
)
def test_a_name_is_a_line_that_is_no_identity(text: str, name: str | None) -> None:
    assert MAX_NAME_CODE_POINTS == 200
    assert shown_name(text) == name


@pytest.mark.parametrize(
    ("form", "network", "text", "found"),
    [
        (PersonForm.ADDRESS, None, "a@b", ("a@b", "Ada")),
        (PersonForm.ADDRESS, None, "1234567", None),
        (PersonForm.NUMBER, None, "1234567", ("1234567", "Ada")),
        (PersonForm.NUMBER, None, "a@b", None),
        (PersonForm.HANDLE, "irc", "ada", ("irc:ada", "Ada")),
        (PersonForm.HANDLE, None, "irc:ada", ("irc:ada", "Ada")),
        (PersonForm.WRITTEN, None, "a@b", ("a@b", "Ada")),
        (PersonForm.WRITTEN, None, "1234567", ("1234567", "Ada")),
        (PersonForm.WRITTEN, None, "'Bob' <a@b> ", ("a@b", "Bob")),
        (PersonForm.WRITTEN, None, "Bob <1234567>", ("1234567", "Bob")),
        (PersonForm.WRITTEN, None, "a@b <c@d>", ("c@d", "Ada")),
        (PersonForm.WRITTEN, None, "irc:ada", None),
    ],
)
def test_each_form_is_read_in_its_way_with_the_name_beside_it(
    form: PersonForm, network: str | None, text: str, found: tuple[str, str] | None
) -> None:
    field = PersonField("from", form, network, "name")
    read = [(identity.value, name) for identity, name in field.read({"from": text, "name": "Ada"})]
    assert read == ([] if found is None else [found])


def test_of_a_list_a_thousand_texts_are_read() -> None:
    field = PersonField("to", PersonForm.ADDRESS)
    listed = [f"{number}@example.org" for number in range(1_001)]
    read = [identity.value for identity, _ in field.read({"to": listed})]
    assert read == listed[:1_000]
    assert [each.value for each, _ in field.read({"to": ("a@b", 7, None, "c@d")})] == ["a@b", "c@d"]
    assert [name for _, name in field.read({"to": "a@b", "None": "Ada"})] == [None]
    assert list(field.read({})) == []
    assert not field.is_card
