"""What every part of the SQLite store is made of."""

from __future__ import annotations

from pathlib import Path

from personal_server.storage.sqlite.database import Database


class SqlitePart:
    """A database, whose records they are, and where blobs lie."""

    def __init__(self, database: Database, subject_id: str, blob_directory: Path) -> None:
        self._database = database
        self._blob_directory = blob_directory
        self.subject_id = subject_id
