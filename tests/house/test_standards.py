"""The tables of standards and of threats name files and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages.parts import named_file, named_test

ROOT = Path(__file__).parents[2]
PAGES = ("security-standards.md", "threat-model.md")
NAMED = re.compile(r"`([a-z0-9_/]+\.py)(?:::(\w+))?`")
HEADS = ("requirement", "attack")


def rows(page: str) -> list[list[str]]:
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if row[0] not in HEADS and set(row[0]) != {"-"}]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_files_that_there_are(page: str) -> None:
    found = rows(page)
    assert len(found) > 25
    for requirement, where, _ in found:
        files = [path for path, _ in NAMED.findall(where)]
        assert files, requirement
        for path in files:
            assert named_file(path).is_file(), path


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_tests_that_there_are(page: str) -> None:
    for requirement, _, tests in rows(page):
        named = NAMED.findall(tests)
        assert named, requirement
        for path, name in named:
            text = named_test(path).read_text(encoding="utf-8")
            defined = rf"^(async )?def {name}\(|^{name} = "
            assert re.search(defined, text, re.MULTILINE), f"{path}::{name}"
