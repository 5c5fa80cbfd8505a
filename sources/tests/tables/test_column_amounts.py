import pytest

from pdpp_sources.tables.column_amounts import (
    amount_forms,
    amount_value,
    currency_of,
    says_point,
)


@pytest.mark.parametrize(
    ("cell", "form", "value"),
    [
        ("1'978.42", "1 234.5", 1978.42),
        ("1’978’000", "1 234.5", 1978000),
        ("1 234,56", "1 234,5", 1234.56),
        ("1\u202f234,56\u00a0€", "1 234,5", 1234.56),
        ("1 234.5", "1 234.5", 1234.5),
        ("-1.234,56 EUR", "1.234,5", -1234.56),
        ("\u221212,50", "1.234,5", -12.5),
        ("(1,234.50)", "1,234.5", -1234.5),
        ("($12.00)", "1,234.5", -12),
        ("-$12.00", "1,234.5", -12),
        ("$-12.00", "1,234.5", -12),
        ("12.50-", "1,234.5", -12.5),
        ("CHF 1'000.00", "1 234.5", 1000),
        ("1,23,456.78", "1,234.5", 123456.78),
        ("₹1,23,456", "1,234.5", 123456),
        (".50", "1,234.5", 0.5),
        ("R$ 1.234,50", "1.234,5", 1234.5),
        ("199,00 kr", "1.234,5", 199),
        ("+12,50", "1.234,5", 12.5),
        ("€(63.12)", "1,234.5", -63.12),
        ("$+1500", "1,234.5", 1500),
    ],
)
def test_a_cell_is_a_number_in_one_way_of_writing_it(cell: str, form: str, value: float) -> None:
    assert form in amount_forms(cell)
    assert amount_value(cell, form) == value


@pytest.mark.parametrize("cell", ["12 Main St", "1-2", "1,2,3", "12%", "ABC 12", "1 23 4", "-", ""])
def test_other_cells_are_no_numbers(cell: str) -> None:
    assert not amount_forms(cell)


def test_the_currency_of_a_cell() -> None:
    assert [currency_of(cell) for cell in ("12 EUR", "$12", "12")] == ["EUR", "$", None]


@pytest.mark.parametrize(
    ("cell", "point"),
    [
        ("1,25", ","),
        ("1.5", "."),
        ("1.234", None),
        ("1,234", None),
        ("0.125", "."),
        ("0,125", ","),
        ("1.234,5", ","),
        ("1,234.50", "."),
        ("1.234.567", ","),
        ("12", None),
        ("1234.567", "."),
    ],
)
def test_a_cell_tells_its_decimal_sign_or_does_not(cell: str, point: str | None) -> None:
    assert says_point(cell) == point
