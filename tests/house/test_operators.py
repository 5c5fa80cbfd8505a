"""An operator's word stands in its row, in SQL and in the contract, and in no other place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pages import parts, tool_schemas
from pages.tool_schemas import TOOLS, tool_document
from pdpp_kernel.aggregations import FIGURE_WORDS, Granularity, Metric
from pdpp_kernel.operators import FURTHER_OPERATORS, RANGE_OPERATORS, Operator
from pdpp_mcp_server.arguments import EXPECTED_FILTER
from pdpp_mcp_server.schema_document import LEGEND

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPELLING = {"pdpp_kernel/operators.py", "storage/sql/compiler.py"}
"""The rows, and what they mean in SQL."""
ANOTHER_MEANING: Mapping[str, frozenset[str]] = {
    # the direction of a payment
    "pdpp_sources/bank/bookings.py": frozenset({"in"}),
    "pdpp_sources/bank/entries.py": frozenset({"in"}),
    "pdpp_sources/bank/csv_layouts.py": frozenset({"in"}),
    "collecting/sample.py": frozenset({"in"}),
    # the relation of a photo to its album
    "pdpp_sources/google/photos.py": frozenset({"in"}),
    # where OpenAPI has a parameter
    "authorization_server/openapi.py": frozenset({"in"}),
    "resource_server/documentation.py": frozenset({"in"}),
    "resource_server/openapi.py": frozenset({"in"}),
    # the chat that a message is in
    "pdpp_mcp_server/faces/hits.py": frozenset({"in"}),
    # what JSON Schema says of one item of a list
    "domain/schema_costs.py": frozenset({"contains"}),
    # Lithuanian
    "domain/language_names.py": frozenset({"lt"}),
}
"""Words of operators that are spelled for something else."""


def spelled(path: Path, words: set[str]) -> set[str]:
    """Those of some words that are texts of a module; one without their letters is not parsed."""
    text = path.read_text(encoding="utf-8")
    if not re.search(rf"[\"'](?:{'|'.join(words)})[\"']", text):
        return set()
    return words & {
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_word_of_an_operator_is_spelled_in_its_row_and_in_sql_alone() -> None:
    words = {each.value for each in Operator}
    found = {parts.short_name(path): spelled(path, words) for path in parts.modules()}
    elsewhere = {name: told for name, told in found.items() if told and name not in SPELLING}
    assert elsewhere == ANOTHER_MEANING


def test_words_of_metrics_and_granularities_that_mean_nothing_else_stand_in_their_rows() -> None:
    words = {*(each.value for each in Metric), *(each.value for each in Granularity)}
    ordinary = {"count", "sum", "min", "max", "minute", "hour", "day", "week", "month", "year"}
    strays = {
        parts.short_name(path): told
        for path in parts.modules()
        if (told := spelled(path, words - ordinary))
    }
    assert strays == {"pdpp_kernel/aggregations.py": words - ordinary}


def test_the_published_schemas_of_the_tools_are_current() -> None:
    assert TOOLS.read_text(encoding="utf-8") == tool_document(), "run `make docs`"


def test_a_list_of_tools_that_is_too_long_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_schemas, "MOST_LIST_BYTES", 1_000)
    with pytest.raises(ValueError, match="above 1000"):
        tool_document()


def test_the_contract_names_each_operator() -> None:
    contract = (DOCS / "contract" / "resource-server.md").read_text(encoding="utf-8")
    assert f"`filter[f][{'|'.join(RANGE_OPERATORS)}]=v`" in contract
    assert [op for op in FURTHER_OPERATORS if f"`filter[f][{op}]" not in contract] == []
    of_tools = (DOCS / "contract" / "mcp-adapter.md").read_text(encoding="utf-8")
    assert EXPECTED_FILTER in of_tools
    assert f"f={LEGEND['f']};" in of_tools
    brief = (DOCS / "wire.md").read_text(encoding="utf-8")
    assert f"`{' '.join(RANGE_OPERATORS)}`" in brief
    assert f"`{' '.join(FURTHER_OPERATORS)}`" in brief


def test_the_contract_names_each_metric_grouping_and_granularity() -> None:
    contract = (DOCS / "contract" / "resource-server.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{each}`" for each in Metric) in contract
    assert f"usable aggregations among {' '.join(FIGURE_WORDS)}" in contract
    lines = " ".join(each for each in Granularity if not each.is_cyclic)
    cycles = " ".join(each for each in Granularity if each.is_cyclic)
    assert f"`{lines}` (ISO weeks), `{cycles}`" in contract
