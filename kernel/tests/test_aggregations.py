"""What an aggregate computes, and by what it groups."""

from __future__ import annotations

import pytest

from pdpp_kernel.aggregations import (
    FIGURE_WORDS,
    FIGURES_OF_FIELDS,
    DeclaredGrouping,
    Granularity,
    Metric,
)
from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_kernel.values import NUMBERS, SCALARS, TIMES

DECLARED = ("count", "sum", "min", "max", "count_distinct")


@pytest.mark.parametrize(
    ("metric", "percent"),
    [("median", 50), ("p10", 10), ("p25", 25), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99)],
)
def test_a_percentile_says_which(metric: str, percent: int) -> None:
    assert Metric(metric).percent == percent


@pytest.mark.parametrize("metric", [*DECLARED, "avg"])
def test_other_metrics_are_no_percentile(metric: str) -> None:
    assert Metric(metric).percent is None


@pytest.mark.parametrize("metric", Metric)
def test_a_source_declares_the_metrics_that_every_server_has(metric: Metric) -> None:
    assert metric.is_declared == (metric.value in DECLARED)
    assert (metric.capability is ReadCapability.AGGREGATE_METRICS) != metric.is_declared
    assert metric.takes_field == (metric.value != "count")


def test_a_metric_has_the_kinds_that_it_can_be_computed_of() -> None:
    kinds = {each.value: each.kinds for each in Metric}
    assert (kinds["sum"], kinds["max"], kinds["count_distinct"], kinds["p90"]) == (
        NUMBERS,
        NUMBERS | TIMES,
        SCALARS,
        NUMBERS,
    )
    assert (DeclaredGrouping.BY_VALUE.kinds, DeclaredGrouping.BY_TIME.kinds) == (SCALARS, TIMES)


@pytest.mark.parametrize("granularity", Granularity)
def test_hours_of_the_day_and_weekdays_come_round_again(granularity: Granularity) -> None:
    is_cyclic = granularity.value in ("hour_of_day", "weekday")
    needed = ReadCapability.AGGREGATE_GROUPS if is_cyclic else None
    assert (granularity.is_cyclic, granularity.capability) == (is_cyclic, needed)


def test_days_have_no_parts() -> None:
    finer = {each.value for each in Granularity if each.kinds != TIMES}
    assert finer == {"minute", "hour", "hour_of_day"}


@pytest.mark.parametrize(
    ("granularity", "label"),
    [("minute", "2026-01-31T09:00"), ("hour", "2026-01-31T09:00"), ("week", "2026-01-31")],
)
def test_a_bucket_is_named_by_the_local_time_it_begins(granularity: str, label: str) -> None:
    chars = Granularity(granularity).label_chars
    assert "2026-01-31T09:00:00"[:chars] == label


def test_a_declaration_lists_fields_for_metrics_and_groupings() -> None:
    assert {each.value for each in FIGURES_OF_FIELDS} == set(FIGURE_WORDS)
    assert FIGURE_WORDS == ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")
