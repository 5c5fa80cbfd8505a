"""The plans that follow from a read that may happen."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Condition, Grouping, Order
from pdpp_kernel.declaration import Property
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import NANOSECONDS, ValueKind
from personal_server.domain.authority import ReadableSource, TimeConstraint
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.authorized_reads import (
    MOST_UNITS,
    beside_plan,
    children_plan,
    first_change_plan,
    glance_plan,
    hit_plan,
    neighbours_plan,
    occurrences_plan,
    units_plan,
    values_plan,
)
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.plans import AggregatePlan, RecordsPlan
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import scope_of, scopes_of
from server.tests.enforcement.mailbox import (
    MAILS,
    NOTE_STREAM,
    TEXT,
    WHOLE,
    mails,
    notes,
    row,
)

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


@pytest.mark.parametrize(
    ("fields", "is_there"),
    [
        (("id", "thread", "sent_at"), True),
        (("id", "sent_at"), False),
        (("id", "thread"), False),
        (("id",), False),
    ],
)
def test_what_stands_beside_records_is_asked_by_conversation_and_time(
    fields: tuple[str, ...], *, is_there: bool
) -> None:
    plan = beside_plan(mails(*fields), iter(["m1", "m2"]))
    if not is_there:
        assert plan is None
        return
    assert plan is not None
    assert plan.scope == scope_of(mails(*fields))
    assert (plan.shared, plan.ordered) == (("thread", TEXT), ("sent_at", ValueKind.INSTANT))
    assert plan.keys == ("m1", "m2")


@pytest.mark.parametrize("unlike", ["thread", "sent_at"])
def test_what_cannot_be_compared_is_no_conversation_and_no_order(unlike: str) -> None:
    properties = {**MAILS.properties, unlike: replace(MAILS.properties[unlike], kind=None)}
    source = dataclasses.replace(mails(), declared=replace(MAILS, properties=properties))
    assert beside_plan(source, ("m1",)) is None
    assert neighbours_plan(source, row(**SAID)) is None
    assert beside_plan(notes(), ("n1",)) is None


def at_their_times(*fields: str, **members: Any) -> ReadableSource:
    """The notes, each an occurrence of a mail at a time."""
    declared = (
        Property("mail_id", {}, TEXT, role="occurrence-of"),
        Property("at", {}, ValueKind.INSTANT, role="event-time"),
    )
    properties = {**NOTE_STREAM.properties, **{each.name: each for each in declared}}
    source = notes(**members)
    shown = fields or tuple(properties)
    return dataclasses.replace(
        source, declared=replace(NOTE_STREAM, properties=properties), fields=shown
    )


def test_the_first_occurrence_of_each_record_is_looked_for() -> None:
    plan = occurrences_plan(mails(), at_their_times(), ("m1", "m2"))
    assert plan is not None
    assert (plan.scope, plan.parent_values) == (scope_of(at_their_times()), ("m1", "m2"))
    assert (plan.foreign_key, plan.limit_each) == ("mail_id", 1)
    assert plan.order == Order("at", ValueKind.INSTANT, False)


@pytest.mark.parametrize(
    "other",
    [
        at_their_times(connection_id="cin_b"),
        at_their_times(grant_id="grt_2"),
        at_their_times("id", "mail_id"),
        at_their_times("id", "at"),
        notes(),
        mails(),
    ],
    ids=["another account", "another grant", "no time", "no record", "no occurrence", "itself"],
)
def test_what_does_not_show_occurrences_is_not_asked(other: ReadableSource) -> None:
    assert occurrences_plan(mails(), other, ("m1",)) is None


SIZE, FOLDER = MAILS.properties["size"], MAILS.properties["folder"]
IN_INBOX = Condition("folder", TEXT, Operator.EQ, "in")


def test_units_are_those_of_the_values_that_a_list_is_about() -> None:
    plan = units_plan(RecordsPlan(scopes_of((mails(),)), conditions=(IN_INBOX,)), SIZE, FOLDER)
    has_value = Condition("size", WHOLE, Operator.EXISTS, True)
    assert (plan.metric, plan.conditions) == (Metric.COUNT, (IN_INBOX, has_value))
    assert (plan.groupings, plan.limit) == ((Grouping("folder", TEXT),), MOST_UNITS)
    assert (plan.scopes, plan.words) == (scopes_of((mails(),)), None)


def test_units_of_groups_are_asked_for_each_of_them_with_their_words() -> None:
    thread, words = Grouping("thread", TEXT), parse_words("rain")
    grouped = AggregatePlan(scopes_of((mails(),)), Metric.SUM, groupings=(thread,), words=words)
    plan = units_plan(grouped, SIZE, FOLDER, thread)
    assert plan.groupings == (thread, Grouping("folder", TEXT))
    assert plan.words == words
    assert [each.field for each in plan.conditions] == ["size"]


def test_without_a_kind_values_are_numbers_and_units_texts() -> None:
    size, folder = replace(SIZE, kind=None), replace(FOLDER, kind=None)
    plan = units_plan(RecordsPlan(scopes_of((mails(),))), size, folder)
    assert plan.conditions[0].kind is ValueKind.NUMBER
    assert plan.groupings[0].kind is ValueKind.STRING
