"""Every row has a test and every mark has a row; a marked test is never skipped."""

from __future__ import annotations

from tests.requirements.manifest import (
    fewer_doors,
    marks_by_row,
    problems,
    rows,
    rows_on_four_doors,
)


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


def test_a_row_goes_through_four_doors_or_says_why_not() -> None:
    every = {row.id for row in rows()}
    assert every - rows_on_four_doors() == set(fewer_doors)
