"""The plans that follow from a read that may happen."""

from __future__ import annotations

import pytest

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Condition, Grouping, Order
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import NANOSECONDS, ValueKind
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.authorized_reads import (
    children_plan,
    first_change_plan,
    glance_plan,
    hit_plan,
    neighbours_plan,
    values_plan,
)
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import scope_of, scopes_of
from server.tests.enforcement.mailbox import MAILS, TEXT, mails, notes, row

SAID = {"thread": "t1", "sent_at": "1970-01-01T00:00:02Z"}


def allowed(name: str, limit: int = 4) -> AllowedExpansion:
    declared = MAILS.expansion(name)
    assert declared is not None
    return AllowedExpansion(declared, limit, {})


@pytest.mark.parametrize(
    ("bounded", "asked", "span"),
    [
        (None, "sent_at", "sent_at"),
        ("sent_at", "sent_at", "sent_at"),
        ("due", "sent_at", None),
        ("sent_at", None, None),
        (None, None, None),
    ],
)
def test_a_glance_looks_a_time_up_where_no_other_is_bounded(
    bounded: str | None, asked: str | None, span: str | None
) -> None:
    constraint = None if bounded is None else TimeConstraint(bounded, 1)
    sources = (mails(), mails(connection_id="cin_b", time_constraint=constraint))
    plan = glance_plan(sources, asked, 50)
    assert (plan.span_field, plan.most, plan.scopes) == (span, 50, scopes_of(sources))


def test_children_are_found_by_the_key_that_they_hold_in_the_order_of_their_stream() -> None:
    plan = children_plan(allowed("notes"), notes(), ("m1", "m2"))
    assert (plan.foreign_key, plan.limit_each, plan.parent_values) == ("mail_id", 4, ("m1", "m2"))
    assert (plan.order, plan.scope) == (Order(None, None, False), scope_of(notes()))


def test_the_one_that_a_record_names_is_found_by_its_key() -> None:
    plan = children_plan(allowed("parent"), mails(), ("m1",))
    assert (plan.foreign_key, plan.limit_each) == (None, 1)
    assert plan.order == Order("sent_at", ValueKind.INSTANT, False)
    assert children_plan(allowed("thread"), mails(), ("t1",)).foreign_key == "thread"


def test_values_of_a_condition_are_counted_where_the_others_hold() -> None:
    wanted = Condition("folder", TEXT, Operator.EQ, "in")
    other = Condition("unread", ValueKind.BOOLEAN, Operator.EQ, True)
    plan = values_plan((mails(),), wanted, (other,), 5)
    assert (plan.metric, plan.conditions, plan.limit) == (Metric.COUNT, (other,), 5)
    assert plan.groupings == (Grouping("folder", TEXT),)


def test_hits_are_read_through_their_own_source() -> None:
    plan = hit_plan(mails("id"), iter(["m1", "m2"]))
    assert (plan.scope, plan.keys) == (scope_of(mails("id")), ("m1", "m2"))


def test_neighbours_share_the_conversation_and_stand_beside_the_row() -> None:
    plan = neighbours_plan(mails(), row(**SAID))
    assert plan is not None
    assert plan.condition == Condition("thread", TEXT, Operator.EQ, "t1")
    assert plan.order == Order("sent_at", ValueKind.INSTANT, False)
    assert plan.position == Position(2 * NANOSECONDS, "m1", "cin_a", "mails")


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        (("id", "sent_at"), SAID),
        (("id", "thread"), SAID),
        (("id", "thread", "sent_at"), {"thread": "t1"}),
        (("id", "thread", "sent_at"), {"sent_at": "1970-01-01T00:00:02Z"}),
    ],
)
def test_without_conversation_or_order_there_are_no_neighbours(
    fields: tuple[str, ...], data: dict[str, str]
) -> None:
    assert neighbours_plan(mails(*fields), row(**data)) is None


def test_a_source_without_conversations_has_no_neighbours() -> None:
    assert neighbours_plan(notes(), row()) is None


def test_one_change_is_enough_to_know_that_there_are_some() -> None:
    plan = first_change_plan((mails(),), 3, 9)
    assert (plan.since, plan.horizon, plan.limit, plan.after) == (3, 9, 1, 0)
