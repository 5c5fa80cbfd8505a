"""The table of standards names files and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security-standards.md"
NAMED = re.compile(r"`([a-z0-9_/]+\.py)(?:::(\w+))?`")
WITHOUT_TESTS = {"sender-constrained tokens"}


def rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if row[0] != "requirement" and set(row[0]) != {"-"}]


def test_every_row_names_files_that_there_are() -> None:
    found = rows()
    assert len(found) > 25
    for requirement, where, _ in found:
        files = [path for path, _ in NAMED.findall(where)]
        assert files or requirement in WITHOUT_TESTS, requirement
        for path in files:
            assert (ROOT / "src" / "personal_server" / path).is_file(), path


def test_every_row_names_tests_that_there_are() -> None:
    for requirement, _, tests in rows():
        named = NAMED.findall(tests)
        assert named or requirement in WITHOUT_TESTS, requirement
        for path, name in named:
            text = (ROOT / "tests" / path).read_text(encoding="utf-8")
            defined = rf"^(async )?def {name}\(|^{name} = "
            assert re.search(defined, text, re.MULTILINE), f"{path}::{name}"
