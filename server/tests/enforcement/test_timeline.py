"""Which field dates the records of a source, and what a range of time leaves."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.queries import ALWAYS, Times
from personal_server.enforcement.timeline import list_conditions, ranged_time, time_field
from server.tests.enforcement.mailbox import MAILS, mails, notes


def dated(**members: Any) -> ReadableSource:
    return dataclasses.replace(mails(), declared=replace(MAILS, **members))


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


@pytest.mark.parametrize(("times", "param"), [(Times(5), "since"), (Times(None, 5), "until")])
def test_a_range_of_records_without_time_is_refused(times: Times, param: str) -> None:
    assert list_conditions((notes(),), ALWAYS) == ()
    with pytest.raises(PersonalServerError) as caught:
        list_conditions((notes(),), times)
    assert (caught.value.code, caught.value.param) == ("invalid_request", param)
    assert len(list_conditions((mails(),), times)) == 1


def test_a_range_says_of_which_time_it_is_where_the_records_tell_several() -> None:
    assert ranged_time((mails(),), Times(5)) == "sent_at"
    assert ranged_time((mails(),), ALWAYS) is None
    assert ranged_time((mails("id", "sent_at"),), Times(5)) is None
    lasting = {**MAILS.properties, "due": replace(MAILS.properties["due"], role="event-end")}
    until_due = dataclasses.replace(
        mails("id", "sent_at", "due"), declared=replace(MAILS, properties=lasting)
    )
    assert ranged_time((until_due,), Times(5)) is None
