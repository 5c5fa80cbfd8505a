"""Which modules a room has, and which tests stand for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pages.parts import KERNEL, ROOT, SERVER


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of modules, and the folder of its own tests.

    `ports` are the tests of ports which these modules alone answer on a database.
    """

    modules: Path
    tests: Path
    ports: tuple[Path, ...] = ()

    def paths(self) -> list[Path]:
        """The modules, relative to the repository."""
        found = sorted(self.modules.rglob("*.py"))
        return [path.relative_to(ROOT) for path in found if path.name != "__init__.py"]

    def test_modules(self, module: Path, copy: Path) -> tuple[list[str], list[str]]:
        """The test modules that mirror a module, and the rest of the folder, as a copy has them."""
        inner = (ROOT / module).relative_to(self.modules).with_suffix("")
        tests = copy / self.tests.relative_to(ROOT)
        beside, folder = tests / inner.parent / f"test_{inner.name}.py", tests / inner
        mirror: list[str] = []
        rest: list[str] = []
        beyond = [copy / path.relative_to(ROOT) for path in self.ports]
        for path in sorted(path for root in (tests, *beyond) for path in root.rglob("test_*.py")):
            own = path == beside or path.is_relative_to(folder)
            (mirror if own else rest).append(path.relative_to(copy).as_posix())
        return mirror, rest


def _of_server(room: str) -> Shelf:
    return Shelf(SERVER / room, SERVER.parents[1] / "tests" / room)


_STORAGE = _of_server("storage/sql")
_KERNEL = Shelf(KERNEL, KERNEL.parents[1] / "tests")
ROOMS = {
    "enforcement": (_of_server("enforcement"),),
    "domain": (_of_server("domain"), _KERNEL),
    "kernel": (_KERNEL,),
    "reading": (_of_server("reading"),),
    "granting": (_of_server("granting"),),
    "storage/sql": (replace(_STORAGE, ports=(_STORAGE.tests.parent / "ports",)),),
}
"""The nouns of the kernel were the server's domain, and count with it."""
