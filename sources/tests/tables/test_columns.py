from collections.abc import Mapping, Sequence
from datetime import UTC

import pytest

from pdpp_kernel.source_item import Json
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.reader_messages import COLUMN_KINDS, KnownColumn
from pdpp_sources.tables.columns import (
    KINDS,
    SPELLINGS,
    Survey,
    TableColumn,
    agreed,
    spellings_of,
    typed,
)


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-20"], "integer", [1, -20]),
        (["1", "2.5"], "number", [1, 2.5]),
        (["-12,34", "1.234,56", "7"], "number", [-12.34, 1234.56, 7]),
        (["-12,34 €", "+1.000 €"], "number", [-12.34, 1000]),
        (["1,234.56", "12"], "number", [1234.56, 12]),
        (["$1,234", "$0.50"], "number", [1234, 0.5]),
        (["2024-01-05"], "date", ["2024-01-05"]),
        (["5.1.2024", "31.01.24"], "date", ["2024-01-05", "2024-01-31"]),
        (["05/01/2024", "31/01/2024"], "date", ["2024-01-05", "2024-01-31"]),
        (["01/05/2024", "01/31/2024"], "date", ["2024-01-05", "2024-01-31"]),
        (["2024-01-05", "2024-01-05T10:00:00+02:00"], "date-time", None),
        (["True", "false"], "boolean", [True, False]),
        (["05/01/2024", "06/01/2024"], "string", ["05/01/2024", "06/01/2024"]),
        (["007", "1.2.3"], "string", ["007", "1.2.3"]),
        (["31.02.2024"], "string", ["31.02.2024"]),
        ([1, 2.5], "number", [1, 2.5]),
        ([[1], "a"], "json", [[1], "a"]),
        ([["a", "b"], [], None], "strings", [["a", "b"], [], None]),
    ],
)
def test_a_column_is_what_all_its_cells_can_be(
    cells: list[Json], kind: str, values: list[Json] | None
) -> None:
    shared = set(SPELLINGS)
    for cell in (cell for cell in cells if cell is not None):
        shared &= spellings_of(cell)
    spelling = agreed(shared)
    assert SPELLINGS[spelling] == kind
    if values is not None:
        assert [typed(cell, spelling, UTC) for cell in cells] == values


def test_a_cell_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadRecord):
        typed("much", "number", UTC)
    assert typed("", "number", UTC) is None


def columns_of(
    cells: Mapping[str, Sequence[Json]],
    known: dict[str, KnownColumn] | None = None,
    kinds: dict[str, str] | None = None,
) -> dict[str, TableColumn]:
    survey = Survey(frozenset(kinds or {}))
    for row in zip(*cells.values(), strict=True):
        survey.add(dict(zip(cells, row, strict=True)))
    return {column.source_name: column for column in survey.columns(known, kinds)}


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("Number", ["0123", "456"], "leading_zero"),
        ("Number", ["+49301234", "456"], "plus_sign"),
        ("Number", ["12345678901234567", "1"], "long_digits"),
        ("Number", ['="316"', '=""'], "guarded"),
        ("Number", ["0123", "N/A"], "leading_zero"),
        ("Zip", ["10115", "80331"], "code_name"),
        ("Number", ["9780316769488", *["4006381333931"] * 4], "check_digit"),
    ],
)
def test_digits_are_text_where_something_shows_it(name: str, cells: list[Json], why: str) -> None:
    column = columns_of({name: cells})[name]
    assert (column.kind, column.why) == ("string", why)
    for cell in cells:
        assert typed(cell, column.spelling, UTC) in (str(cell).strip('="') or None, None)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["12", "0", "7"], "integer"),
        (["007", "1.5"], "number"),
        (["+5", "-3"], "number"),
        (["+5", "-3.5"], "number"),
        (["0.5", "1"], "number"),
    ],
)
def test_other_digits_are_numbers(cells: list[Json], kind: str) -> None:
    assert columns_of({"Number": cells})["Number"].kind == kind


def test_a_short_day_is_read_as_the_other_columns_have_theirs() -> None:
    found = columns_of(
        {"Booked": ["01/02/2023", "02/02/2023"], "Due": ["31/01/2023", "28/02/2023"]}
    )
    assert (found["Due"].spelling, found["Due"].why) == ("day/month", "day_first")
    assert (found["Booked"].spelling, found["Booked"].why) == ("day/month", "day_first_as_others")


def test_days_that_nothing_tells_apart_stay_text_and_are_said() -> None:
    column = columns_of({"Booked": ["01/02/2023", "02/02/2023"]})["Booked"]
    assert (column.kind, column.why) == ("string", "undecided_days")


def test_threes_behind_a_sign_are_decimals_where_the_other_columns_have_them() -> None:
    found = columns_of({"Km": ["3,681", "13,681"], "Meters": ["3681,0", "12,5"]})
    assert typed("3,681", found["Km"].spelling, UTC) == 3.681
    assert found["Km"].why == "point_as_others"
    found = columns_of({"Sum": ["1.234", "2.500"], "Fee": ["1,5", "12,25"]})
    assert typed("1.234", found["Sum"].spelling, UTC) == 1234


