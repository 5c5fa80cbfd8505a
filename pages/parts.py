"""The four parts of the program, as folders: each has its package below `src/` and its tests."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "pdpp_kernel": ROOT / "kernel" / "src" / "pdpp_kernel",
    "pdpp_sources": ROOT / "sources" / "src" / "pdpp_sources",
    "pdpp_mcp_server": ROOT / "adapter" / "src" / "pdpp_mcp_server",
    "personal_server": ROOT / "server" / "src" / "personal_server",
}
"""Package and its folder, lowest first."""
KERNEL, SOURCES, ADAPTER, SERVER = PACKAGES.values()
TEST_FOLDERS = tuple(folder.parents[1] / "tests" for folder in PACKAGES.values())


def modules() -> list[Path]:
    """Every module of every part."""
    return [path for folder in PACKAGES.values() for path in sorted(folder.rglob("*.py"))]


def short_name(path: Path) -> str:
    """A file's path from its package on, without the package where that is the server's."""
    for name, folder in PACKAGES.items():
        if path.is_relative_to(folder):
            inner = path.relative_to(folder).as_posix()
            return inner if folder == SERVER else f"{name}/{inner}"
    return path.relative_to(ROOT).as_posix()


def named_file(name: str) -> Path:
    """Where a file lies that texts name as `short_name` does."""
    first, _, rest = name.partition("/")
    return PACKAGES[first] / rest if first in PACKAGES else SERVER / name


def named_test(name: str) -> Path:
    """Where a test lies that texts name from its `tests/` on, whichever part it is of."""
    folders = (ROOT / "tests", *TEST_FOLDERS)
    return next((f / name for f in folders if (f / name).is_file()), ROOT / "tests" / name)
