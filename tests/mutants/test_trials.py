"""Each trial comes to a verdict, or is an error of the tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "passes": ("def test_it(): pass", "passed", ""),
    "fails": ("def test_it(): assert False", "failed", "test_fails.py::test_it"),
    "cannot_be_read": ("raise ImportError", "failed", "test_cannot_be_read.py"),
    "ends": ("import os\ndef test_it(): os._exit(1)", "error", "ended without an answer"),
    "crashes": (
        "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGSEGV)",
        "error",
        "ended without an answer",
    ),
}


def test_a_crash_is_an_error_and_no_failed_test(tmp_path: Path) -> None:
    orders: list[str] = []
    for name, (source, _, _) in TESTS.items():
        (tmp_path / f"test_{name}.py").write_text(f"{source}\n")
        order = {"tests": [f"test_{name}.py"], "left_out": [], "seconds": 120}
        orders.append(json.dumps(order))
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.trials"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # noqa: TID251 (what tests start with)
        input="\n".join(orders),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(answer["outcome"], answer["by"]) for answer in answers]
    assert found == [(outcome, by) for _, outcome, by in TESTS.values()]
