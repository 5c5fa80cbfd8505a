"""The pages beside the code are true: every file they name exists, and every room has a page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pages.parts import PACKAGES, SERVER, modules, named_file

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "ARCHITECTURE.md"
ROOM_PAGES = sorted(SERVER.glob("*/README.md"))
PART_PAGES = [folder.parents[1] / "README.md" for folder in PACKAGES.values()]
PAGES = [MAP, *PART_PAGES, *ROOM_PAGES]

NAMED = re.compile(r"`([\w./-]+(?:\.(?:py|json|md|js)|/))`|\b(docs/[\w./-]+\.md)")
DRAWN = re.compile(r"[\w.][\w./-]*\.(?:py|json|md)\b")
FENCED = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINKED = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
CHANGES = re.compile(
    r"^## (?:Change X → file|Questions that cross rooms)\n(.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
HEADS = ("| to change |", "| question |")


def named(text: str) -> set[str]:
    """The files that a text names: in backticks, below `docs/`, and in its pictures."""
    found = {code or plain for code, plain in NAMED.findall(text)}
    found |= {name for picture in FENCED.findall(text) for name in DRAWN.findall(picture)}
    return {name for name in found if not name.startswith("/")}


def places(name: str, page: Path = MAP) -> list[Path]:
    """Where a name leads to: beside its page, in its part, or from the root; empty if nowhere."""
    folders = [page.parent, ROOT, *(p for p in PACKAGES.values() if p.parents[1] == page.parent)]
    found = [named_file(name), *(folder / name for folder in folders)]
    return [path for path in found if path.exists()]


def exists(name: str, page: Path = MAP) -> bool:
    return bool(places(name, page))


def page_of(module: Path) -> Path:
    """The page of the room that a module lies in, else of its part."""
    rooms = [folder / "README.md" for folder in module.parents]
    return next(page for page in rooms if page in PAGES)


def changes(text: str) -> list[str]:
    """The rows of the tables that say which file to edit."""
    lines = [line for table in CHANGES.findall(text) for line in table.splitlines()]
    return [line for line in lines if line.startswith("| ") and not line.startswith(HEADS)]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def short(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert sorted(name for name in named(read(page)) if not exists(name, page)) == []


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = LINKED.findall(read(page))
    assert sorted(link for link in links if not (page.parent / link).exists()) == []


def test_the_pages_name_many_files() -> None:
    assert len({name for page in PAGES for name in named(read(page))}) > 80
    assert len({name for page in ROOM_PAGES for name in named(read(page))}) > 300


@pytest.mark.parametrize(
    "page",
    ["CONTRIBUTING.md", "docs/sources.md", "docs/mcp.md", "docs/ways-out.md", "docs/wire.md"],
)
def test_every_path_of_other_pages_exists(page: str) -> None:
    found = named(read(ROOT / page))
    paths = {name for name in found if "/" in name.rstrip("/")}
    assert sorted(name for name in paths if not exists(name) and "NAME" not in name) == []


def test_every_module_is_named_by_the_page_of_its_room() -> None:
    led = {page: {p for name in named(read(page)) for p in places(name, page)} for page in PAGES}
    found = [path for path in modules() if not path.stem.startswith("__")]
    assert [short(path) for path in found if path not in led[page_of(path)]] == []


def test_every_change_names_a_file() -> None:
    rows = [row for page in PAGES for row in changes(read(page))]
    assert len(rows) > 80
    assert [row for row in rows if not named(row.rsplit("|", 2)[1])] == []


@pytest.mark.parametrize("page", ROOM_PAGES, ids=short)
def test_the_page_of_a_room_has_words_a_picture_and_changes(page: Path) -> None:
    text = read(page)
    assert "\n## Words\n" in text
    assert FENCED.search(text) is not None
    assert len(changes(text)) > 2


def test_every_room_has_a_page_and_is_named() -> None:
    rooms = {path.parent.name for path in SERVER.glob("*/__init__.py")}
    assert sorted(rooms - {page.parent.name for page in ROOM_PAGES}) == []
    assert sorted({f"{room}/" for room in rooms} - named(read(MAP))) == []


def test_the_map_links_to_every_page() -> None:
    links = {(ROOT / link).resolve() for link in LINKED.findall(read(MAP))}
    assert sorted(short(page) for page in PAGES[1:] if page not in links) == []


def test_the_list_of_documents_names_every_one() -> None:
    docs = ROOT / "docs"
    listed = {docs / link for link in LINKED.findall(read(docs / "README.md"))}
    pages = {*docs.glob("*.md"), *docs.glob("contract/*.md")} - {docs / "README.md"}
    assert sorted(short(page) for page in pages - listed) == []


def test_a_file_that_is_none_is_found() -> None:
    assert not exists("enforcement/permissions.py")
    assert not exists("permissions.py", SERVER / "enforcement" / "README.md")
    assert exists("authorize.py", SERVER / "enforcement" / "README.md")
    assert not exists("authorize.py")
    assert named("see `reading/records.py` and docs/settings.md") == {
        "reading/records.py",
        "docs/settings.md",
    }
    assert named("A picture:\n```\nquery ──made.py──▶ plan\n```\n") == {"made.py"}


def test_a_change_that_names_no_file_is_found() -> None:
    table = "## Change X → file\n| to change | edit |\n|---|---|\n| a thing | somewhere |\n"
    (row,) = changes(table)
    assert row == "| a thing | somewhere |"
    assert named(row) == set()


IMPORTABLE = {
    "kernel": {"kernel", "pdpp_kernel"},
    "sources": {"kernel", "pdpp_kernel", "sources", "pdpp_sources"},
    "adapter": {"kernel", "pdpp_kernel", "adapter", "pdpp_mcp_server"},
}
OURS = {"pdpp_kernel", "pdpp_sources", "pdpp_mcp_server", "personal_server"} | {
    folder.name for folder in ROOT.iterdir() if folder.is_dir()
}


def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports."""
    nodes = list(ast.walk(ast.parse(read(path))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("part", IMPORTABLE)
def test_the_tests_of_a_part_stand_on_it_and_what_is_below(part: str) -> None:
    """`make test-readers` runs those of kernel and sources where nothing else is installed."""
    allowed = IMPORTABLE[part]
    strays = {
        f"{short(path)}: {name}"
        for path in (ROOT / part / "tests").rglob("*.py")
        for name in imported(path) & OURS - allowed
    }
    assert sorted(strays) == []
