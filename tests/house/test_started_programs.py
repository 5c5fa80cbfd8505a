"""No program of ours runs a module that lies in the folder where its owner happens to be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pages import parts
from personal_server.app.uploads import PDPP
from personal_server.cli.serve import WORKER

SAFE_PATH = "-P"


def commands(path: Path) -> list[list[str]]:
    """The words of each command of a module that starts a Python on a module or a text."""
    found: list[list[str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple | ast.List):
            words = [ast.unparse(each).strip("'") for each in node.elts]
            if "-m" in words[:6] or "-c" in words[:6]:
                found.append(words)
    return found


def test_every_python_that_is_started_looks_for_modules_in_no_working_directory() -> None:
    """`-m` and `-c` put the working directory first, which may be one of downloads."""
    started = {parts.short_name(path): commands(path) for path in parts.modules()}
    unsafe = {
        name: words
        for name, of_module in started.items()
        for words in of_module
        if "python" in words[0].rpartition(".")[2] or "executable" in words[0]
        if SAFE_PATH not in words[: max(words.index(w) for w in ("-m", "-c") if w in words)]
    }
    assert not unsafe
    assert any(of_module for of_module in started.values())


@pytest.mark.parametrize("command", [WORKER, PDPP], ids=["a worker", "an import"])
def test_what_lies_in_the_working_directory_is_not_run(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    ran = tmp_path / "ran"
    for name in ("logging", "json", "orjson", "cyclopts"):
        text = f"open({str(ran)!r}, 'w').close(); raise SystemExit"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert command[0] == sys.executable
    subprocess.run([*command, "{"], cwd=tmp_path, capture_output=True, check=False)
    assert not ran.exists()
