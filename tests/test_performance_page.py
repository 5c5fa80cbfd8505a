"""What a measurement writes into docs/performance.md takes the place of the one before."""

from __future__ import annotations

import pytest

from bench.report import with_section

PAGE = "# Performance\n\n## In short\n\nFast.\n\n{}## What misses its bound\n\nNothing.\n"
OLD = "## 100,000 records in postgresql, 2026-11-22\n\n9 ms\n\n"
FILE, NEW = (
    "## 100,000 records, 2026-11-22\n\n8 ms\n\n",
    "## 100,000 records, 2026-11-28\n\n7 ms\n\n",
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW),
        (FILE, NEW),
        ("## 100,000 records\n\n8 ms\n\n", NEW),
        (OLD, OLD + NEW),
        (OLD + FILE, OLD + NEW),
    ],
)
def test_a_section_takes_the_place_of_its_own_or_stands_before_the_last(
    before: str, after: str
) -> None:
    assert with_section(PAGE.format(before), "## 100,000 records", NEW) == PAGE.format(after)
