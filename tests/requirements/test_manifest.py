"""Every row has a test and every mark has a row; a marked test is never skipped."""

from __future__ import annotations

import ast

from tests.requirements.manifest import marks_by_row, problems, rows


def test_the_table_has_its_ninety_nine_rows() -> None:
    assert len(rows()) == len({row.id for row in rows()}) == 99


def test_rows_and_marks_cover_each_other() -> None:
    assert problems(rows(), marks_by_row()) == []


def test_a_row_without_a_test_and_a_mark_without_a_row_are_problems() -> None:
    marked = marks_by_row()
    first = rows()[0].id
    bare = {row: found for row, found in marked.items() if row != first}
    assert problems(rows(), bare) == [f"{first}: no test"]
    stray = {**marked, "9.99": ["tests/x.py::test_x"]}
    assert problems(rows(), stray) == ["9.99: no row"]


def test_marks_stand_on_tests_as_literals() -> None:
    for row, found in marks_by_row().items():
        assert ast.literal_eval(repr(row)) == row
        assert all("::test_" in name for name in found)
