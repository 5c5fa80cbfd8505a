"""House rules that no linter has."""

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from pages import parts
from pages.generated import PAGES
from pages.typescript import DECLARATIONS, declarations

ROOT = Path(__file__).resolve().parents[2]


@cache
def texts() -> Mapping[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in parts.modules()}


def naming(name: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules whose text has this name in it: to parse all takes seconds."""
    whole = re.compile(rf"\b{name}\b")
    return ((path, ast.parse(text)) for path, text in texts().items() if whole.search(text))


def callers(name: str) -> set[str]:
    found = set[str]()
    for path, tree in naming(name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if called == name:
                    found.add(parts.short_name(path))
    return found


def test_only_authorize_makes_an_authorized_read() -> None:
    assert callers("AuthorizedRead") == {"enforcement/authorize.py"}


def test_plans_are_made_of_what_was_authorized() -> None:
    plans = ast.parse((parts.SERVER / "enforcement" / "plans.py").read_text(encoding="utf-8"))
    asked = [node.name for node in plans.body if isinstance(node, ast.ClassDef)]
    assert len(asked) == 13
    for name in asked:
        makers = {"enforcement/authorize.py", "enforcement/authorized_reads.py"}
        assert callers(name) <= makers, name


def test_scopes_are_made_of_readable_sources() -> None:
    assert callers("Scope") == {"enforcement/scopes.py"}
    assert callers("TimedScope") == {"enforcement/authorize.py"}


def test_only_the_settings_module_reads_the_environment() -> None:
    readers = {
        parts.short_name(path)
        for name in ("environ", "getenv")
        for path, tree in naming(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == name
    }
    assert readers <= {"settings.py", "pdpp_mcp_server/settings.py"}


def test_only_one_room_knows_what_other_systems_have_not() -> None:
    """Another kind of system is a room beside `pdpp_kernel/system`, and no change elsewhere."""
    asked = re.compile(
        r"^\s*(?:import|from) (ctypes|fcntl|grp|pwd|resource|termios)\b|\"/proc/", re.MULTILINE
    )
    found = {
        parts.short_name(path)
        for path in parts.modules()
        if asked.search(path.read_text(encoding="utf-8"))
    }
    assert {name.rpartition("/")[0] for name in found} == {"pdpp_kernel/system"}


def test_no_class_name_is_defined_twice() -> None:
    homes: dict[str, set[Path]] = {}
    for path, text in texts().items():
        for name in re.findall(r"(?m)^class (\w+)", text):
            homes.setdefault(name, set()).add(path)
    twice = {name: sorted(p.stem for p in paths) for name, paths in homes.items() if len(paths) > 1}
    assert twice == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = re.compile(r"(util|helper|manager|service|handler|base|common|misc)s?\Z")
    assert [p for p in parts.modules() if empty.match(p.stem)] == []


def test_each_test_module_mirrors_a_source_module() -> None:
    strays = [
        path.relative_to(ROOT).as_posix()
        for folder, package in zip(parts.TEST_FOLDERS, parts.PACKAGES.values(), strict=True)
        for path in sorted(folder.rglob("test_*.py"))
        if not mirrored(package, path.relative_to(folder).parts)
    ]
    assert strays == []


def mirrored(package: Path, inner: tuple[str, ...]) -> bool:
    """A test module stands for a module or a folder, or in a folder that stands for a module.

    What a command of the adapter does with a server of its own is tested among the server's.
    """
    if package == parts.SERVER and inner[0] == "cli":
        commands = (parts.ADAPTER, ("commands", *inner[1:]))
        if mirrored(*commands):
            return True
    room = package.joinpath(*inner[:-1])
    stem = inner[-1].removeprefix("test_").removesuffix(".py")
    candidates = [room / f"{stem}.py", room / stem, room.with_suffix(".py")]
    if stem.startswith("contract") or room == parts.SERVER / "storage" / "ports":
        candidates.append(room)  # what every store does alike, whichever module names the port
    return any(candidate.exists() for candidate in candidates)


def test_each_setting_is_documented() -> None:
    readers = (parts.SERVER / "settings.py", parts.ADAPTER / "settings.py")
    text = "".join(path.read_text(encoding="utf-8") for path in readers)
    named = re.findall(r'"(PDPP_[A-Z_]+)"', text)
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in sorted(set(named)) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", PAGES)
def test_each_generated_page_is_current(name: str) -> None:
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run `make docs`"


def test_the_types_that_are_served_are_current() -> None:
    assert DECLARATIONS.read_text(encoding="utf-8") == declarations(), "run `make docs`"


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


@pytest.mark.parametrize(
    "forbidden",
    [
        r"\.\./shared" + r"\b",
        r"/work" + r"/(main|wt|shared)",
        r"(pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian)" + r"\b",
    ],
)
def test_nothing_points_outside_the_project(forbidden: str) -> None:
    pattern = re.compile(forbidden)
    guilty = [
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path != Path(__file__).resolve()
        and pattern.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert guilty == []
