"""Records and grants read in one transaction: both stores lie in one database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from personal_server.app.server_database import ServerDatabase
from personal_server.reading.identification import OneState, OpenBriefly, OpenState
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.logs.authorization_transaction import SqlAuthorizationTransaction
from personal_server.storage.sql.snapshot import SqlSnapshot


def one_state(database: ServerDatabase, subject_id: str) -> tuple[OpenState, OpenBriefly]:
    """Both stores lie in one database, so that one transaction shows them in one state."""

    @contextmanager
    def opened(
        reading: AbstractContextManager[Session],
    ) -> Generator[OneState, None, None]:
        with reading as session:
            yield (
                SqlAuthorizationTransaction(session, subject_id),
                SqlSnapshot(session, database, subject_id),
            )

    return (
        lambda timeout_seconds: opened(database.read(timeout_seconds)),
        lambda: opened(database.read_briefly()),
    )
