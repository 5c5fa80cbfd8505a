"""SQLite files for specimens: the same bytes each time, and small."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

Row = tuple[object, ...]
PAGE_BYTES = 1024


def database(schema: str, rows: Iterable[tuple[str, Iterable[Row]]]) -> bytes:
    """A database of these tables with these rows, by the name of each table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.db"
        with closing(sqlite3.connect(path)) as made:
            made.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            made.executescript(schema)
            for table, values in rows:
                for row in values:
                    marks = ", ".join("?" * len(row))
                    made.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608
            made.commit()
        return path.read_bytes()
