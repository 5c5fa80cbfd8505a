"""Compiled code that the server brings is known, and the threat model names what meets texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pages import parts

LOCK = (parts.ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
GONE = ("pycld2", "whoosh")
# What each package is called where the threat model says that texts of records meet it.
MEETS_TEXTS = {
    "apsw": "SQLite",
    "cryptography": "cryptography",
    "isal": "isal",
    "jsonschema-rs": "jsonschema-rs",
    "markupsafe": "MarkupSafe",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "orjson": "orjson",
    "pydantic-core": "pydantic-core",
    "pyrage": "pyrage",
    "pystemmer": "Snowball",
}
# Only what the owner, a browser or a client says of itself, or no text at all.
MEETS_NO_TEXTS = {"argon2-cffi-bindings", "cbor2", "cffi", "rpds-py"}
CONFINED = {"pyyaml", "regex", "selectolax"}
SUFFIXES = (".so", ".pyd")


def locked() -> set[str]:
    """The packages that an installation by the lock gets."""
    return set(re.findall(r"(?m)^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==", LOCK))


def is_compiled(name: str) -> bool:
    """Whether a package, if this system has it, brings compiled modules."""
    try:
        return any(str(file).endswith(SUFFIXES) for file in distribution(name).files or ())
    except PackageNotFoundError:  # of another system
        return False


def imported(path: Path, packages: Collection[str]) -> set[str]:
    """Those of some packages that a file imports, wherever in it."""
    text = path.read_text(encoding="utf-8")
    names: set[str] = set()
    if not any(name in text for name in packages):
        return names
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names.intersection(packages)


def test_what_was_taken_out_is_imported_nowhere_and_in_no_lock() -> None:
    folders = ("kernel", "sources", "adapter", "server", "tests", "bench", "pages")
    for path in (path for name in folders for path in (parts.ROOT / name).rglob("*.py")):
        assert not imported(path, GONE), path
    for path in (*parts.ROOT.glob("requirements/*.txt"), *parts.ROOT.glob("*/pyproject.toml")):
        assert not [name for name in GONE if name in path.read_text(encoding="utf-8")], path


def test_every_compiled_package_is_known() -> None:
    assert {name for name in locked() if is_compiled(name)} == {
        *MEETS_TEXTS,
        *MEETS_NO_TEXTS,
        *CONFINED,
    }


def test_the_threat_model_names_those_that_meet_texts() -> None:
    page = (parts.ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    [said] = re.findall(r"(?s)- \*\*Compiled code that meets texts.*?(?=\n- \*\*)", page)
    assert [name for name in MEETS_TEXTS.values() if name not in said] == []


def test_what_reads_foreign_formats_is_imported_by_no_module_of_the_server() -> None:
    modules = {"selectolax", "regex", "yaml", "dateparser"}
    for path in parts.SERVER.rglob("*.py"):
        assert not imported(path, modules), path
