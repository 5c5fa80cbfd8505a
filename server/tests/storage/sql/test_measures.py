"""Measures of a group, from the columns that a database counts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql import measures
from personal_server.storage.sql.group_figures import Figures
from personal_server.storage.sqlite.dialect import SqliteDialect
from tests.new_files import new_file

DIALECT = SqliteDialect()


def absorbed(metric: Metric, *lines: tuple[int, list[Any]]) -> Figures:
    figures = Figures()
    for count, values in lines:
        measures.absorb(figures, metric, count, values)
    return figures


@pytest.mark.parametrize("metric", [Metric.SUM, Metric.AVG])
def test_a_sum_comes_in_halves_or_in_ten_thousandths(metric: Metric) -> None:
    halves = absorbed(metric, (3, [2, 1, 5]), (4, [1, None, None]), (1, [0, -1, 7]))
    assert (halves.count, halves.present, halves.total) == (8, 3, Decimal(5 + 7))
    parts = absorbed(metric, (2, [2, 12_345]), (1, [0, None]), (0, []))
    assert (parts.count, parts.present, parts.total) == (3, 2, Decimal("1.2345"))


def test_of_extremes_the_further_one_stays() -> None:
    lines: tuple[tuple[int, list[Any]], ...] = ((1, [3]), (2, [None]), (3, [-4]), (4, [0]), (5, []))
    least, most = (absorbed(metric, *lines) for metric in (Metric.MIN, Metric.MAX))
    assert (least.extreme, most.extreme, least.count, most.count) == (-4, 3, 15, 15)
    assert absorbed(Metric.MAX, (1, [None])).extreme is None
    assert (least.present, least.total) == (0, 0)


def test_a_count_is_a_count() -> None:
    counted = absorbed(Metric.COUNT, (2, []), (3, [7]))
    assert counted == Figures(count=5)
    assert measures.measured(Metric.COUNT, "v", ValueKind.INTEGER, DIALECT) == ""
    assert measures.measured(Metric.MIN, "v", ValueKind.INTEGER, DIALECT) == ", min(v)"
    assert measures.measured(Metric.MAX, "v", ValueKind.INTEGER, DIALECT) == ", max(v)"


NUMBERS = [0.1, 0.2, None, -0.0001, 99_999_999.5, -99_999_999.5, 3.0]
ODD = [1e8, -1e8, 0.00001, 1e300]


def test_a_database_sums_what_is_whole_in_ten_thousandths(tmp_path: Any) -> None:
    database = new_file(tmp_path / "records.db")
    columns = measures.measured(Metric.SUM, "v", ValueKind.NUMBER, DIALECT)
    left_out = measures.unscaled("v", ValueKind.NUMBER, DIALECT)
    values = ", ".join("(NULL)" if n is None else f"({n!r})" for n in [*NUMBERS, *ODD])
    table = f"(SELECT column1 AS v FROM (VALUES {values}))"  # noqa: S608
    with database.read() as session:
        (count, *line) = session.rows(f"SELECT count(*){columns} FROM {table}")[0]  # noqa: S608
        odd = session.rows(f"SELECT v FROM {table} WHERE {left_out}")  # noqa: S608
    database.close()
    figures = absorbed(Metric.SUM, (count, line))
    assert (figures.count, figures.present) == (11, 10)
    assert figures.total == Decimal("3.2999")
    assert [value for (value,) in odd] == ODD
    assert measures.unscaled("v", ValueKind.INTEGER, DIALECT) is None
