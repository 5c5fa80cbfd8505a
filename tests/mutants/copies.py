"""A copy of the tree in which one module at a time is changed, and a process that tests it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages.parts import PACKAGES, ROOT
from tests.mutants.mutations import Mutation
from tests.mutants.rooms import Shelf

LONGEST_SECONDS = 900.0
KILLED_BY: Counter[str] = Counter()
"""How many mutants each test module noticed so far: who noticed many is asked first."""
SECONDS: dict[str, float] = {}
"""How long each test module takes without a change: of those alike the quickest is asked first."""
_CONFTEST = '''"""What every test gets; the watch over the whole suite has no part in a trial."""

import hypothesis
import pytest

# as in the suite: what takes long on a busy machine is no kill
hypothesis.settings.register_profile(
    "suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
'''


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tests said of a mutant: killed (and by which), timeout, survived, or error.

    Shapes: an error is one of the trial, of which nothing is known: never a kill.
    """

    outcome: str
    seconds: float
    by: str = ""


def likely(tests: str) -> float:
    """A key of order: who noticed most changes for its time is first, if it noticed none yet the
    quickest.
    """
    # a second at least, since what is quick is often about something else
    return -(0.1 + KILLED_BY[tests]) / (1.0 + SECONDS.get(tests, 0.0))


def seconds_for(tests: list[str]) -> float:
    """How long these tests may take with a change: five times as long as without, and a minute."""
    return 60.0 + 5.0 * sum(SECONDS.get(each, 0.0) for each in tests)


class Copy:
    """The tracked files as they are now, changes that are not committed included."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left_out: list[str] = []
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        (folder / "conftest.py").write_text(_CONFTEST)
        packages = [path.parent.relative_to(ROOT) for path in PACKAGES.values()]
        path = ":".join(str(folder / package) for package in packages)
        environment = {**os.environ, "PYTHONPATH": path}  # noqa: TID251 (what tests start with)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the same modules, hundreds of times
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.trials"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def learn(self, shelf: Shelf) -> tuple[str, list[str]]:
        """Run the tests of a folder without a change: what failed, and what is slow."""
        folders = [path.relative_to(ROOT).as_posix() for path in (shelf.tests, *shelf.ports)]
        answer = self._tried(folders, LONGEST_SECONDS)
        SECONDS.update(answer["modules"])
        failed = answer["by"] or answer["outcome"] if answer["outcome"] != "passed" else ""
        return failed, answer["slow"]

    def judge(self, shelf: Shelf, module: Path, mutation: Mutation) -> Verdict:
        """Change the module, run its own tests, then the others of the folder, and change back."""
        path = self.folder / module
        whole = path.read_bytes()
        seconds = 0.0
        try:
            path.write_bytes(mutation.applied(whole))
            self._forget(path)
            own, others = shelf.test_modules(module, self.folder)
            for tests in (own, sorted(others, key=likely)):
                if tests:
                    answer = self._tried(tests, seconds_for(tests))
                    seconds += answer["seconds"]
                    if answer["outcome"] != "passed":
                        is_kill = answer["outcome"] == "failed"
                        outcome = "killed" if is_kill else answer["outcome"]
                        if is_kill:
                            KILLED_BY[answer["by"].partition("::")[0]] += 1
                        return Verdict(outcome, seconds, answer["by"])
        finally:
            path.write_bytes(whole)
            self._forget(path)
        return Verdict("survived", seconds)

    @staticmethod
    def _forget(path: Path) -> None:
        """A compiled file is told by second and size, which a change may leave as they were."""
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _tried(self, tests: list[str], seconds: float) -> dict[str, Any]:
        order = {"tests": tests, "left_out": self.left_out, "seconds": seconds}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
