"""Days of a zone, where clocks change and where a day was left out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.local_days import local_days

DAY = 86_400 * 10**9


def ns(text: str) -> int:
    found = instant_ns(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("UTC", "2026-03-08", "2026-03-08T00:00:00Z"),
        ("America/Los_Angeles", "2026-03-08", "2026-03-08T08:00:00Z"),
        ("America/Los_Angeles", "2026-03-09", "2026-03-09T07:00:00Z"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"),
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"),
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z"),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"),
    ],
)
def test_a_day_begins_at_its_first_instant(zone: str, day: str, start: str) -> None:
    number = ns(f"{day}T00:00:00Z") // DAY
    days = local_days(zone)
    assert days.start(number) == ns(start)
    assert days.day_of(ns(start)) == number
    assert days.day_from(ns(start)) == number
    assert days.day_of(ns(start) - 1) == number - 1
    assert days.day_from(ns(start) + 1) == number + 1


def test_a_day_that_a_zone_left_out_is_over_before_it_begins() -> None:
    days, left_out = local_days("Pacific/Apia"), ns("2011-12-30T00:00:00Z") // DAY
    assert days.start(left_out) == days.start(left_out + 1) - 1
    assert days.local(days.start(left_out + 1)).isoformat() == "2011-12-31T00:00:00+14:00"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-11-01T01:30", "2026-11-01T08:30:00Z", "2026-11-01T09:30:00Z"),
        ("2026-03-08T02:30", "2026-03-08T09:30:00Z", "2026-03-08T10:30:00Z"),
        ("2026-06-01 12:00:05.5", "2026-06-01T19:00:05.5Z", "2026-06-01T19:00:05.5Z"),
    ],
)
def test_a_clock_time_that_comes_twice_is_the_first_or_the_last(
    text: str, first: str, last: str
) -> None:
    days = local_days("America/Los_Angeles")
    assert days.instant(text) == ns(first)
    assert days.instant(text, last=True) == ns(last)


@pytest.mark.parametrize(
    ("text", "year"),
    [("0001-06-01", 2), ("0002-01-02", 2), ("9998-12-30", 9998), ("9999-06-01", 9998)],
)
def test_at_the_ends_of_the_calendar_clocks_say_the_last_year_that_is_whole(
    text: str, year: int
) -> None:
    told = local_days("Pacific/Apia").local(ns(f"{text}T00:00:00Z"))
    assert told.year == year


@pytest.mark.parametrize("text", ["2026-06-01", "12:00", "2026-06-31T12:00", "0001-01-01T00:00"])
def test_what_is_no_clock_time_has_no_instant(text: str) -> None:
    assert local_days("Pacific/Apia").instant(text) is None


def test_days_at_the_ends_of_the_calendar_have_a_start() -> None:
    days = local_days("Pacific/Apia")
    for text in ("0001-01-01", "9999-12-31"):
        number = ns(f"{text}T00:00:00Z") // DAY
        assert days.start(number) < days.start(number + 1)
        assert days.day_of(days.start(number)) == number
        assert days.day_from(days.start(number) + 1) == number + 1
    latest = days.local(ns("9999-12-31T23:59:59Z"))
    assert latest.astimezone(UTC) <= datetime.max.replace(tzinfo=UTC)
