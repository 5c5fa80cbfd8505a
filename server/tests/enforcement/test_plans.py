"""Questions that a backend answers."""

from __future__ import annotations

import pytest

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Condition, Grouping, Order
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import ValueKind
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.plans import (
    BY_KEY,
    AggregatePlan,
    ChangesPlan,
    FieldWindowPlan,
    MeaningPlan,
    RecordsPlan,
    SearchPlan,
)
from personal_server.enforcement.scopes import scope_of
from server.tests.enforcement.mailbox import TEXT, mails

SCOPE = scope_of(mails())
BY_FOLDER = Grouping("folder", TEXT)
BY_DAY = Grouping("sent_at", ValueKind.INSTANT, Granularity.DAY)
BY_WEEKDAY = Grouping("sent_at", ValueKind.INSTANT, Granularity.WEEKDAY)


@pytest.mark.parametrize(
    ("groupings", "time_line", "timed"),
    [
        ((), None, None),
        ((BY_FOLDER,), None, None),
        ((BY_DAY,), 0, 0),
        ((BY_FOLDER, BY_DAY), 1, 1),
        ((BY_FOLDER, BY_WEEKDAY), None, 1),
    ],
)
def test_a_plan_says_which_grouping_is_of_time(
    groupings: tuple[Grouping, ...], time_line: int | None, timed: int | None
) -> None:
    plan = AggregatePlan((SCOPE,), Metric.COUNT, groupings=groupings)
    assert (plan.time_line, plan.timed) == (time_line, timed)


def test_a_list_stands_by_key_unless_told_otherwise() -> None:
    assert RecordsPlan((SCOPE,)).order == BY_KEY == Order(None, None, False)


def test_a_page_has_25_rows_and_an_aggregate_10_groups_unless_told_otherwise() -> None:
    assert (RecordsPlan((SCOPE,)).limit, ChangesPlan((SCOPE,)).limit) == (25, 25)
    assert AggregatePlan((SCOPE,), Metric.COUNT).limit == 10
    assert MeaningPlan((SCOPE,), b"", "a model").most == 200


def test_a_feed_begins_at_its_beginning_and_covers_nothing_yet() -> None:
    plan = ChangesPlan((SCOPE,))
    assert (plan.since, plan.horizon, plan.after) == (None, 0, 0)


def test_a_search_looks_at_so_many_and_counts_so_far() -> None:
    plan = SearchPlan((SCOPE,), parse_words("rain"))
    assert (plan.window, plan.frequency_limit, plan.seconds_each) == (2_000, 10_000, None)


def test_a_search_has_the_conditions_of_each_source_and_of_the_fields_that_words_name() -> None:
    large = Condition("size", ValueKind.INTEGER, Operator.GTE, 5)
    plan = SearchPlan((SCOPE,), parse_words("rain folder:inbox"), {("cin_a", "mails"): (large,)})
    asked, named = plan.conditions_on(SCOPE)
    assert asked == large
    assert (named.field, named.operator, named.value) == ("folder", Operator.EQ, "inbox")
    assert [bool(term.tokens) for term in plan.words_in(SCOPE).terms] == [True, False]
    hidden = scope_of(mails("id", "body", connection_id="cin_b"))
    assert plan.conditions_on(hidden) == ()


def test_a_window_begins_at_the_beginning() -> None:
    plan = FieldWindowPlan((SCOPE,), "m1", "body", 10)
    assert (plan.offset_chars, plan.before_chars, plan.match) == (0, 0, None)


def test_what_is_near_has_the_conditions_of_its_source() -> None:
    wanted = (Condition("folder", TEXT, Operator.EQ, "in"),)
    plan = MeaningPlan((SCOPE,), b"", "a model", {("cin_a", "mails"): wanted})
    assert plan.conditions_on(SCOPE) == wanted
    assert plan.conditions_on(scope_of(mails(connection_id="cin_b"))) == ()
