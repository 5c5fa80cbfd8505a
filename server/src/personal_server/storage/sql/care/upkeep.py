"""What a database says of itself: whose it is, and what it knows of the clock.

Rule: facts stand in the table `store`, one a name.
"""

from __future__ import annotations

import orjson
from msgspec.structs import astuple

from personal_server.domain.stored import ClockNote, StoreCounts
from personal_server.storage.authorization_rows import AuditRow, GrantRow, OwnerRow
from personal_server.storage.sql.care.backup_notes import SqlBackupNotes
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import (
    BlobUploadRow,
    ChangeRow,
    ConnectionRow,
    DeclarationRow,
    FactRow,
    SealingKeyRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.logs.disclosure_rows import DisclosureRow
from personal_server.storage.sql.statements import ignoring, insert, select

OWNER, CLOCK = "subject_id", "clock"
_FIND_COUNTER = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
_FIND_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
# every server and command that ever opened a file left a key in it
_FIRST_OPENED_BY = (
    f"SELECT {SealingKeyRow.subject_id} FROM {SealingKeyRow.table}"  # noqa: S608
    f" ORDER BY {SealingKeyRow.key_id} LIMIT 1"
)
# numbers of changes grow with the time they are written at, so that one of each source is read
_NEWEST_CHANGE = (
    f"SELECT {ChangeRow.written_at} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = {SourceRow.table}.{SourceRow.source}"
    f" ORDER BY {ChangeRow.sequence} DESC LIMIT 1"
)
_NEWEST_WRITTEN = (
    f"SELECT max(({_NEWEST_CHANGE})) FROM {SourceRow.table}",  # noqa: S608
    f"SELECT max({AuditRow.at_ns}) FROM {AuditRow.table}",  # noqa: S608
    f"SELECT max({DisclosureRow.at_ns}) FROM {DisclosureRow.table}",  # noqa: S608
    f"SELECT max({SealingKeyRow.created_at}) FROM {SealingKeyRow.table}",  # noqa: S608
)
_HOLDS_ANYTHING = " UNION ALL ".join(
    f"SELECT 1 FROM {table.table}"  # noqa: S608
    for table in (DeclarationRow, ConnectionRow, OwnerRow, GrantRow)
)


_EPOCH = "epoch"
_SOURCES = (
    f"SELECT {SourceRow.connection_id}, {SourceRow.stream}, {SourceRow.tables}"  # noqa: S608
    f" FROM {SourceRow.table} ORDER BY {SourceRow.connection_id}, {SourceRow.stream}"
)
_BLOBS = f"SELECT DISTINCT {BlobUploadRow.blob_id} FROM {BlobUploadRow.table} ORDER BY 1"  # noqa: S608
_BLOB_SIZES = (
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM"  # noqa: S608
    f" (SELECT DISTINCT {BlobUploadRow.blob_id}, {BlobUploadRow.size_bytes} AS size_bytes"
    f" FROM {BlobUploadRow.table}) AS held"
)
_GRANTS = f"SELECT count(*) FROM {GrantRow.table}"  # noqa: S608


class SqlUpkeepStore(SqlBackupNotes):
    """Facts about one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def owner(self) -> str | None:
        """Files of before it was written say it by their first sealing key."""
        with self._database.read() as session:
            owner = session.value(_FIND_FACT, (OWNER,)) or session.value(_FIRST_OPENED_BY)
        return None if owner is None else str(owner)

    def claim(self, subject_id: str) -> str:
        """Of two who claim, one is told the other's."""
        with self._database.write() as session:
            session.run(ignoring(insert(FactRow)), (OWNER, subject_id))
            return str(session.value(_FIND_FACT, (OWNER,)))

    def clock_note(self) -> ClockNote | None:
        """A file of before it was written is judged by the newest instant in it."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (CLOCK,))
            if text is not None:
                return ClockNote(*orjson.loads(text))
            newest = [session.value(statement) for statement in _NEWEST_WRITTEN]
        seen_ns = max((at_ns for at_ns in newest if at_ns is not None), default=None)
        return None if seen_ns is None else ClockNote(seen_ns)

    def keep_clock_note(self, note: ClockNote) -> None:
        """As one text, so that it is whole."""
        self._put(CLOCK, orjson.dumps(astuple(note)).decode())

    def renew_epoch(self, epoch: str) -> None:
        """Every follower starts over."""
        self._put(_EPOCH, epoch)

    def counted(self) -> StoreCounts:
        """Everything counted, line by line, and where its changes stand."""
        with self._database.read() as session:
            streams = tuple(
                (cid, stream, int(session.value(f"SELECT count(*) FROM r{number}")))  # noqa: S608
                for cid, stream, number in session.rows(_SOURCES)
            )
            return StoreCounts(
                str(session.value(_FIND_FACT, (_EPOCH,))),
                int(session.value(_FIND_COUNTER, ("sequence",))),
                int(session.value(_GRANTS)),
                streams,
                tuple(blob_id for (blob_id,) in session.rows(_BLOBS)),
            )

    def blob_sizes(self) -> tuple[int, int]:
        """How many blobs there are, and their bytes."""
        with self._database.read() as session:
            return session.rows(_BLOB_SIZES)[0]

    def holds_anything(self) -> bool:
        """Sources, grants or an owner who signed in."""
        with self._database.read() as session:
            return session.first(f"{_HOLDS_ANYTHING} LIMIT 1") is not None
