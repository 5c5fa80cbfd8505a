"""The measure of roads through the server still goes them, and no road gets longer to read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = {"GET": 10_680, "POST": 16_550, "pdpp": 13_840}
MOST_CALLS = {"GET": 510, "POST": 1_890, "pdpp": 5_350}
"""Lines of the modules on a road and functions entered, by its first word.

Ceilings: they may only fall.
"""


def test_each_road_has_figures_below_its_ceiling() -> None:
    command = [sys.executable, "-m", "bench.roads", "--modules", "--moves"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    table, *lists = done.stdout.strip().split("\n\n")
    headings, *rows = [re.split(r" {2,}", line) for line in table.splitlines()]
    assert len(rows) == 3
    for row, entered, moved in zip(rows, lists[::2], lists[1::2], strict=True):
        figures = dict(zip(headings, row, strict=True))
        name, *modules = entered.splitlines()
        moves = [int(line.split()[0]) for line in moved.splitlines()[1:]]
        assert all(int(figures[heading]) > 0 for heading in headings[1:])
        assert (name, str(len(modules))) == (figures["road"], figures["modules"])
        assert str(sum(moves)) == figures["moves"]
        assert int(figures["lines"]) <= MOST_LINES[name.split()[0]]
        assert int(figures["calls"]) <= MOST_CALLS[name.split()[0]]
