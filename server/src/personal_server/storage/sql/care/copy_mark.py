"""The mark of a database that is being filled from another: until it is whole none opens it."""

from __future__ import annotations

from personal_server.storage.sql.driver import Session

COPY_MARK = "moving"


def is_being_copied(session: Session) -> bool:
    """Whether a copy into this database was begun and is not whole."""
    return session.first(session.dialect.find_table, (COPY_MARK,)) is not None
