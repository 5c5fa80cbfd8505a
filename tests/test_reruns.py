"""One test of a run may need a second try; where two do, the run fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIRST_FAILS = """
def test_{number}():
    tried = Path({folder!r}, "{number}")
    first = not tried.exists()
    tried.touch()
    assert not first
"""


@pytest.mark.parametrize(("flaky", "code"), [(1, 0), (2, 1)])
def test_a_second_rerun_fails_the_run(tmp_path: Path, flaky: int, code: int) -> None:
    tests = [FIRST_FAILS.format(number=n, folder=str(tmp_path)) for n in range(flaky)]
    module = tmp_path / "test_flaky.py"
    module.write_text("\n".join(["from pathlib import Path", *tests, "def test_sound(): pass\n"]))
    # By name: loading each plugin that is installed would cost more than the tests.
    plugins = ["xdist", "pytest_rerunfailures", "tests.reruns"]
    options = [
        "-q",
        "-n1",
        "--reruns=1",
        "--disable-plugin-autoload",
        *(f"-p{name}" for name in plugins),
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "-n1",
            "--reruns=1",
            f"--rootdir={tmp_path}",
            str(module),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("look into each" in done.stdout) is (code == 1)
