"""The SQLite record store: its parts, put together behind the port."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from personal_server.storage.ports import READ_DEADLINE_SECONDS
from personal_server.storage.sqlite.cataloguing import SqliteCatalog
from personal_server.storage.sqlite.collecting import SqliteCollectors
from personal_server.storage.sqlite.committing import SqliteRecords
from personal_server.storage.sqlite.database import Database
from personal_server.storage.sqlite.functions import register as prepare
from personal_server.storage.sqlite.keeping import SqliteBlobs, SqliteServer
from personal_server.storage.sqlite.session import Session
from personal_server.storage.sqlite.snapshot import SqliteSnapshot
from personal_server.storage.sqlite.tables import SCHEMA

__all__ = ["SCHEMA", "SqliteRecordStore", "prepare"]


class SqliteRecordStore(SqliteRecords, SqliteCatalog, SqliteCollectors, SqliteBlobs, SqliteServer):
    """Everything of one subject in one database; `prepare` sets its connections up."""

    def __init__(
        self,
        database: Database,
        subject_id: str,
        blob_directory: Path,
        *,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        super().__init__(database, subject_id, blob_directory)
        _found(database, random_bytes)

    @contextmanager
    def snapshot(
        self, timeout_seconds: float | None = READ_DEADLINE_SECONDS
    ) -> Generator[SqliteSnapshot, None, None]:
        """See the port."""
        with self._database.read(timeout_seconds) as session:
            yield SqliteSnapshot(session, self.subject_id)


def _found(database: Database, random_bytes: Callable[[int], bytes]) -> None:
    """Give a new store its epoch and counters."""
    with database.read() as session:
        if session.value("SELECT count(*) FROM store"):
            return
    with database.write() as session:
        _begin(session, random_bytes(8).hex())


def _begin(session: Session, epoch: str) -> None:
    session.many(
        "INSERT OR IGNORE INTO store VALUES (?, ?)",
        [
            ("epoch", epoch),
            ("sequence", 0),
            ("retained_from", 0),
            ("tables", 0),
        ],
    )
