from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.aggregations import Granularity
from pdpp_kernel.values import NANOSECONDS, ValueKind, instant_ns
from personal_server.storage.calendar import Calendar

ZONES = ("UTC", "Europe/Rome", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu")
COARSE = [Granularity.DAY, Granularity.WEEK, Granularity.MONTH, Granularity.QUARTER]
INSTANTS = st.integers(-(10**9), 4 * 10**9).map(lambda seconds: seconds * NANOSECONDS)


def start(instant: str, granularity: Granularity, zone: str) -> int:
    point = instant_ns(instant)
    assert point is not None
    return Calendar(zone, granularity).start(point, ValueKind.INSTANT)


@pytest.mark.parametrize(
    ("instant", "granularity", "zone", "expected"),
    [
        ("2026-01-01T00:30:00Z", Granularity.HOUR, "Asia/Kathmandu", "2026-01-01T00:15:00Z"),
        ("2026-03-29T23:00:00Z", Granularity.DAY, "Europe/Rome", "2026-03-29T22:00:00Z"),
        ("2026-03-29T12:00:00Z", Granularity.DAY, "Europe/Rome", "2026-03-28T23:00:00Z"),
        ("2026-01-01T12:00:00Z", Granularity.WEEK, "UTC", "2025-12-29T00:00:00Z"),
        ("2026-05-31T23:30:00Z", Granularity.MONTH, "Europe/Rome", "2026-05-31T22:00:00Z"),
        ("2026-05-20T00:00:00Z", Granularity.QUARTER, "UTC", "2026-04-01T00:00:00Z"),
        ("2026-05-20T00:00:00Z", Granularity.YEAR, "UTC", "2026-01-01T00:00:00Z"),
        # the day whose midnight does not exist begins at 01:00 local time
        ("2018-11-04T12:00:00Z", Granularity.DAY, "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        # a shift by half an hour inside an hour begins a bucket of its own
        ("2026-04-04T15:10:00Z", Granularity.HOUR, "Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("2026-04-04T14:50:00Z", Granularity.HOUR, "Australia/Lord_Howe", "2026-04-04T14:00:00Z"),
        ("9999-12-31T23:59:59Z", Granularity.YEAR, "Europe/Rome", "9999-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", Granularity.WEEK, "Asia/Kathmandu", "0001-01-01T00:00:00Z"),
    ],
)
def test_buckets_start_where_the_zone_says(
    instant: str, granularity: Granularity, zone: str, expected: str
) -> None:
    assert start(instant, granularity, zone) == instant_ns(expected)


@given(INSTANTS, st.sampled_from(ZONES), st.sampled_from(list(Granularity)))
def test_a_bucket_holds_its_instants_and_starts_itself(
    point: int, zone: str, granularity: Granularity
) -> None:
    calendar = Calendar(zone, granularity)
    begun = calendar.start(point, ValueKind.INSTANT)
    assert begun <= point
    assert calendar.start(begun, ValueKind.INSTANT) == begun


@given(INSTANTS, st.sampled_from(ZONES), st.sampled_from(COARSE))
def test_a_coarse_bucket_ends_where_the_next_starts(
    point: int, zone: str, granularity: Granularity
) -> None:
    calendar = Calendar(zone, granularity)
    end = calendar.day_end(calendar.local_day(point))
    assert point < end
    assert calendar.start(end, ValueKind.INSTANT) == end
    assert calendar.start(end - 1, ValueKind.INSTANT) == calendar.start(point, ValueKind.INSTANT)


@given(INSTANTS, st.sampled_from(ZONES))
def test_a_period_has_one_offset(point: int, zone: str) -> None:
    calendar = Calendar(zone, Granularity.HOUR)
    since, until = calendar.period(point)
    assert since <= point < until
    assert calendar.offset_ns(max(since, -(10**18))) == calendar.offset_ns(point)
    assert calendar.offset_ns(min(until, 10**19) - 1) == calendar.offset_ns(point)


@given(INSTANTS, st.sampled_from(ZONES))
def test_days_are_those_of_the_calendar(point: int, zone: str) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=point // NANOSECONDS)
    local = moment.astimezone(ZoneInfo(zone))
    begun = Calendar(zone, Granularity.DAY).start(point, ValueKind.INSTANT)
    begun_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=begun // NANOSECONDS)
    assert begun_at.astimezone(ZoneInfo(zone)).date() == local.date()
