"""The authorization store: rows of one subject, in and out.

Rule: every statement begins its condition with the subject.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.logs.authorization_transaction import (
    AUDIT,
    SqlAuthorizationTransaction,
)


class SqlAuthorizationStore:
    """The rows of one subject in an open file."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self.subject_id = subject_id

    @contextmanager
    def read(self) -> Generator[SqlAuthorizationTransaction]:
        """A view of one moment: nothing that is written meanwhile shows in it."""
        with self._database.read() as session:
            yield SqlAuthorizationTransaction(session, self.subject_id)

    @contextmanager
    def write(self) -> Generator[SqlAuthorizationTransaction]:
        """A transaction that ends with the block."""
        with self._database.write() as session:
            yield SqlAuthorizationTransaction(session, self.subject_id)

    def forget_audit(self, before_ns: int) -> None:
        """Remove events older than the time they are kept."""
        AUDIT.forget(self._database, self.subject_id, before_ns)
