from datetime import UTC

import pytest

from pdpp_kernel.source_item import Json
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.tables.columns import SPELLINGS, agreed, spellings_of, typed


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
    ],
)
def test_a_column_is_what_all_its_cells_can_be(
    cells: list[Json], kind: str, values: list[Json] | None
) -> None:
    shared = set(SPELLINGS)
    for cell in cells:
        shared &= spellings_of(cell)
    spelling = agreed(shared)
    assert SPELLINGS[spelling] == kind
    if values is not None:
        assert [typed(cell, spelling, UTC) for cell in cells] == values


def test_a_cell_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadRecord):
        typed("much", "number", UTC)
    assert typed("", "number", UTC) is None
