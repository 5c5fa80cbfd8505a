"""Filter values are read by the declared kind of their field, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.errors import InvalidFilter, InvalidSort, PersonalServerError
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, instant_ns
from personal_server.enforcement.conditions import conditions_on
from personal_server.enforcement.fields import (
    check_cut,
    granted_here,
    near,
    order_of,
    shown_fields,
)
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import FieldSelection
from server.tests.enforcement.mailbox import mails
from server.tests.resource_server.journal import client, stream_grant

SOURCES = client().sources
DAY = 20_454 * DAY_NANOSECONDS  # 2026-01-01


def condition(field: str, text: str, operator: str | None = None) -> Condition:
    return conditions_on(SOURCES, (FilterText(field, operator, text),))[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-5", -5), ("1e2", 100), ("2.0", 2), ("9223372036854775807", 2**63 - 1)],
)
def test_integers_are_any_integral_json_number(text: str, value: int) -> None:
    assert condition("word_count", text).value == value


@pytest.mark.parametrize(
    "text",
    ["", " 1", "+1", "01", "0x1", "1.5", "1e-1", "NaN", "Infinity", "9223372036854775808", "1e309",
     "1" * 65, "١"],
)  # fmt: skip
def test_anything_else_is_no_integer(text: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        condition("word_count", text)
    assert caught.value.param == "filter[word_count]"
    assert "filter[word_count]=" in caught.value.message


@pytest.mark.parametrize(
    ("operator", "expected", "bound"),
    [
        ("gte", Operator.GTE, DAY),
        ("lt", Operator.LT, DAY),
        ("gt", Operator.GTE, DAY + DAY_NANOSECONDS),
        ("lte", Operator.LT, DAY + DAY_NANOSECONDS),
    ],
)
def test_a_bare_date_means_the_whole_day(operator: str, expected: Operator, bound: int) -> None:
    found = condition("created_at", "2026-01-01", operator)
    assert (found.operator, found.value) == (expected, bound)


def test_instants_compare_as_instants() -> None:
    found = condition("created_at", "2026-01-01T01:00:00+01:00")
    assert found.value == instant_ns("2026-01-01T00:00:00Z") == DAY


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "yesterday", "2026-13-01"])
def test_an_exact_time_needs_an_offset(text: str) -> None:
    with pytest.raises(InvalidFilter):
        condition("created_at", text)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_booleans_are_two_words(text: str, *, value: bool) -> None:
    assert condition("pinned", text).value is value


@pytest.mark.parametrize("text", ["True", "1", "yes", ""])
def test_other_words_are_no_booleans(text: str) -> None:
    with pytest.raises(InvalidFilter):
        condition("pinned", text)


def test_strings_are_themselves_but_for_the_one_that_cannot_be_stored() -> None:
    assert condition("title", "").value == ""
    with pytest.raises(InvalidFilter):
        condition("title", "a\x00b")


@given(st.sampled_from(list(SOURCES[0].fields)), st.text(max_size=20), st.sampled_from(
    [None, "gte", "gt", "lte", "lt", "eq", ""]))  # fmt: skip
def test_any_text_is_a_condition_or_refused(field: str, text: str, operator: str | None) -> None:
    try:
        found = condition(field, text, operator)
    except PersonalServerError as error:
        refused = error.code
        assert refused == "invalid_filter"
    else:
        assert found.kind is SOURCES[0].declared.properties[field].kind


def test_the_default_order_is_newest_first() -> None:
    order = order_of(SOURCES, None, None)
    assert (order.field, order.kind, order.descending) == ("created_at", ValueKind.INSTANT, True)


def test_one_source_without_the_cursor_field_hides_the_order_of_all() -> None:
    narrow = client(stream_grant(fields=("id", "title"))).sources
    order = order_of((SOURCES[0], narrow[1]), None, None)
    assert (order.field, order.descending) == (None, False)


def test_a_refused_sort_names_what_can_be_sorted_by() -> None:
    with pytest.raises(InvalidSort) as caught:
        order_of(SOURCES, "title", None)
    assert caught.value.members["allowed_values"] == ["word_count", "created_at"]


def test_a_view_is_cut_to_each_source_and_keeps_the_key() -> None:
    sources = (mails(), mails("id", "body", connection_id="cin_b"))
    assert shown_fields(sources, FieldSelection(view="bodies")) == (("id", "body"), ("id", "body"))
    assert shown_fields(sources, FieldSelection(view="short")) == (("id", "subject"), ("id",))


@pytest.mark.parametrize("view", ["none", "bodies"])
def test_a_view_without_a_granted_field_is_refused_and_others_are_suggested(view: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        shown_fields((mails("id", "subject"),), FieldSelection(view=view))
    assert (caught.value.code, caught.value.param) == ("invalid_request", "view")
    assert caught.value.members["suggestions"] == ["short"]


def test_fields_stand_in_schema_order_with_the_key_and_all_are_shown_unasked() -> None:
    sources = (mails("id", "subject", "size"),)
    assert shown_fields(sources, FieldSelection(("size", "subject"))) == (
        ("id", "subject", "size"),
    )
    assert shown_fields(sources, FieldSelection()) == (("id", "subject", "size"),)


@pytest.mark.parametrize(
    ("name", "code"), [("body", "field_not_granted"), ("sise", "unknown_field")]
)
def test_a_name_is_refused_with_granted_names_only(name: str, code: str) -> None:
    sources = (mails("id", "size", "body"), mails("id", "size", connection_id="cin_b"))
    with pytest.raises(PersonalServerError) as caught:
        shown_fields(sources, FieldSelection((name,)))
    assert (caught.value.code, caught.value.param) == (code, "fields")
    assert caught.value.members["allowed_values"] == ["id", "size"]
    assert caught.value.members.get("suggestions") == (["size"] if name == "sise" else None)


def test_a_list_stands_newest_first_where_every_source_grants_what_orders_it() -> None:
    whole, narrow = mails(), mails("id", connection_id="cin_b")
    instant = ValueKind.INSTANT
    assert order_of((whole,), None, None) == Order("sent_at", instant, True)
    assert order_of((whole,), None, "asc") == Order("sent_at", instant, False)
    assert order_of((whole, narrow), None, None) == Order(None, None, False)
    assert order_of((narrow,), None, "desc") == Order(None, None, True)


@pytest.mark.parametrize(
    ("sort", "order", "descending"),
    [("size", None, False), ("-size", None, True), ("size", "asc", False), ("-size", "desc", True)],
)
def test_a_sort_says_its_direction(sort: str, order: str | None, descending: bool) -> None:
    assert order_of((mails(),), sort, order) == Order("size", ValueKind.INTEGER, descending)


@pytest.mark.parametrize(
    ("sort", "order", "allowed"),
    [
        ("size", "desc", ["-size"]),
        ("-size", "asc", ["size"]),
        ("folder", None, ["size", "sent_at"]),
    ],
)
def test_a_sort_that_contradicts_itself_or_is_not_declared_is_refused(
    sort: str, order: str | None, allowed: list[str]
) -> None:
    with pytest.raises(InvalidSort) as caught:
        order_of((mails(),), sort, order)
    assert caught.value.members["allowed_values"] == allowed


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("subjekt", ["subject"]),
        ("zzz", None),
        ("name_0", [f"name_{number}" for number in (0, 9, 8, 7, 6)]),
        ("x" * 128 + "y" * 200, ["x" * 128]),
    ],
)
def test_at_most_five_near_names_are_suggested(name: str, found: list[str] | None) -> None:
    names = ["subject", "x" * 128, *(f"name_{number}" for number in range(10))]
    assert near(name, names) == found


def test_a_dozen_granted_names_are_told() -> None:
    names = [f"n{number:02}" for number in range(13)]
    assert granted_here("zzz", names) == {"allowed_values": names[:12], "suggestions": None}


def test_a_view_and_fields_exclude_each_other() -> None:
    for cut in (FieldSelection(), FieldSelection(("id",)), FieldSelection(view="short")):
        check_cut(cut)
    with pytest.raises(PersonalServerError) as caught:
        check_cut(FieldSelection(("id",), "short"))
    assert (caught.value.code, caught.value.param) == ("invalid_request", "view")
