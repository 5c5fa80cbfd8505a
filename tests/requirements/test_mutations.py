"""Every check of the adapter is held by a test, and no check is left out of the count."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pdpp_mcp_server
from adapter.tests.guards import beside, guards
from adapter.tests.mutations import mutants_of

PARTS = 4
# It tests the tests, for minutes: a quarter always, and the others where there is time.
SHARED = [pytest.param(part, marks=pytest.mark.long if part else ()) for part in range(PARTS)]
sources = Path(pdpp_mcp_server.__file__).parent


def refusing() -> Iterator[str]:
    """The functions that refuse when a condition holds, by module and name."""
    for path in sources.rglob("*.py"):
        if path.relative_to(sources).parts[0] in ("rs_client", "commands", "settings.py"):
            continue  # these face a person or a server, not an agent
        module = ".".join(path.relative_to(sources).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                checks = [part for part in ast.walk(node) if isinstance(part, ast.If)]
                if any(isinstance(check.body[-1], ast.Raise) for check in checks):
                    yield f"{module}.{node.name}"


def test_every_function_that_refuses_is_tried() -> None:
    tried = {f"{guard.module}.{guard.name.rpartition('.')[2]}" for guard in guards}
    assert set(refusing()) - tried == beside


def test_each_guard_has_checks_to_take_out() -> None:
    assert [guard.name for guard in guards if not list(mutants_of(guard))] == []


@pytest.mark.parametrize("part", SHARED)
def test_without_any_one_check_a_test_fails(part: int) -> None:
    command = [sys.executable, "-m", "adapter.tests.mutations", str(part), str(PARTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" removed one by one, 0 unnoticed\n")
