"""Which field dates the records of a source, and what a range of time leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.queries import ALWAYS, Times
from personal_server.enforcement.timeline import (
    conditions_in,
    list_conditions,
    time_field,
    without_time,
)
from server.tests.enforcement.mailbox import MAILS, mails, notes


def dated(**members: Any) -> ReadableSource:
    return replace(mails(), declared=replace(MAILS, **members))


def name_of(*sources: ReadableSource) -> str | None:
    found = time_field(*sources)
    return None if found is None else found.name


def test_the_event_time_dates_a_record_where_every_source_grants_it() -> None:
    assert name_of(mails()) == "sent_at"
    assert name_of(mails(), mails("id")) is None
    assert name_of(mails("id", "due")) is None
    assert name_of(notes()) is None


def test_else_the_consent_time_does() -> None:
    by_day = dated(consent_time_field="due", cursor_field="due", range_filters={})
    assert name_of(by_day) == "due"


def test_what_is_no_time_dates_nothing() -> None:
    sized = {**MAILS.properties, "sent_at": Property("sent_at", {}, ValueKind.INTEGER)}
    assert name_of(dated(properties=sized)) is None


@pytest.mark.parametrize(
    ("times", "bounds"),
    [
        (ALWAYS, []),
        (Times(5, None), [("gte", 5)]),
        (Times(None, 0), [("lt", 0)]),
        (Times(0, 9), [("gte", 0), ("lt", 9)]),
    ],
)
def test_a_range_begins_with_since_and_ends_before_until(
    times: Times, bounds: list[tuple[str, int]]
) -> None:
    found = conditions_in(times, MAILS.properties["sent_at"])
    assert [(each.operator.value, each.value) for each in found] == bounds
    assert {each.field for each in found} <= {"sent_at"}


@pytest.mark.parametrize(
    ("ns", "day"), [(0, 0), (1, 1), (DAY_NANOSECONDS, 1), (DAY_NANOSECONDS + 1, 2), (-1, 0)]
)
def test_a_day_counts_as_its_start(ns: int, day: int) -> None:
    (found,) = conditions_in(Times(ns), MAILS.properties["due"])
    assert (found.value, found.kind) == (day, ValueKind.DATE)


def test_what_holds_no_single_value_has_no_range() -> None:
    assert conditions_in(Times(5), MAILS.properties["tags"]) == ()


@pytest.mark.parametrize(("times", "param"), [(Times(5), "since"), (Times(None, 5), "until")])
def test_a_range_of_records_without_time_is_refused(times: Times, param: str) -> None:
    assert list_conditions((notes(),), ALWAYS) == ()
    with pytest.raises(PersonalServerError) as caught:
        list_conditions((notes(),), times)
    assert (caught.value.code, caught.value.param) == ("invalid_request", param)
    assert len(list_conditions((mails(),), times)) == 1


def test_named_streams_without_time_are_told_each_and_others_together() -> None:
    timeless = [notes(), notes(connection_id="cin_b"), mails("id")]
    each = without_time(iter(timeless), ("notes",))
    assert [(warning.connection_id, warning.detail) for warning in each] == [
        ("cin_a", {"stream": "notes", "reason": "no_event_time"}),
        ("cin_b", {"stream": "notes", "reason": "no_event_time"}),
        ("cin_a", {"stream": "mails", "reason": "no_event_time"}),
    ]
    (together,) = without_time(iter(timeless), ())
    assert together.code == "source_skipped_not_applicable"
    assert together.detail == {"streams": ["mails", "notes"], "reason": "no_event_time"}
    assert without_time([], ()) == []
