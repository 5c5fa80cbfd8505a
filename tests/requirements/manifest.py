"""The requirement table and the marks that bind tests to its rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

root = Path(__file__).resolve().parents[2]
Test = ast.FunctionDef | ast.AsyncFunctionDef
table = Path(__file__).with_name("requirements.tsv")


hosted = "HTTP status codes, headers and documents exist on the hosted door only"
process = "the process and its environment exist on the stdio door only"
fewer_doors = {
    "0.1": "pages and documents, not a call",
    "0.6": "each door refuses an owner in its own way: a status, an exit code",
    "4.1": process,
    "4.2": process,
    "4.3": process,
    "4.9": process,
    "4.10": hosted,
    "4.12": hosted,
    "4.13": hosted,
    "4.14": "needs the real resource server, in both eras of the hosted door",
    "4.21": hosted,
    "4.22": hosted,
    "4.23": hosted,
    "4.45": hosted,
    "4.46": hosted,
    "4.47": hosted,
    "4.48": hosted,
    "4.49": hosted,
}
"""Rows that no test takes through all four doors, and why."""


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
    for path, test, row in _marks():
        found.setdefault(row, []).append(f"{path.relative_to(root).as_posix()}::{test.name}")
    return found


def rows_on_four_doors() -> set[str]:
    """Rows with a test that takes the `door` fixture."""
    return {row for _, test, row in _marks() if "door" in [a.arg for a in test.args.args]}


def _marks() -> Iterator[tuple[Path, Test, str]]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from ((path, test, row) for test, row in _marks_in(tree))


def _marks_in(tree: ast.Module) -> Iterator[tuple[Test, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.req":
                yield from ((node, str(ast.literal_eval(row))) for row in mark.args)


def problems(table_rows: list[Row], marked: dict[str, list[str]]) -> list[str]:
    known = {row.id for row in table_rows}
    missing = [f"{row.id}: no test" for row in table_rows if not marked.get(row.id)]
    return missing + [f"{row}: no row" for row in marked if row not in known]
