"""Values of conditions, as the fields that they are compared with take them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import InvalidFilter
from pdpp_kernel.texts import CatalogueText
from pdpp_kernel.values import DAY_NANOSECONDS, Comparable, ValueKind
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.filter_values import (
    MAX_MATCH_CHARS,
    MAX_NUMBER_CHARS,
    condition_on,
    parsed_value,
)
from server.tests.enforcement.mailbox import MAILS, mails
from server.tests.resource_server.journal import client

HOUR = 3_600 * 10**9
WEST = "America/Los_Angeles"


@pytest.mark.parametrize(
    ("kind", "text", "zone", "value"),
    [
        (ValueKind.INSTANT, "1970-01-02T01:00", WEST, DAY_NANOSECONDS + 9 * HOUR),
        (ValueKind.INSTANT, "1970-01-02T01:00", None, None),
        (ValueKind.INSTANT, "1970-01-02T01:00:00Z", WEST, DAY_NANOSECONDS + HOUR),
        (ValueKind.INSTANT, "1970-01-02T01:00:00Z", None, DAY_NANOSECONDS + HOUR),
        (ValueKind.DATE, "1970-01-02", WEST, 1),
        (ValueKind.INTEGER, "7", WEST, 7),
        (ValueKind.INTEGER, "7.5", None, None),
        (ValueKind.INTEGER, "07", None, None),
        (ValueKind.INTEGER, "7.0", None, 7),
        (ValueKind.NUMBER, "-7.5e1", None, -75),
        (ValueKind.NUMBER, "1e400", None, None),
        (ValueKind.NUMBER, "1e308", None, 1e308),
        (ValueKind.NUMBER, "0." + "1" * (MAX_NUMBER_CHARS - 2), None, 1 / 9),
        (ValueKind.NUMBER, "0." + "1" * (MAX_NUMBER_CHARS - 1), None, None),
        (ValueKind.BOOLEAN, "true", None, True),
        (ValueKind.BOOLEAN, "True", None, None),
        (ValueKind.STRING, "a\x00b", None, None),
    ],
)
def test_a_value_is_what_its_field_compares(
    kind: ValueKind, text: str, zone: str | None, value: Comparable | None
) -> None:
    assert parsed_value(kind, text, zone) == value


def on(field: str, operator: str | None, text: str, *further: str) -> Condition:
    asked = FilterText(field, operator, text, further=further)
    return condition_on(client().sources[:1], asked)


@pytest.mark.parametrize("part", ["a", "a" * MAX_MATCH_CHARS])
def test_a_part_has_one_character_or_some_hundred(part: str) -> None:
    assert on("title", "starts_with", part).values == (part,)


@pytest.mark.parametrize("part", ["", "a" * (MAX_MATCH_CHARS + 1), "a\x00"])
def test_any_other_part_is_refused(part: str) -> None:
    with pytest.raises(InvalidFilter):
        on("title", "starts_with", part)


def test_each_of_several_values_is_one_and_the_same_one_is_named_once() -> None:
    assert on("word_count", "in", "7", "8", "7.0").values == (7, 8)
    with pytest.raises(InvalidFilter):
        on("word_count", "in", "7", "many")


@pytest.mark.parametrize(("text", "exists"), [("true", True), ("false", False)])
def test_whether_there_is_a_value_is_true_or_false(text: str, *, exists: bool) -> None:
    assert on("title", "exists", text).values == (exists,)
    with pytest.raises(InvalidFilter):
        on("title", "exists", f"{text} ")


@pytest.mark.parametrize(
    ("field", "operator"),
    [("labels", None), ("labels", "in"), ("title", "gte"), ("word_count", "gt")],
)
def test_a_list_and_a_range_that_is_not_declared_are_refused(
    field: str, operator: str | None
) -> None:
    with pytest.raises(InvalidFilter):
        on(field, operator, "7")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "text"),
        ("word_count", "3"),
        ("pinned", "true"),
        ("created_at", "2026-01-31T09:00:00Z"),
    ],
)
def test_a_refusal_has_an_example_of_the_kind_of_the_field(field: str, value: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        on(field, "like", "7")
    assert example_of(caught.value) == {"field": field, "value": value}


def example_of(refused: InvalidFilter) -> Mapping[str, object]:
    """What the example in a refusal was made of."""
    assert isinstance(refused.text, CatalogueText)
    example = refused.text.values["example"]
    assert isinstance(example, CatalogueText)
    return example.values


def test_who_looks_for_null_is_shown_how_to_look_for_no_value() -> None:
    refused: list[InvalidFilter] = []
    for text in ("many", "null"):
        with pytest.raises(InvalidFilter) as caught:
            on("word_count", None, text)
        refused.append(caught.value)
    assert [example_of(each) for each in refused] == [
        {"field": "word_count", "value": "3"},
        {"field": "word_count"},
    ]


def test_an_operator_that_is_not_taken_is_answered_with_those_that_are() -> None:
    with pytest.raises(InvalidFilter) as caught:
        on("word_count", "lt", "7")
    assert caught.value.members["allowed_values"] == ["gte", "lte", "in", "ne", "exists"]


def test_a_list_and_an_object_are_refused_by_the_name_of_the_field() -> None:
    for schema in ({"items": {"type": "string"}}, {}):
        tags = Property("tags", schema, None)
        declared = replace(MAILS, properties={**MAILS.properties, "tags": tags})
        source = dataclasses.replace(mails(), declared=declared)
        with pytest.raises(InvalidFilter) as caught:
            condition_on((source,), FilterText("tags", None, "a"))
        assert isinstance(caught.value.text, CatalogueText)
        assert caught.value.text.values == {"field": "tags"}


def test_a_declared_range_takes_a_value_of_its_field() -> None:
    found = on("word_count", "gte", "7")
    assert (found.operator, found.values) == ("gte", (7,))
    with pytest.raises(InvalidFilter):
        on("word_count", "gte", "many")
