"""A pytest run inside a test, for what only a whole run says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def nested_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a run of its own says; it shares nothing with the run around it."""
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
