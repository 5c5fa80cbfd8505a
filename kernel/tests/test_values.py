"""Which values are equal, in which order, and how they are written."""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction

import pytest

from pdpp_kernel.values import (
    DAY_NANOSECONDS,
    MAX_INTEGER,
    NANOSECONDS,
    Comparable,
    ValueKind,
    bound,
    comparable,
    day_number,
    event_instant_ns,
    exact_number,
    exact_sum,
    instant_ns,
    instant_or_day_ns,
    instant_text,
    order_key,
    percent_of,
    render_day,
    render_instant,
    render_number,
    render_sum,
    without_nul,
)

NOON = 1_767_268_800 * NANOSECONDS  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59Z", -NANOSECONDS),
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01t12:00:00z", NOON),
        ("2026-01-01 13:30:00+01:30", NOON),
        ("2026-01-01T04:00:00-08:00", NOON),
        ("2026-01-01T12:00:00.5Z", NOON + 500_000_000),
        ("2026-01-01T12:00:00.000000001Z", NOON + 1),
        ("2026-01-01T12:00:00.0000000019Z", NOON + 1),
        ("2016-12-31T23:59:60Z", 1_483_228_800 * NANOSECONDS),
        ("2025-12-31T23:59:60.25Z", 1_767_225_600 * NANOSECONDS + 250_000_000),
    ],
)
def test_an_instant_is_nanoseconds_since_1970(text: str, ns: int) -> None:
    assert instant_ns(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01T12:00:00",
        "2026-01-01T12:00Z",
        "2026-13-01T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T12:00:00Z\n",
        "2026-01-01T12:00:00.Z",
        "at 2026-01-01T12:00:00Z",
    ],
)
def test_other_texts_are_no_instant(text: str) -> None:
    assert instant_ns(text) is None


@pytest.mark.parametrize(
    ("text", "day"), [("1970-01-01", 0), ("1969-12-31", -1), ("2024-02-29", 19_782)]
)
def test_a_day_is_counted_from_1970_and_written_back(text: str, day: int) -> None:
    assert day_number(text) == day
    assert render_day(day) == text


@pytest.mark.parametrize("text", ["2025-02-29", "2026-1-1", "20260101", "2026-01-01Z", ""])
def test_other_texts_are_no_day(text: str) -> None:
    assert day_number(text) is None


def test_a_day_stands_for_its_start() -> None:
    assert instant_or_day_ns("1970-01-02") == DAY_NANOSECONDS
    assert instant_or_day_ns("2026-01-01T12:00:00Z") == NOON
    assert instant_or_day_ns("soon") is None


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (ValueKind.STRING, "a", "a"),
        (ValueKind.STRING, "a\0b", "a\ufffdb"),
        (ValueKind.STRING, 1, None),
        (ValueKind.BOOLEAN, True, True),
        (ValueKind.BOOLEAN, 1, None),
        (ValueKind.INTEGER, 3, 3),
        (ValueKind.INTEGER, 3.0, 3),
        (ValueKind.INTEGER, 3.5, 3.5),
        (ValueKind.INTEGER, True, None),
        (ValueKind.INTEGER, "3", None),
        (ValueKind.NUMBER, 3.5, 3.5),
        (ValueKind.NUMBER, 3, 3),
        (ValueKind.NUMBER, False, None),
        (ValueKind.DATE, "1970-01-03", 2),
        (ValueKind.DATE, "1970-01-03T00:00:00Z", None),
        (ValueKind.INSTANT, "1970-01-01T00:00:01Z", NANOSECONDS),
        (ValueKind.INSTANT, 5, None),
        (ValueKind.STRING, None, None),
    ],
)
def test_a_value_of_its_kind_can_be_compared(
    kind: ValueKind, value: object, found: Comparable | None
) -> None:
    assert comparable(value, kind) == found
    assert type(comparable(value, kind)) is type(found)


@pytest.mark.parametrize("kind", [ValueKind.INTEGER, ValueKind.NUMBER])
def test_zero_has_no_sign(kind: ValueKind) -> None:
    assert str(comparable(-0.0, kind)) in ("0", "0.0")


def test_a_text_without_nul_stays_as_it_is() -> None:
    assert without_nul("rain") == "rain"


def test_order_looks_at_the_first_256_code_points() -> None:
    assert order_key("ä" * 300) == "ä" * 256
    assert order_key(300) == 300


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, "a", 1.5, True, None])
def test_what_a_database_holds_is_compared_as_it_is(value: Comparable | None) -> None:
    assert bound(value) is value


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_wider_integers_are_compared_as_doubles(value: int) -> None:
    assert bound(value) == float(value)
    assert isinstance(bound(value), float)


@pytest.mark.parametrize(
    ("value", "kind", "ns"),
    [
        ("1970-01-02", ValueKind.DATE, DAY_NANOSECONDS),
        ("1970-01-01T00:00:02Z", ValueKind.INSTANT, 2 * NANOSECONDS),
        (7, ValueKind.INTEGER, 7),
        (True, ValueKind.BOOLEAN, None),
        ("text", ValueKind.STRING, None),
        (None, ValueKind.INSTANT, None),
    ],
)
def test_a_consent_time_is_an_instant_and_a_day_its_start(
    value: object, kind: ValueKind, ns: int | None
) -> None:
    assert event_instant_ns(value, kind) == ns


@pytest.mark.parametrize(
    ("ns", "in_milliseconds", "exactly"),
    [
        (0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"),
        (1_999_999, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.001999999Z"),
        (-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999999999Z"),
        (NOON + 500_000_000, "2026-01-01T12:00:00.500Z", "2026-01-01T12:00:00.5Z"),
        (-33_765_897_600_000_000_000, "0900-01-01T00:00:00.000Z", "0900-01-01T00:00:00Z"),
    ],
)
def test_instants_are_written_in_milliseconds_and_bounds_exactly(
    ns: int, in_milliseconds: str, exactly: str
) -> None:
    assert render_instant(ns) == in_milliseconds
    assert instant_text(ns) == exactly
    assert instant_ns(exactly) == ns


def test_decimals_add_up_without_rounding() -> None:
    numbers = [Decimal("1e308"), Decimal("1e-300"), Decimal("-1e308")]
    assert exact_sum(numbers) == Decimal("1e-300")
    assert exact_sum([]) == 0


def test_a_number_is_the_decimal_that_was_written() -> None:
    assert exact_number(0.1) == Fraction(1, 10)
    assert exact_number(7) == 7


@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [
        (0, 10, 0),
        (1, 3, 33),
        (95, 97, 97),
        (10, 10, 99),
        (11, 10, 99),
        (-1, 10, 0),
        (0, 0, 0),
        (1, 0, 99),
    ],
)
def test_percent_are_whole_and_a_hundred_is_never_told(done: int, total: int, percent: int) -> None:
    assert percent_of(done, total) == percent


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("7", 7),
        ("-7", -7),
        ("0.5", 0.5),
        (str(MAX_INTEGER), MAX_INTEGER),
        (str(-MAX_INTEGER), -MAX_INTEGER),
        (str(MAX_INTEGER + 1), 2.0**63),
        ("1e400", sys.float_info.max),
        ("-1e400", -sys.float_info.max),
    ],
)
def test_figures_are_integers_where_they_can_be_and_else_the_nearest_double(
    value: str, sent: float
) -> None:
    for rendered in (render_number(Fraction(value)), render_sum(Decimal(value))):
        assert rendered == sent
        assert type(rendered) is type(sent)
