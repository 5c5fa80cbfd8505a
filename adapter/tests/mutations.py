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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import hypothesis
import pytest

root = Path(__file__).resolve().parents[2]
options = ("-q", "--tb=no", "--noconftest", "--assert=plain", "-p", "no:cacheprovider")
plugins = (
    "--disable-plugin-autoload",
    "-p",
    "anyio",
    "-p",
    "pytest_timeout",
    "-p",
    "no:unraisableexception",
)
# Without a deadline: a mutant that dies because the machine is busy would count as noticed.
hypothesis.settings.register_profile(
    "mutations",
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    database=None,
    deadline=None,
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


class Trials:
    """A run of pytest that collects some tests once, and runs them again for each mutant.

    Rule: a mutant is done with at the first test that fails, and each test is set up anew.
    """

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._mutants = mutants
        self._failed = False
        self._seconds: dict[str, float] = {}
        self.failed_unchanged = False
        self.survivors: list[Mutant] = []

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The loop that asynchronous tests run on: what they need of the shared fixtures."""
        return "asyncio"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed, and how long it took."""
        self._failed = self._failed or report.failed
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0) + report.duration

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests on the functions as they are, then on each mutant."""
        if session.testsfailed or not session.items:
            return False  # pytest says that collection failed
        self.failed_unchanged = self._notices(session)
        # Most mutants die of a quick test, so the quick ones come first.
        session.items.sort(key=lambda item: self._seconds.get(item.nodeid, 0))
        if not self.failed_unchanged:
            self.survivors = [mutant for mutant in self._mutants if self._survives(session, mutant)]
        return True

    def _survives(self, session: pytest.Session, mutant: Mutant) -> bool:
        function = mutant.guard.function
        kept = function.__code__
        function.__code__ = mutant.code
        try:
            return not self._notices(session)
        finally:
            function.__code__ = kept

    def _notices(self, session: pytest.Session) -> bool:
        """Whether one of the tests fails."""
        self._failed = False
        for item in session.items:
            renew: Callable[[], None] = getattr(item, "_initrequest")  # noqa: B009 - as reruns do
            renew()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._failed:
                return True
        return False


def tried(files: tuple[Path, ...], mutants: Sequence[Mutant]) -> Trials:
    """Run the tests of these files on each mutant.  Raises: RuntimeError, where none ran."""
    trials, output = Trials(mutants), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        ended = pytest.main([*options, *plugins, *map(str, files)], plugins=[trials])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {ended!r}: {output.getvalue()}")
    return trials


def main(part: int = 0, of: int = 1) -> int:
    """Try every mutant, or those of one part of the groups of tests; 1 when one survived."""
    hypothesis.settings.load_profile("mutations")
    from adapter.tests.guards import guards  # noqa: PLC0415 - the table imports this module

    groups: dict[tuple[Path, ...], list[Mutant]] = {}
    for guard in guards:
        groups.setdefault(guard.files, []).extend(mutants_of(guard))
    count, survivors = 0, list[Mutant]()
    for files in sorted(groups)[part::of]:
        trials = tried(files, groups[files])
        if trials.failed_unchanged:
            sys.stdout.write(f"fails without any mutant: {', '.join(map(str, files))}\n")
            return 1
        count += len(groups[files])
        survivors += trials.survivors
    for mutant in survivors:
        sys.stdout.write(f"survived: {mutant}\n")
    sys.stdout.write(f"{count} checks removed one by one, {len(survivors)} unnoticed\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
