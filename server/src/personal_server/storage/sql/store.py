"""The record store: its parts and its snapshot, put together behind the port."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from personal_server.domain.stored import SealingKey
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import FactRow, SealingKeyRow, StoreRow
from personal_server.storage.sql.records import blob_files
from personal_server.storage.sql.records.blobs import BlobsPart
from personal_server.storage.sql.records.catalog import CatalogPart
from personal_server.storage.sql.records.collectors import CollectorsPart
from personal_server.storage.sql.records.older_tables import adopt
from personal_server.storage.sql.records.passage_making import PassagesPart
from personal_server.storage.sql.records.persons import PersonsPart
from personal_server.storage.sql.records.swept_blobs import SweepPart
from personal_server.storage.sql.records.writes import RecordsPart
from personal_server.storage.sql.snapshot import FIND_FACT, SearchableDatabase, SqlSnapshot
from personal_server.storage.sql.statements import ignoring, insert, select
from personal_server.storage.sql.store_part import StorePart

# the columns of a `SealingKey`, in the order of its members
_KEY_COLUMNS = (SealingKeyRow.key_id, SealingKeyRow.secret, SealingKeyRow.created_at)
_SEALING_KEYS = (
    select(SealingKeyRow, SealingKeyRow.subject_id, columns=_KEY_COLUMNS)
    + f" ORDER BY {SealingKeyRow.key_id} DESC"
)
_ADD_SEALING_KEY = f"{insert(SealingKeyRow)} RETURNING {SealingKeyRow.key_id}"


class ServerPart(StorePart):
    """What the server keeps for itself."""

    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """By their number, the newest first."""
        with self._database.read() as session:
            lines = session.rows(_SEALING_KEYS, (self.subject_id,))
        return tuple(SealingKey(*line) for line in lines)

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """The database numbers it."""
        with self._database.write() as session:
            key_id = session.value(_ADD_SEALING_KEY, (self.subject_id, secret, now_ns))
        return SealingKey(key_id, secret, now_ns)


class SqlRecordStore(
    RecordsPart,
    CatalogPart,
    CollectorsPart,
    BlobsPart,
    SweepPart,
    ServerPart,
    PersonsPart,
    PassagesPart,
):
    """Everything of one subject in one database."""

    def __init__(
        self,
        database: SearchableDatabase,
        subject_id: str,
        blob_directory: Path,
        *,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        super().__init__(database, subject_id, blob_directory, random_bytes)
        self._searchable = database
        _found(database, random_bytes)
        adopt(database, subject_id)

    def look_at_damage(self) -> None:
        """By the lines that were noted; those of tables that are gone are forgotten with them."""
        damage = self._database.damage
        for noted in damage.known():
            if isinstance(noted, str):
                is_damaged = blob_files.is_damaged(self._blob_directory, noted)
            else:
                with self.snapshot() as snapshot:
                    is_damaged = snapshot.is_damaged(noted)
            if not is_damaged:
                damage.forget([noted])

    @contextmanager
    def snapshot(
        self, timeout_seconds: float | None = READ_DEADLINE_SECONDS
    ) -> Generator[SqlSnapshot, None, None]:
        """Every read in it sees what was committed when it began."""
        with self._database.read(timeout_seconds) as session:
            yield SqlSnapshot(session, self._searchable, self.subject_id)


def _found(database: Database, random_bytes: Callable[[int], bytes]) -> None:
    """Give a new store its epoch and counters."""
    with database.read() as session:
        if session.value(FIND_FACT, ("epoch",)) is not None:
            return
    with database.write() as session:
        _begin(session, random_bytes(8).hex())


def _begin(session: Session, epoch: str) -> None:
    session.run(ignoring(insert(FactRow)), ("epoch", epoch))
    session.many(
        ignoring(insert(StoreRow)),
        [
            ("sequence", 0),
            ("retained_from", 0),
            ("tables", 0),
        ],
    )
