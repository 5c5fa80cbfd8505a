"""ARCHITECTURE.md is true: every file it names exists, and no room goes unnamed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages.parts import SERVER, named_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## I want to change …")[1].split("\n## ")[0]
NAMED = re.compile(r"`([\w./-]+(?:\.(?:py|json|md)|/))`|\b(docs/[\w./-]+\.md)")


def named(text: str) -> set[str]:
    found = {code or plain for code, plain in NAMED.findall(text)}
    return {name for name in found if not name.startswith("/")}


def exists(name: str) -> bool:
    return (ROOT / name).exists() or named_file(name).exists()


def test_every_file_the_page_names_exists() -> None:
    names = named(PAGE)
    assert len(names) > 80
    assert sorted(name for name in names if not exists(name)) == []


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "docs/sources.md", "docs/mcp.md", "docs/wire.md"]
)
def test_every_path_of_other_pages_exists(page: str) -> None:
    found = named((ROOT / page).read_text(encoding="utf-8"))
    paths = {name for name in found if "/" in name.rstrip("/")}
    assert sorted(name for name in paths if not exists(name) and "NAME" not in name) == []


def test_every_change_names_a_file() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    assert [row for row in rows if not named(row.rsplit("|", 2)[1])] == []


def test_every_room_is_named() -> None:
    rooms = {f"{path.name}/" for path in SERVER.iterdir() if (path / "__init__.py").exists()}
    assert sorted(rooms - named(PAGE)) == []


def test_a_file_that_is_none_is_found() -> None:
    assert not exists("enforcement/permissions.py")
    assert named("see `reading/records.py` and docs/settings.md") == {
        "reading/records.py",
        "docs/settings.md",
    }
