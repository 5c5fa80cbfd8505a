"""A process in the place of one that parses answers: it was broken out of, and says nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn


def main(_files: Sequence[int], _seconds: float, _memory_bytes: int) -> NoReturn:
    """As `process_starter.py` has it."""
    while True:
        time.sleep(60)
