"""An import that started something and never ends: what a feed does then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from personal_server.feeds.wanted_imports import unpacked


def main(files: Sequence[int], _seconds: float, _memory_bytes: int) -> NoReturn:
    """The process id of what it started lies beside what was to be imported."""
    with os.fdopen(files[0], "rb") as given:
        wanted, _ = unpacked(given.read())
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    wanted.paths[0].with_name("child").write_text(str(child.pid))
    while True:
        signal.pause()
