"""As much of pandas as the generator of TimelineQA asks for: tables that grow and are written.

It runs in a process of its own, where this module takes the place of pandas: a table of rows costs
nothing to load, and the figures of the generator do not hang on which pandas is there.
"""

from __future__ import annotations

import csv
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


class DataFrame:
    """Rows, and their columns in the order in which they came."""

    def __init__(self, rows: Sequence[Row] = (), columns: Sequence[str] = ()) -> None:
        """Copies the rows: the generator goes on with the same dictionaries."""
        self.rows = [dict(row) for row in rows]
        self.columns = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))

    def to_csv(self, path: str, index: bool) -> None:  # noqa: ARG002 (as pandas names it)
        """Write the table; what a row does not have is empty."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            written = csv.DictWriter(file, self.columns, restval="")
            written.writeheader()
            written.writerows(self.rows)


def concat(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of the first, then those of the others."""
    whole = DataFrame(columns=[name for frame in frames for name in frame.columns])
    whole.rows = [row for frame in frames for row in frame.rows]
    return whole


def set_option(*_: object) -> None:
    """How tables are printed; they are not."""


if __name__ == "__main__":
    sys.modules["pandas"] = sys.modules["__main__"]
    sys.path.insert(0, str(Path.cwd()))
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