def test_commas_begin_decimals_where_semicolons_part_the_cells() -> None:
    survey = Survey(has_semicolons=True)
    for cell in ("173,900", "1,250"):
        survey.add({"Sum": cell})
    (column,) = survey.columns()
    assert typed("173,900", column.spelling, UTC) == 173.9
    assert columns_of({"Sum": ["173,900"]})["Sum"].spelling == "1,234.5"


def test_numbers_of_a_classification_keep_their_zeros() -> None:
    column = columns_of({"Icd": ["007.1", "038.11", "250.00"]})["Icd"]
    assert (column.kind, column.why) == ("string", "leading_zero")


def test_amounts_of_several_currencies_stay_text() -> None:
    column = columns_of({"Price": ["5 EUR", "5 USD"]})["Price"]
    assert (column.kind, column.why) == ("string", "several_currencies")
    assert columns_of({"Price": ["5 EUR", "6,50 EUR"]})["Price"].currency == "EUR"


@pytest.mark.parametrize(
    ("name", "cell", "instant"),
    [
        ("time_added", "1672913472", "2023-01-05T10:11:12Z"),
        ("timestamp", "1672913472123", "2023-01-05T10:11:12.123Z"),
        ("Timestamp (ms)", "1672913472123", "2023-01-05T10:11:12.123Z"),
        ("created_utc", "1672913472.0", "2023-01-05T10:11:12Z"),
    ],
)
def test_seconds_are_instants_where_the_column_is_called_so(
    name: str, cell: str, instant: str
) -> None:
    column = columns_of({name: [cell, cell]})[name]
    assert typed(cell, column.spelling, UTC) == instant


def test_seconds_are_numbers_where_the_column_is_called_otherwise() -> None:
    assert columns_of({"size": ["1672913472", "1672999872"]})["size"].kind == "integer"


def test_digits_of_days_are_days_only_where_all_are() -> None:
    assert columns_of({"Datum": ["20240105", "20240131"]})["Datum"].kind == "date"
    assert columns_of({"Datum": ["20240105", "20240132"]})["Datum"].kind == "integer"


def test_what_is_known_of_a_column_counts_where_its_cells_fit() -> None:
    known = {
        "Zip": KnownColumn("Zip", "code", ""),
        "Day": KnownColumn("Day", "month/day", ""),
        "W": KnownColumn("W_hrung", "string", ""),
    }
    found = columns_of({"Zip": ["10115"], "Day": ["01/02/2023"], "W": ["EUR"]}, known)
    assert [found[name].spelling for name in known] == ["code", "month/day", "string"]
    assert found["W"].name == "W_hrung"
    assert (
        columns_of({"Zip": ["x"], "Day": ["31/01/2023"], "W": ["1"]}, known)["Day"].spelling
        == "day/month"
    )


@pytest.mark.parametrize(
    ("kind", "cells", "spelling"),
    [
        ("text", ["1", "2"], "string"),
        ("code", ["1", "2"], "code"),
        ("number", ["0123", "2"], "number"),
        ("day", ["01/02/2023"], "day/month"),
        ("month-first", ["01/02/2023"], "month/day"),
        ("instant", ["1672913472"], "seconds 1970"),
    ],
)
def test_the_owner_says_what_a_column_holds(kind: str, cells: list[Json], spelling: str) -> None:
    column = columns_of({"x": cells}, kinds={"x": kind})["x"]
    assert (column.spelling, column.why) == (spelling, "owner")


def test_a_column_that_is_not_what_the_owner_says_is_an_error() -> None:
    with pytest.raises(BadRecord) as caught:
        columns_of({"x": ["much"]}, kinds={"x": "number"})
    assert caught.value.code == "usage"


def test_every_kind_that_the_owner_may_say_has_its_spellings() -> None:
    assert set(COLUMN_KINDS) == KINDS.keys()


def test_amounts_are_in_the_currency_of_their_row() -> None:
    rows: list[dict[str, Json]] = [
        {"Item": "tea", "Quantity": "2", "Amount": "4.50", "Fee": "1", "Currency": "EUR"},
        {"Item": "rice", "Quantity": "1", "Amount": "900", "Fee": "2", "Currency": "JPY"},
    ]
    survey = Survey()
    for row in rows:
        survey.add(row)
    columns = {column.source_name: column for column in survey.columns()}
    assert {name for name, column in columns.items() if column.currency_field} == {"Amount", "Fee"}
    assert columns["Amount"].currency_field == columns["Currency"].name
    assert [name for name, column in columns.items() if column.is_currency] == ["Currency"]


@pytest.mark.parametrize(
    ("cells", "is_prose"),
    [
        (["I went to the sea", "ok", "yes", "no"], True),
        (["I went to the sea", "ok", "yes", "no", "well"], False),
        (["Ada Lovelace", "Ben"], False),
        (["1", "2"], False),
        (["", ""], False),
    ],
)
def test_a_column_with_sentences_is_prose(cells: list[str], is_prose: bool) -> None:
    assert columns_of({"said": cells})["said"].is_prose == is_prose
