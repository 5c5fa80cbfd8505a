"""What a database says of itself: whose it is.

Rule: facts stand in the table `store`, one a name.
"""

from __future__ import annotations

from personal_server.storage.authorization import GrantRow, OwnerRow
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import (
    ConnectionRow,
    DeclarationRow,
    SealingKeyRow,
    StoreRow,
)
from personal_server.storage.sql.statements import insert, select

OWNER = "subject_id"
_FIND_FACT = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
# every server and command that ever opened a file left a key in it
_FIRST_OPENED_BY = (
    f"SELECT {SealingKeyRow.subject_id} FROM {SealingKeyRow.table}"  # noqa: S608
    f" ORDER BY {SealingKeyRow.key_id} LIMIT 1"
)
_HOLDS_ANYTHING = " UNION ALL ".join(
    f"SELECT 1 FROM {table.table}"  # noqa: S608
    for table in (DeclarationRow, ConnectionRow, OwnerRow, GrantRow)
)


class SqlUpkeepStore:
    """Facts about one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def owner(self) -> str | None:
        """Files of before it was written say it by their first sealing key."""
        with self._database.read() as session:
            found = session.value(_FIND_FACT, (OWNER,)) or session.value(_FIRST_OPENED_BY)
        return None if found is None else str(found)

    def claim(self, subject_id: str) -> str:
        """Of two who claim, one is told the other's."""
        with self._database.write() as session:
            session.run(session.dialect.ignoring(insert(StoreRow)), (OWNER, subject_id))
            return str(session.value(_FIND_FACT, (OWNER,)))

    def holds_anything(self) -> bool:
        """Sources, grants or an owner who signed in."""
        with self._database.read() as session:
            return session.first(f"{_HOLDS_ANYTHING} LIMIT 1") is not None
