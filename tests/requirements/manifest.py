"""The requirement table and the marks that bind tests to its rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

root = Path(__file__).resolve().parents[2]
table = Path(__file__).with_name("requirements.tsv")


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    requirement: str
    scenario: str
    status: str


def rows() -> list[Row]:
    lines = table.read_text(encoding="utf-8").rstrip("\n").split("\n")
    cells = [line.split("\t") for line in lines[1:]]
    return [Row(cell[0], cell[2], cell[3], cell[6]) for cell in cells]


def marks_by_row() -> dict[str, list[str]]:
    """Row id → the tests that carry its mark, read from the sources."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name, row in _marks(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(row, []).append(f"{path.relative_to(root).as_posix()}::{name}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.req":
                yield from ((node.name, str(ast.literal_eval(row))) for row in mark.args)


def problems(table_rows: list[Row], marked: dict[str, list[str]]) -> list[str]:
    known = {row.id for row in table_rows}
    missing = [f"{row.id}: no test" for row in table_rows if not marked.get(row.id)]
    return missing + [f"{row}: no row" for row in marked if row not in known]
