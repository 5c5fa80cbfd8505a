"""Times as a caller names them, and the records that lie in a range of them."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.asked_times import (
    check_zone,
    conditions_in,
    moment_of,
    order_in_time,
    range_on,
    time_zones,
    times_in,
    whole_days,
)
from personal_server.enforcement.queries import ALWAYS, Times
from personal_server.storage.row_rules import holds
from server.tests.enforcement.mailbox import MAILS, mails

DAY = DAY_NANOSECONDS
HOUR = 3_600 * 10**9
WEST = "America/Los_Angeles"


def lasting(*fields: str) -> ReadableSource:
    """Mails that last until `read_at`, perhaps whole days."""
    ends = Property("read_at", {}, ValueKind.INSTANT, role="event-end")
    flag = Property("unread", {}, ValueKind.BOOLEAN, role="whole-days")
    properties = {**MAILS.properties, "read_at": ends, "unread": flag}
    ranges = {**MAILS.range_filters, "read_at": ("gte",)}
    declared = replace(MAILS, properties=properties, range_filters=ranges)
    return (
        dataclasses.replace(mails(*fields), declared=declared)
        if fields
        else dataclasses.replace(mails(), declared=declared, fields=(*mails().fields, "read_at"))
    )


def found(source: ReadableSource, times: Times, **data: object) -> bool:
    conditions = conditions_in(times, source.declared.properties["sent_at"], (source,))
    return all(holds(each, data) for each in conditions)


def test_time_zones_have_their_names() -> None:
    assert {"Europe/Rome", "UTC"} <= time_zones()
    check_zone("Europe/Rome")
    for name in ("Mars/Base", "../UTC", ""):
        with pytest.raises(PersonalServerError) as caught:
            check_zone(name)
        assert (caught.value.code, caught.value.param) == ("invalid_request", "time_zone")


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("1970-01-02", None, DAY),
        ("1970-01-02", WEST, DAY + 8 * HOUR),
        ("1970-01-02T01:00:00+01:00", WEST, DAY),
        ("1970-01-02T01:00", WEST, DAY + 9 * HOUR),
        ("1970-01-02 01:00:00", WEST, DAY + 9 * HOUR),
        ("1970-01-02T01:00", None, None),
        ("1970-01", WEST, None),
        ("1970-13-01", WEST, None),
    ],
)
def test_a_time_without_an_offset_is_one_of_the_zone(
    text: str, zone: str | None, instant: int | None
) -> None:
    assert moment_of(text, zone) == instant


def test_a_range_has_its_days_in_the_zone() -> None:
    days = {"since": "1970-01-02", "until": "1970-01-03"}
    assert times_in(days, WEST) == Times(DAY + 8 * HOUR, 2 * DAY + 8 * HOUR, 1, 2)
    assert times_in(days, None) == Times(DAY, 2 * DAY, 1, 2)
    clocks = {"since": "1970-01-02T09:00", "until": "1970-01-02T10:00"}
    assert times_in(clocks, WEST) == Times(DAY + 17 * HOUR, DAY + 18 * HOUR, 1, 2)
    instants = {"since": "1970-01-02T09:00:00Z", "until": "1970-01-02T10:00:00Z"}
    assert times_in(instants, None) == Times(DAY + 9 * HOUR, DAY + 10 * HOUR, 1, 2)
    midnights = {"since": "1970-01-02T00:00:00Z", "until": "1970-01-03T00:00:00Z"}
    assert times_in(midnights, None) == Times(DAY, 2 * DAY, 1, 2)
    with pytest.raises(PersonalServerError) as caught:
        times_in(clocks, None)
    assert (caught.value.code, caught.value.param) == ("invalid_request", "since")


def test_what_lasts_lies_in_a_range_that_it_overlaps() -> None:
    tenth = Times(9 * DAY, 10 * DAY)
    third, ninth, twelfth = "1970-01-03T12:00:00Z", "1970-01-10T00:00:00Z", "1970-01-12T12:00:00Z"
    assert found(lasting(), tenth, sent_at=third, read_at=twelfth)
    assert found(lasting(), tenth, sent_at="1970-01-10T12:00:00Z", read_at=None)
    assert not found(lasting(), tenth, sent_at=third, read_at=ninth)
    assert not found(lasting(), tenth, sent_at=third)
    assert not found(lasting(), tenth, sent_at=twelfth, read_at=twelfth)
    hidden = dataclasses.replace(lasting(), fields=("id", "sent_at"))
    assert not found(hidden, tenth, sent_at=third, read_at=twelfth)


def test_a_whole_day_is_a_day_of_the_zone_and_no_midnight() -> None:
    midnight = {"sent_at": "1970-01-02T00:00:00Z", "read_at": "1970-01-03T00:00:00Z"}
    for zone in (None, WEST, "Pacific/Apia"):
        for day, is_there in (("01", False), ("02", True), ("03", False)):
            asked = {"since": f"1970-01-{day}", "until": f"1970-01-{int(day) + 1:02}"}
            times = times_in(asked, zone)
            assert found(lasting(), times, unread=True, **midnight) is is_there, (zone, day)
    evening = times_in({"since": "1970-01-02T18:00", "until": "1970-01-02T19:00"}, WEST)
    assert found(lasting(), evening, unread=True, **midnight)
    assert not found(lasting(), evening, unread=False, **midnight)
    assert not found(lasting(), evening, **midnight)


@pytest.mark.parametrize(
    ("zone", "sent_at", "is_there"),
    [
        (WEST, "1970-01-02T07:59:59Z", False),
        (WEST, "1970-01-02T08:00:00Z", True),
        (WEST, "1970-01-03T07:59:59Z", True),
        (WEST, "1970-01-03T08:00:00Z", False),
        ("Asia/Tokyo", "1970-01-01T14:59:59Z", False),
        ("Asia/Tokyo", "1970-01-01T15:00:00Z", True),
        ("Asia/Tokyo", "1970-01-02T14:59:59Z", True),
        ("Asia/Tokyo", "1970-01-02T15:00:00Z", False),
    ],
)
def test_what_does_not_last_days_lies_in_the_day_of_the_zone(
    zone: str, sent_at: str, *, is_there: bool
) -> None:
    times = times_in({"since": "1970-01-02", "until": "1970-01-03"}, zone)
    sources = lasting("id", "sent_at", "unread"), lasting()
    for source in sources:
        assert found(source, times, sent_at=sent_at, unread=False) is is_there
        assert found(source, times, sent_at="1970-01-02T00:00:00Z", unread=True)


@pytest.mark.parametrize(("last", "instant"), [({}, 8), ({"last": False}, 8), ({"last": True}, 9)])
def test_a_time_that_comes_twice_is_the_first_unless_told_otherwise(
    last: dict[str, bool], instant: int
) -> None:
    begun = moment_of("2026-11-01T00:00:00Z", None)
    assert begun is not None
    assert moment_of("2026-11-01T01:30", WEST, **last) == begun + instant * HOUR + HOUR // 2


@pytest.mark.parametrize(
    ("operator", "text", "days"),
    [
        ("gte", "1970-01-02", {2, 3}),
        ("gt", "1970-01-02", {3}),
        ("lte", "1970-01-02", {1, 2}),
        ("lt", "1970-01-02", {1}),
        ("gte", "1970-01-02T00:00", {2, 3}),
        ("gte", "1970-01-02T01:00", {3}),
        ("lt", "1970-01-02T01:00", {1, 2}),
        ("lte", "1970-01-02T00:00", {1, 2}),
        ("gt", "1970-01-02T00:00", {3}),
    ],
)
def test_a_filter_compares_whole_days_as_they_begin_in_the_zone(
    operator: str, text: str, days: set[int]
) -> None:
    field, sources = lasting().declared.properties["sent_at"], (lasting(),)
    condition = range_on(field, Operator(operator), text, WEST, sources)
    assert condition is not None
    held = {
        day
        for day in (1, 2, 3)
        if holds(condition, {"sent_at": f"1970-01-0{day}T00:00:00Z", "unread": True})
    }
    assert held == days
    assert set(condition.fields) == {"sent_at", "unread"}


def test_nobody_is_told_which_records_are_days_who_may_not_see_it() -> None:
    field, hidden = lasting().declared.properties["sent_at"], (lasting("id", "sent_at"),)
    asked = range_on(field, Operator.GTE, "1970-01-02", WEST, hidden)
    assert asked == Condition("sent_at", ValueKind.INSTANT, Operator.GTE, DAY + 8 * HOUR)
    assert range_on(field, Operator.GTE, "no day", WEST, hidden) is None
    assert whole_days(field, hidden, WEST) is None
    assert whole_days(field, (lasting(),), None) is None
    assert whole_days(field, (lasting(),), WEST) == ("unread", WEST)


def test_dates_and_whole_days_stand_in_an_order_of_time_where_they_begin() -> None:
    due = order_in_time(mails(), MAILS.properties["due"], WEST, descending=True)
    assert (due.field, due.descending, due.days) == ("due", True, ("", WEST))
    plain = order_in_time(mails(), MAILS.properties["due"], None, descending=False)
    assert plain.days is None


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
    ("times", "bounds"),
    [
        (Times(DAY), [("gte", 1)]),
        (Times(DAY + 1), [("gte", 1)]),
        (Times(-1), [("gte", -1)]),
        (Times(None, DAY), [("lt", 1)]),
        (Times(None, DAY + 1), [("lt", 2)]),
        (Times(5, 9, 4, 7), [("gte", 4), ("lt", 7)]),
    ],
)
def test_what_is_dated_by_a_day_lies_in_a_range_that_its_day_touches(
    times: Times, bounds: list[tuple[str, int]]
) -> None:
    found = conditions_in(times, MAILS.properties["due"])
    assert [(each.operator.value, each.value) for each in found] == bounds
    assert {each.kind for each in found} == {ValueKind.DATE}


def test_what_holds_no_single_value_has_no_range() -> None:
    assert conditions_in(Times(5), MAILS.properties["tags"]) == ()
