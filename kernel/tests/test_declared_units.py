"""In what the values of a field are, by its declaration, and which figures have a unit at all."""

from __future__ import annotations

import pytest

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.declaration import Property
from pdpp_kernel.declared_units import MAX_UNIT_CHARS, DeclaredUnit, is_in_unit, is_over_values
from pdpp_kernel.values import ValueKind

LONGEST = "k" * MAX_UNIT_CHARS


def of(
    declared: dict[str, object], kind: ValueKind | None = ValueKind.NUMBER
) -> DeclaredUnit | None:
    return DeclaredUnit.of(Property("weight", declared, kind))


@pytest.mark.parametrize(
    ("declared", "unit"),
    [
        ({"x_pdpp_unit": "kg"}, DeclaredUnit("kg", None)),
        ({"x_pdpp_unit": "m"}, DeclaredUnit("m", None)),
        ({"x_pdpp_unit": LONGEST}, DeclaredUnit(LONGEST, None)),
        ({"x_pdpp_unit": LONGEST + "k"}, None),
        ({"x_pdpp_unit": ""}, None),
        ({"x_pdpp_unit": 5}, None),
        ({"x_pdpp_unit": ["kg"]}, None),
        ({"x_pdpp_unit_field": "currency"}, DeclaredUnit(None, "currency")),
        ({"x_pdpp_unit_field": 5}, None),
        (
            {"x_pdpp_unit": "minor", "x_pdpp_unit_field": "currency"},
            DeclaredUnit("minor", "currency"),
        ),
        ({"x_pdpp_unit": 5, "x_pdpp_unit_field": "currency"}, DeclaredUnit(None, "currency")),
        ({"x_pdpp_unit": "", "x_pdpp_unit_field": "currency"}, DeclaredUnit(None, "currency")),
        ({}, None),
    ],
)
def test_a_number_has_the_unit_of_its_declaration(
    declared: dict[str, object], unit: DeclaredUnit | None
) -> None:
    assert of(declared) == unit


@pytest.mark.parametrize("kind", [None, ValueKind.STRING, ValueKind.DATE])
def test_what_is_no_number_has_none(kind: ValueKind | None) -> None:
    assert of({"x_pdpp_unit": "kg"}, kind) is None


@pytest.mark.parametrize(
    ("unit", "held", "shown"),
    [
        (DeclaredUnit("kg", None), None, "kg"),
        (DeclaredUnit("kg", None), "EUR", "kg"),
        (DeclaredUnit(None, "currency"), "EUR", "EUR"),
        (DeclaredUnit("minor", "currency"), "EUR", "EUR minor"),
        (DeclaredUnit("minor", "currency"), None, None),
        (DeclaredUnit("minor", "currency"), 978, None),
        (DeclaredUnit("minor", "currency"), "  ", None),
        (DeclaredUnit(None, "currency"), LONGEST, LONGEST),
        (DeclaredUnit(None, "currency"), LONGEST + "k", None),
    ],
)
def test_it_is_shown_with_what_the_record_holds(
    unit: DeclaredUnit, held: object, shown: str | None
) -> None:
    assert unit.named(held) == shown


def test_sums_means_and_percentiles_are_over_values_and_counts_have_no_unit() -> None:
    over = {metric for metric in Metric if is_over_values(metric)}
    percentiles = {metric for metric in Metric if metric.percent is not None}
    assert over == {Metric.SUM, Metric.AVG, *percentiles}
    without = {metric for metric in Metric if not is_in_unit(metric)}
    assert without == {Metric.COUNT, Metric.COUNT_DISTINCT}
