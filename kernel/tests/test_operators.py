"""What each operator of a filter takes, and what satisfies it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pdpp_kernel.operators import (
    FILTER_CAPABILITIES,
    FURTHER_BY_KIND,
    FURTHER_OPERATORS,
    LISTED_OPERATORS,
    RANGE_OPERATORS,
    RANGES,
    FilterFlag,
    Operator,
    Takes,
    operators_of,
)
from pdpp_kernel.values import ValueKind


@pytest.mark.parametrize(
    ("operator", "values", "held"),
    [
        ("eq", [5], [False, True, False]),
        ("gte", [5], [False, True, True]),
        ("gt", [5], [False, False, True]),
        ("lte", [5], [True, True, False]),
        ("lt", [5], [True, False, False]),
        ("in", [6, 4], [True, False, True]),
        ("ne", [5], [True, False, True]),
    ],
)
def test_numbers_are_compared(operator: str, values: Sequence[Any], held: list[bool]) -> None:
    assert [Operator(operator).holds(found, values) for found in (4, 5, 6)] == held


def test_ranges_look_at_the_part_of_a_text_that_orders_it() -> None:
    one, other = "a" * 256 + "b", "a" * 256 + "c"
    assert [Operator(word).holds(one, [other]) for word in ("gte", "gt", "lte", "lt")] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("operator", "held"),
    [("contains", [True, True, False]), ("starts_with", [True, False, False])],
)
def test_texts_have_parts_and_beginnings(operator: str, held: list[bool]) -> None:
    texts = ("rain", "heavy rain", "snow")
    assert [Operator(operator).holds(text, ["rai"]) for text in texts] == held


def test_only_presence_is_met_by_nothing() -> None:
    exists = Operator.EXISTS
    assert [exists.holds(None, [True]), exists.holds(None, [False])] == [False, True]
    assert [exists.holds("", [True]), exists.holds(0, [False])] == [True, False]


def test_an_operator_is_its_word() -> None:
    assert [str(each) for each in Operator] == [each.name.lower() for each in Operator]
    assert Operator("eq") is Operator.EQ


def test_ranges_are_the_four_comparisons_by_order_of_what_measures() -> None:
    assert RANGE_OPERATORS == ("gte", "gt", "lte", "lt")
    assert {each.value for each in RANGES} == set(RANGE_OPERATORS)
    measures = {ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.DATE, ValueKind.INSTANT}
    assert {each.kinds for each in RANGES} == {frozenset(measures)}


def test_those_beside_equality_and_ranges_have_a_flag_and_a_capability() -> None:
    assert [each.value for each in FURTHER_OPERATORS] == [
        "in",
        "ne",
        "contains",
        "starts_with",
        "exists",
    ]
    assert tuple(f"filter_{each.value}" for each in FURTHER_OPERATORS) == FILTER_CAPABILITIES
    assert Operator.EQ.capability is None


def test_a_flag_adds_its_operators() -> None:
    assert operators_of(FilterFlag.SET) == ("in", "ne", "exists")
    assert operators_of(FilterFlag.TEXT) == ("contains", "starts_with")
    assert operators_of(FilterFlag.NAME) == ()


def test_a_kind_takes_what_its_flags_name() -> None:
    assert FURTHER_BY_KIND[ValueKind.INTEGER] == ("in", "ne", "exists")
    assert FURTHER_BY_KIND[ValueKind.STRING] == ("in", "ne", "exists", "contains", "starts_with")


def test_what_stands_behind_an_operator() -> None:
    taken = {each.value: each.takes for each in Operator}
    assert LISTED_OPERATORS == ("in",)
    assert (taken["contains"], taken["starts_with"], taken["exists"], taken["eq"]) == (
        Takes.PART,
        Takes.PART,
        Takes.PRESENCE,
        Takes.VALUE,
    )


def test_signs_are_those_that_a_person_writes() -> None:
    signs = {each.value: each.sign for each in Operator if each.sign is not None}
    assert signs == {
        "eq": "=",
        "gte": ">=",
        "gt": ">",
        "lte": "<=",
        "lt": "<",
        "ne": "!=",
        "contains": "~",
    }


def test_a_label_names_one_operator() -> None:
    assert len({each.label for each in Operator}) == len(Operator)


@pytest.mark.parametrize("operator", Operator)
def test_an_example_is_one_that_its_operator_takes(operator: Operator) -> None:
    written = {
        Takes.VALUE: str | int,
        Takes.VALUES: list,
        Takes.PART: str,
        Takes.PRESENCE: bool,
    }
    field, value = operator.example
    assert field.isidentifier()
    assert isinstance(value, written[operator.takes])
