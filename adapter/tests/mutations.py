"""`python -m adapter.tests.mutations`: without any one check of the adapter, a test fails.

Source: docs/contract/mcp-adapter.md 17.5. Each guard is a function; a mutant of it lacks one of its
checks (an `if` that refuses never does), or gives its argument back where it should have cleaned
it. The narrow tests of the guard run against each mutant, in this process; a mutant that passes
them all has survived, and the exit code says so.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import hypothesis
import pytest

root = Path(__file__).resolve().parents[2]
options = ("-x", "-q", "--noconftest", "--assert=plain", "-p", "no:cacheprovider")
plugins = (
    "--disable-plugin-autoload",
    "-p",
    "anyio",
    "-p",
    "pytest_timeout",
    "-p",
    "no:unraisableexception",
)
hypothesis.settings.register_profile(
    "mutations", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate], database=None
)


@dataclass(frozen=True, slots=True)
class Part:
    """A package with guards, and the folder of its tests."""

    package: str
    tests: Path


adapter = Part("pdpp_mcp_server", root / "adapter" / "tests")
hosted = Part("personal_server.hosted_mcp", root / "server" / "tests" / "hosted_mcp")


@dataclass(frozen=True, slots=True)
class Guard:
    """A function that refuses or cleans, and the tests that must notice when it does not.

    Shapes: otherwise is the expression that takes the place of its last verdict, if it has one;
        whole says that it takes the place of everything.
    """

    module: str
    name: str
    tests: tuple[str, ...]
    otherwise: str | None = None
    whole: bool = False
    part: Part = adapter

    @property
    def files(self) -> tuple[Path, ...]:
        """The tests, by path."""
        return tuple(self.part.tests / name for name in self.tests)

    @property
    def function(self) -> FunctionType:
        """The function itself; everybody who imported it holds the same one."""
        found: Any = importlib.import_module(f"{self.part.package}.{self.module}")
        for part in self.name.split("."):
            found = getattr(found, part)
        return getattr(found, "__func__", found)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard without one of its checks."""

    guard: Guard
    line: int
    removed: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.guard.module}.{self.guard.name}:{self.line} {self.removed}"


def mutants_of(guard: Guard) -> Iterator[Mutant]:
    """Every check of a guard, taken out alone."""
    source = textwrap.dedent(inspect.getsource(guard.function))
    first = guard.function.__code__.co_firstlineno
    places = [] if guard.whole else list(_refusals(ast.parse(source)))
    for place in places:
        tree = ast.parse(source)
        check = _refusals(tree)[place]
        removed = ast.unparse(check.test)
        check.test = ast.Constant(False)
        yield Mutant(guard, first + check.lineno - 1, removed, _compiled(guard, tree))
    if guard.otherwise is not None:
        tree = ast.parse(source)
        verdict = ast.parse(f"return {guard.otherwise}").body[0]
        body = _definition(tree).body
        body[:] = [verdict] if guard.whole else [*body[:-1], verdict]
        yield Mutant(guard, first, f"-> {guard.otherwise}", _compiled(guard, tree))


def _definition(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef:
    found = tree.body[0]
    assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    return found


def _refusals(tree: ast.Module) -> dict[int, ast.If]:
    """The `if`s that end in a refusal, by their place."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    ends = ast.Raise | ast.Return
    return {n: node for n, node in enumerate(found) if isinstance(node.body[-1], ends)}


def _compiled(guard: Guard, tree: ast.Module) -> CodeType:
    definition = _definition(tree)
    definition.decorator_list = []
    module = compile(ast.fix_missing_locations(tree), "<mutant>", "exec")
    return next(
        code
        for code in module.co_consts
        if isinstance(code, CodeType) and code.co_name == definition.name
    )


class Backend:
    """What the tests of the adapter need of the shared fixtures."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The loop they run on."""
        return "asyncio"


def notices(files: tuple[Path, ...]) -> bool:
    """Whether a test of these files fails.  Raises: RuntimeError, where they did not run."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        ended = pytest.main([*options, *plugins, *map(str, files)], plugins=[Backend()])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {ended!r}: {said.getvalue()}")
    return ended == pytest.ExitCode.TESTS_FAILED


def survives(mutant: Mutant) -> bool:
    """Whether nobody notices a mutant."""
    function = mutant.guard.function
    kept = function.__code__
    function.__code__ = mutant.code
    try:
        return not notices(mutant.guard.files)
    finally:
        function.__code__ = kept


def main() -> int:
    """Try every mutant; 1 when one survived."""
    hypothesis.settings.load_profile("mutations")
    from adapter.tests.guards import guards  # noqa: PLC0415 - the table imports this module

    for files in sorted({guard.files for guard in guards}):
        if notices(files):
            sys.stdout.write(f"fails without any mutant: {', '.join(map(str, files))}\n")
            return 1
    mutants = [mutant for guard in guards for mutant in mutants_of(guard)]
    survivors = [mutant for mutant in mutants if survives(mutant)]
    for mutant in survivors:
        sys.stdout.write(f"survived: {mutant}\n")
    sys.stdout.write(f"{len(mutants)} checks removed one by one, {len(survivors)} unnoticed\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
