"""What is known of a group: sums, averages, ranks and the middle, all exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from personal_server.storage.sql.group_figures import Figures


def of(*numbers: float) -> Figures:
    figures = Figures()
    for number in numbers:
        figures.note(number, 1)
    return figures


def test_nothing_is_known_of_an_empty_group() -> None:
    empty = Figures()
    assert (empty.count, empty.value_count, empty.average) == (0, 0, None)
    assert (empty.median, empty.percentile(50)) == (None, None)


def test_values_are_counted_and_those_of_a_sum_go_first() -> None:
    figures = Figures()
    figures.note("calm", 2)
    figures.note("glad", 1)
    figures.note("calm", 3)
    assert (figures.values, figures.value_count) == ({"calm": 5, "glad": 1}, 6)
    figures.present = 2
    assert figures.value_count == 2


def test_a_sum_is_shared_by_those_that_have_a_value() -> None:
    figures = Figures(count=9, present=3)
    figures.add(Decimal("0.1"))
    figures.add(Decimal("0.2"))
    assert (figures.total, figures.average) == (Decimal("0.3"), Fraction(1, 10))


@pytest.mark.parametrize(
    ("numbers", "middle"),
    [((3,), 3), ((1, 2), Fraction(3, 2)), ((5, 1, 9), 5), ((1, 9, 4, 5), Fraction(9, 2))],
)
def test_the_middle(numbers: tuple[float, ...], middle: Fraction) -> None:
    assert of(*numbers).median == middle


def test_decimals_are_those_that_were_written() -> None:
    assert of(0.1, 0.2).median == Fraction(3, 20)


@pytest.mark.parametrize(
    ("percent", "number"), [(1, 1), (10, 1), (11, 2), (50, 5), (90, 9), (91, 10), (100, 10)]
)
def test_a_percentile_is_the_least_that_so_many_do_not_exceed(percent: int, number: int) -> None:
    assert of(*range(10, 0, -1)).percentile(percent) == number
