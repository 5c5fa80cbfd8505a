"""Metrics and groupings that are declared and granted."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.declaration import Aggregations
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.aggregates import (
    check_combination,
    fields_for,
    figure_of,
    limit_of,
    shared_figure,
    usable_kinds,
    words_of,
)
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import AggregateQuery, Selectors
from server.tests.enforcement.mailbox import MAILS, TEXT, mails, notes

INSTANT = ValueKind.INSTANT
UNCOUNTED = replace(MAILS, aggregations=Aggregations())


def query(metric: str = "count", **asked: Any) -> AggregateQuery:
    return AggregateQuery("mails", metric, **asked)


def groupings(source: ReadableSource, **asked: Any) -> tuple[Grouping, ...]:
    return figure_of((source,), query(**asked)).groupings


def refusal(source: ReadableSource, metric: str = "count", **asked: Any) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        figure_of((source,), query(metric, **asked))
    return caught.value


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        (query("count", field="size"), "field"),
        (query("sum"), "field"),
        (query(group_by="folder", then_by="unread", group_by_time="sent_at"), "then_by"),
        (query(group_by="folder", then_by="folder"), "then_by"),
        (query(then_by="folder"), "then_by"),
        (query(bin="5"), "bin"),
        (query(granularity="day"), "granularity"),
        (query(group_by="folder", granularity="day"), "granularity"),
        (query(group_by_time="sent_at", bin="5"), "bin"),
        (query(sort="key"), "sort"),
        (query(across="connections", selectors=Selectors("cin_a")), "across"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: AggregateQuery, param: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        check_combination(asked)
    assert (caught.value.code, caught.value.param) == ("invalid_request", param)


@pytest.mark.parametrize(
    "asked",
    [
        query(),
        query("sum", field="size"),
        query(group_by="folder", then_by="unread", sort="key"),
        query(group_by="folder", group_by_time="sent_at", granularity="day", time_zone="UTC"),
        query(group_by_time="sent_at", sort="-value"),
        query(time_zone="UTC"),
        query(group_by="size", bin="5"),
        query(across="connections", selectors=Selectors(connector_id="mail")),
    ],
)
def test_what_goes_together_is_taken(asked: AggregateQuery) -> None:
    check_combination(asked)


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        (query(), 10),
        (query(group_by="folder"), 10),
        (query(group_by="folder", then_by="unread"), 100),
        (query(group_by="size", bin="5"), 100),
        (query(group_by_time="sent_at"), 100),
        (query(group_by_time="sent_at", limit=3), 3),
    ],
)
def test_few_groups_are_returned_and_many_of_wide_ones(asked: AggregateQuery, limit: int) -> None:
    assert limit_of(asked) == limit


def test_words_are_checked_where_there_are_any() -> None:
    assert words_of(query()) is None
    words = words_of(query(text="rain"))
    assert words is not None
    assert words.terms[0].tokens == ("rain",)


def test_a_kind_of_figure_has_the_granted_fields_that_are_declared_for_it() -> None:
    assert usable_kinds(mails("id", "size", "sent_at", "folder")) == {
        "count": ("count",),
        "sum": ("size",),
        "min": ("sent_at",),
        "max": (),
        "count_distinct": (),
        "group_by": ("folder", "size"),
        "group_by_time": ("sent_at",),
    }
    assert usable_kinds(dataclasses.replace(mails(), declared=UNCOUNTED))["count"] == ()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("avg", ("size",)),
        ("median", ("size",)),
        ("p90", ("size",)),
        ("sum", ("size",)),
        ("max", ()),
    ],
)
def test_averages_and_percentiles_are_of_numbers_that_are_summed_or_bounded(
    kind: str, fields: tuple[str, ...]
) -> None:
    assert fields_for(MAILS, kind) == fields


def test_a_metric_is_of_a_field_of_its_kind() -> None:
    figure = figure_of((mails(),), query("sum", field="size"))
    assert (figure.metric, figure.field, figure.field_kind) == (
        Metric.SUM,
        "size",
        ValueKind.INTEGER,
    )
    count = figure_of((mails(),), query(filters=(FilterText("folder", None, "in"),)))
    assert (count.metric, count.field, count.field_kind, count.groupings) == (
        Metric.COUNT,
        None,
        None,
        (),
    )
    assert [each.field for each in count.conditions] == ["folder"]


@pytest.mark.parametrize(
    ("metric", "asked", "code", "param"),
    [
        ("sum", {"field": "folder"}, "invalid_request", "field"),
        ("sum", {"field": "nothing"}, "unknown_field", "field"),
        ("count", {"group_by": "body"}, "invalid_request", "group_by"),
        ("count", {"group_by": "tags"}, "invalid_request", "group_by"),
        ("count", {"group_by": "folder", "then_by": "body"}, "invalid_request", "then_by"),
        ("count", {"group_by": "folder", "bin": "5"}, "invalid_request", "bin"),
        ("count", {"group_by": "connection_id", "bin": "5"}, "invalid_request", "bin"),
        ("count", {"group_by": "size", "bin": "-1"}, "invalid_request", "bin"),
        ("count", {"group_by": "size", "bin": "05"}, "invalid_request", "bin"),
        ("count", {"group_by": "size", "bin": "1e2"}, "invalid_request", "bin"),
        ("count", {"group_by": "size", "bin": "1" * 16}, "invalid_request", "bin"),
        ("count", {"group_by": "size", "bin": "0." + "1" * 10}, "invalid_request", "bin"),
        ("count", {"group_by_time": "size"}, "invalid_request", "group_by_time"),
        (
            "count",
            {"group_by_time": "sent_at", "granularity": "x"},
            "invalid_request",
            "granularity",
        ),
        (
            "count",
            {"group_by_time": "due", "granularity": "hour"},
            "invalid_request",
            "granularity",
        ),
        ("count", {"group_by_time": "sent_at"}, "invalid_request", "granularity"),
    ],
)
def test_what_is_not_declared_is_refused(
    metric: str, asked: dict[str, Any], code: str, param: str
) -> None:
    error = refusal(mails(), metric, **asked)
    assert (error.code, error.param) == (code, param)


def test_a_refusal_names_what_can_be_used() -> None:
    granted = mails("id", "size", "folder")
    assert refusal(granted, "sum", field="folder").members["allowed_values"] == ["size"]
    assert refusal(granted, group_by="id").members["allowed_values"] == ["folder", "size"]
    assert "allowed_values" not in refusal(mails("id"), "sum", field="id").members
    uncounted = dataclasses.replace(mails(), declared=UNCOUNTED)
    assert refusal(uncounted).param == "metric"
    assert "allowed_values" not in refusal(uncounted).members
    summed = replace(MAILS, aggregations=Aggregations(sum=("size",), min=("sent_at",)))
    error = refusal(dataclasses.replace(mails("id", "size"), declared=summed))
    assert (error.param, error.members["allowed_values"]) == ("metric", ["sum"])
    hours = refusal(mails(), group_by_time="due", granularity="hour").members["allowed_values"]
    assert hours == ["day", "week", "month", "quarter", "year", "weekday"]


def test_whoever_asks_for_the_label_is_shown_the_field_that_it_labels() -> None:
    people = replace(
        MAILS, lexical_fields=("subject",), aggregations=Aggregations(True, group_by=("sender",))
    )
    hidden = replace(people.properties["sender_name"], schema={"x_pdpp_groupable": False})
    declared = replace(people, properties={**people.properties, "sender_name": hidden})
    error = refusal(dataclasses.replace(mails(), declared=declared), group_by="sender_name")
    assert error.members["recovery"] == {"group_by": "sender"}


def test_groups_are_by_value_step_time_or_connection() -> None:
    assert groupings(mails(), group_by="folder", then_by="unread") == (
        Grouping("folder", TEXT),
        Grouping("unread", ValueKind.BOOLEAN),
    )
    assert groupings(mails(), group_by="size", bin="0.25") == (
        Grouping("size", ValueKind.INTEGER, bin_width=Decimal("0.25")),
    )
    assert groupings(mails(), group_by="connection_id") == (Grouping(None, TEXT),)
    assert groupings(mails(), group_by_time="sent_at", granularity="hour") == (
        Grouping("sent_at", INSTANT, Granularity.HOUR, "UTC"),
    )
    (rome,) = groupings(mails(), group_by_time="due", granularity="week", time_zone="Europe/Rome")
    assert (rome.kind, rome.time_zone) == (ValueKind.DATE, "Europe/Rome")


LABELLED = replace(MAILS, lexical_fields=(), aggregations=Aggregations(True, group_by=("sender",)))


def labelled(*fields: str, **members: Any) -> ReadableSource:
    return dataclasses.replace(mails(*fields, **members), declared=LABELLED)


def test_a_group_has_its_label_where_every_source_grants_it() -> None:
    one, other = labelled(), labelled("id", "sender", connection_id="cin_b")
    asked = query(group_by="sender")
    assert figure_of((one,), asked).groupings[0].label_field == "sender_name"
    assert figure_of((one, other), asked).groupings[0].label_field is None


def test_a_label_is_a_text() -> None:
    numbered = replace(LABELLED.properties["sender_name"], kind=ValueKind.INTEGER)
    declared = replace(LABELLED, properties={**LABELLED.properties, "sender_name": numbered})
    source = dataclasses.replace(mails(), declared=declared)
    assert figure_of((source,), query(group_by="sender")).groupings[0].label_field is None


def test_words_need_a_searchable_field_in_every_source() -> None:
    with pytest.raises(PersonalServerError) as caught:
        figure_of((mails(), mails("id", connection_id="cin_b")), query(text="rain"))
    assert (caught.value.code, caught.value.param) == ("invalid_request", "q")
    assert figure_of((mails(),), query(text="rain"))


def test_sources_that_differ_take_part_as_far_as_they_agree() -> None:
    one = labelled()
    unlabelled = labelled("id", "sender", connection_id="cin_b")
    hidden = labelled("id", connection_id="cin_c")
    sources, figure, warnings = shared_figure((one, unlabelled, hidden), query(group_by="sender"))
    assert sources == (one, unlabelled)
    assert figure.groupings[0].label_field is None
    assert [(warning.connection_id, warning.detail) for warning in warnings] == [
        ("cin_c", {"stream": "mails", "reason": "field_not_granted"})
    ]
    _, alone, _ = shared_figure((one, labelled(connection_id="cin_b")), query(group_by="sender"))
    assert alone.groupings[0].label_field == "sender_name"


def test_a_source_that_declares_the_field_otherwise_is_left_out() -> None:
    sized = replace(MAILS.properties["size"], kind=ValueKind.NUMBER)
    declared = replace(MAILS, properties={**MAILS.properties, "size": sized})
    other = dataclasses.replace(mails(connection_id="cin_b"), declared=declared)
    sources, _, (warning,) = shared_figure((mails(), other), query("sum", field="size"))
    assert [source.connection_id for source in sources] == ["cin_a"]
    assert warning.detail == {"stream": "mails", "reason": "declared_otherwise"}


def test_where_none_can_take_part_the_first_says_why() -> None:
    with pytest.raises(PersonalServerError) as caught:
        shared_figure((mails("id"), notes()), query("sum", field="size"))
    assert caught.value.code == "field_not_granted"


@pytest.mark.parametrize("param", ["group_by", "then_by"])
def test_whoever_groups_by_a_time_is_offered_its_months(param: str) -> None:
    asked = {"group_by": "sent_at"} if param == "group_by" else {"group_by": "folder"}
    error = refusal(mails(), **{**asked, param: "sent_at"})
    by_month = {"group_by_time": "sent_at", "granularity": "month"}
    assert (error.param, error.members["recovery"]) == (param, {param: None, **by_month})


@pytest.mark.parametrize("param", ["group_by", "then_by"])
def test_whoever_groups_by_a_month_means_the_time_of_a_record(param: str) -> None:
    asked = {"group_by": "month"} if param == "group_by" else {"group_by": "folder", param: "month"}
    error = refusal(mails(), **asked)
    assert error.param == param
    time = {"group_by_time": "sent_at", "granularity": "month"}
    assert error.members["recovery"] == {param: None, **time}
    assert refusal(mails("id", "folder"), **asked).code == "unknown_field"
    assert refusal(mails(), **{**asked, param: "fortnight"}).code == "unknown_field"
    untimed = replace(MAILS, aggregations=Aggregations(True, group_by=("folder",)))
    assert refusal(dataclasses.replace(mails(), declared=untimed), **asked).code == "unknown_field"
