"""Filters as a caller wrote them."""

from __future__ import annotations

from personal_server.enforcement.filter_texts import MAX_FILTER_VALUES, FilterText, filters_of


def test_values_of_one_operator_are_one_condition_in_an_order_of_their_own() -> None:
    sent = [
        (("folder", "in"), "b"),
        (("size",), "3"),
        (("folder", "in"), "c"),
        (("folder", "in"), "a"),
        (("folder", "ne"), "z"),
    ]
    assert filters_of(sent) == (
        FilterText("folder", "in", "a", ("b", "c")),
        FilterText("size", None, "3"),
        FilterText("folder", "ne", "z"),
    )


def test_errors_name_a_condition_by_its_field() -> None:
    assert FilterText("folder", "in", "a").param == "filter[folder]"


def test_all_conditions_have_at_most_a_hundred_values() -> None:
    assert MAX_FILTER_VALUES == 100
