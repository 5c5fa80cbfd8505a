"""Conditions of a request, and where they reach out of what was granted."""

from __future__ import annotations

from math import inf

import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.conditions import asked_span, conditions_on, reaching_outside
from personal_server.enforcement.filter_texts import FilterText
from server.tests.enforcement.mailbox import mails

WINDOW = TimeConstraint("sent_at", 10, 20, "since-text", "until-text")


def at(operator: str, value: int, *further: int, field: str = "sent_at") -> Condition:
    kind = ValueKind.DATE if field == "due" else ValueKind.INSTANT
    return Condition(field, kind, Operator(operator), value, further)


def either(*ways: tuple[Condition, ...]) -> Condition:
    """What holds where all of one of these hold."""
    return replace(at("eq", 0), any_of=ways)


def test_a_request_has_at_most_32_conditions() -> None:
    texts = (FilterText("folder", None, "in"),) * 32
    assert len(conditions_on((mails(),), texts)) == 32
    with pytest.raises(PersonalServerError) as caught:
        conditions_on((mails(),), (*texts, FilterText("size", None, "3")))
    assert (caught.value.code, caught.value.param) == ("invalid_filter", "filter[size]")


@pytest.mark.parametrize("field", ["size", "unread", "sent_at", "due"])
def test_who_asks_for_null_is_told_the_operator_for_it(field: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        conditions_on((mails(),), (FilterText(field, None, "null"),))
    assert caught.value.code == "invalid_filter"
    assert f"filter[{field}][exists]=false" in caught.value.text


@pytest.mark.parametrize(
    ("conditions", "span"),
    [
        ([], None),
        ([at("ne", 5)], None),
        ([at("eq", 5, field="due")], None),
        ([at("eq", 5)], (5, 5)),
        ([at("in", 7, 3, 5)], (3, 7)),
        ([at("gte", 5)], (5, inf)),
        ([at("gt", 5)], (6, inf)),
        ([at("lte", 5)], (-inf, 5)),
        ([at("lt", 5)], (-inf, 4)),
        ([at("gte", 3), at("gt", 5), at("lte", 9), at("lt", 8)], (6, 7)),
        ([Condition("sent_at", ValueKind.INTEGER, Operator.EQ, 5)], None),
        ([either((at("gte", 3), at("lte", 5)), (at("eq", 9),))], (3, 9)),
        ([either((at("gte", 7),), (at("lt", 2),))], (-inf, inf)),
        ([either((at("ne", 7),), (at("in", 2, 4),))], (2, 4)),
        ([either((at("ne", 7),))], None),
    ],
)
def test_conditions_on_a_time_let_a_span_through(
    conditions: list[Condition], span: tuple[float, float] | None
) -> None:
    assert asked_span("sent_at", conditions) == span


def test_days_are_spans_of_their_starts() -> None:
    assert asked_span("due", [at("gt", 1, field="due")]) == (2 * DAY, inf)
    assert asked_span("due", [at("lt", 3, field="due")]) == (-inf, 2 * DAY)
    assert asked_span("due", [at("in", 2, 1, field="due")]) == (DAY, 2 * DAY)


@pytest.mark.parametrize(
    ("conditions", "is_told"),
    [
        ((), False),
        ((at("gte", 10), at("lt", 20)), False),
        ((at("gte", 9), at("lt", 20)), True),
        ((at("gte", 10), at("lte", 20)), True),
        ((at("gte", 10),), True),
        ((at("lt", 20),), True),
        ((at("eq", 10),), False),
        ((at("eq", 19),), False),
        ((at("eq", 20),), True),
        ((at("gte", 9), at("lt", 9)), False),
        ((at("eq", 0, field="due"),), False),
    ],
)
def test_a_request_is_told_where_it_reaches_out_of_its_window(
    conditions: tuple[Condition, ...], is_told: bool
) -> None:
    warnings = reaching_outside([(mails(time_constraint=WINDOW), conditions)])
    assert bool(warnings) == is_told


def test_a_window_of_one_bound_is_reached_out_of_at_that_bound_only() -> None:
    since, until = TimeConstraint("sent_at", 10), TimeConstraint("sent_at", None, 20)
    before, after = (at("lt", 15),), (at("gt", 15),)
    told = [
        bool(reaching_outside([(mails(time_constraint=window), conditions)]))
        for window in (since, until)
        for conditions in (before, after)
    ]
    assert told == [True, False, False, True]


def test_sources_with_one_window_are_told_of_it_once() -> None:
    one, other = mails(time_constraint=WINDOW), mails(time_constraint=WINDOW, connection_id="cin_b")
    early = (at("lt", 15),)
    (alone,) = reaching_outside([(one, early), (mails(), early)])
    assert (alone.code, alone.field, alone.connection_id) == (
        "outside_time_constraint",
        "sent_at",
        "cin_a",
    )
    assert alone.detail == {
        "time_constraint": {"field": "sent_at", "since": "since-text", "until": "until-text"}
    }
    (both,) = reaching_outside([(one, early), (other, early)])
    assert both.connection_id is None


def test_a_bound_that_a_window_lacks_is_not_told() -> None:
    window = TimeConstraint("sent_at", 10, since="since-text")
    (warning,) = reaching_outside([(mails(time_constraint=window), (at("lt", 15),))])
    assert warning.detail == {"time_constraint": {"field": "sent_at", "since": "since-text"}}
