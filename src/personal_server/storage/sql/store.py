"""The SQLite record store: its parts, put together behind the port."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import orjson

from personal_server.domain.connection import Connection
from personal_server.domain.record import Row
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Matches
from personal_server.storage.ports import (
    READ_DEADLINE_SECONDS,
    Collection,
    RankedHit,
    Run,
    RunStatus,
    SealingKey,
    StoredDeclaration,
    StoredStream,
)
from personal_server.storage.sql import aggregates, blobs, changes, figures, pages
from personal_server.storage.sql.blobs import FORGOTTEN, BlobsPart
from personal_server.storage.sql.catalog import (
    CONNECTION,
    DECLARATION,
    CatalogPart,
    stored_connection,
    stored_declaration,
)
from personal_server.storage.sql.collection_runs import CollectorsPart
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.source_tables import Reader, StorePart, find_source, whole_row
from personal_server.storage.sql.writes import RecordsPart


class ServerPart(StorePart):
    """What the server keeps for itself."""

    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """See the port."""
        with self._database.read() as session:
            lines = session.rows(
                "SELECT key_id, secret, created_at FROM sealing_keys WHERE subject_id = ?"
                " ORDER BY key_id DESC",
                (self.subject_id,),
            )
        return tuple(SealingKey(*line) for line in lines)

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """See the port."""
        with self._database.write() as session:
            key_id = session.value(
                "INSERT INTO sealing_keys (subject_id, secret, created_at) VALUES (?, ?, ?)"
                " RETURNING key_id",
                (self.subject_id, secret, now_ns),
            )
        return SealingKey(key_id, secret, now_ns)

    def put_ranking(self, ranking_id: str, hits: Sequence[RankedHit], expires_at_ns: int) -> None:
        """See the port."""
        text = orjson.dumps([(h.connection_id, h.stream, h.key, h.score) for h in hits]).decode()
        with self._database.write_soon() as session:
            session.run("DELETE FROM rankings WHERE expires_at < ?", (expires_at_ns - FORGOTTEN,))
            session.run(
                "INSERT OR REPLACE INTO rankings VALUES (?, ?, ?, ?)",
                (self.subject_id, ranking_id, expires_at_ns, text),
            )


class SearchableDatabase(Database, Protocol):
    """A database that also finds words: full text is where databases really differ."""

    def search(self, reader: Reader, plan: SearchPlan) -> Matches:
        """Candidates of every source, and how many visible records hold each term."""
        ...


class SqlSnapshot(Reader):
    """One consistent state; used by one thread at a time.

    Its reads of records are the functions of their modules: a function on a reader is its method.
    """

    page = pages.page
    record = pages.record
    children = pages.children
    field_window = pages.field_window
    count = figures.count
    span = figures.span
    summary = figures.summary
    aggregate = aggregates.aggregate
    changes = changes.changes
    blob = blobs.blob

    def __init__(self, session: Session, database: SearchableDatabase, subject_id: str) -> None:
        super().__init__(session, subject_id)
        self._database = database

    def search(self, plan: SearchPlan) -> Matches:
        """Full text, which is the database's own."""
        return self._database.search(self, plan)

    @property
    def epoch(self) -> str:
        """See the port."""
        return str(self._kept("epoch"))

    @property
    def horizon(self) -> int:
        """See the port."""
        return int(str(self._kept("sequence")))

    @property
    def retained_from(self) -> int:
        """See the port."""
        return int(str(self._kept("retained_from")))

    def declarations(self) -> tuple[StoredDeclaration, ...]:
        """See the port."""
        lines = self.session.rows(
            f"SELECT {DECLARATION} FROM declarations WHERE subject_id = ? AND current"  # noqa: S608
            " ORDER BY connector_key",
            (self.subject_id,),
        )
        return tuple(map(stored_declaration, lines))

    def connections(self) -> tuple[Connection, ...]:
        """See the port."""
        lines = self.session.rows(
            f"SELECT {CONNECTION} FROM connections WHERE subject_id = ?"  # noqa: S608
            " ORDER BY connection_id",
            (self.subject_id,),
        )
        return tuple(map(stored_connection, lines))

    def stored_streams(self) -> tuple[StoredStream, ...]:
        """See the port."""
        lines = self.session.rows(
            "SELECT s.connection_id, c.connector_key, s.stream, s.records FROM sources s"
            " JOIN connections c USING (subject_id, connection_id) WHERE s.subject_id = ?"
            " ORDER BY s.connection_id, s.stream",
            (self.subject_id,),
        )
        return tuple(StoredStream(*line) for line in lines)

    def collections(self) -> Mapping[str, Collection]:
        """See the port."""
        lines = self.session.rows(
            "SELECT connection_id, run_id, status, at, succeeded_at FROM runs WHERE subject_id = ?",
            (self.subject_id,),
        )
        return {
            connection_id: Collection(Run(run_id, RunStatus(status), at), succeeded_at)
            for connection_id, run_id, status, at, succeeded_at in lines
        }

    def ranking(self, ranking_id: str, now_ns: int) -> tuple[RankedHit, ...] | None:
        """See the port."""
        text = self.session.value(
            "SELECT hits FROM rankings WHERE subject_id = ? AND ranking_id = ? AND expires_at > ?",
            (self.subject_id, ranking_id, now_ns),
        )
        return None if text is None else tuple(RankedHit(*hit) for hit in orjson.loads(text))

    def export(self, connection_id: str, stream: str) -> Iterator[Row]:
        """See the port."""
        source = find_source(self.session, self.subject_id, connection_id, stream)
        if source is None:
            return
        compiler = Compiler(source.layout, source.tables, self.session.dialect)
        statement = compiler.rows(Where(), " ORDER BY r.k")
        for line in self.session.run(statement.sql, statement.params):
            yield whole_row(source, line)

    def _kept(self, name: str) -> object:
        return self.session.value("SELECT value FROM store WHERE name = ?", (name,))


class SqlRecordStore(RecordsPart, CatalogPart, CollectorsPart, BlobsPart, ServerPart):
    """Everything of one subject in one database."""

    def __init__(
        self,
        database: SearchableDatabase,
        subject_id: str,
        blob_directory: Path,
        *,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        super().__init__(database, subject_id, blob_directory)
        self._searchable = database
        _found(database, random_bytes)

    @contextmanager
    def snapshot(
        self, timeout_seconds: float | None = READ_DEADLINE_SECONDS
    ) -> Generator[SqlSnapshot, None, None]:
        """See the port."""
        with self._database.read(timeout_seconds) as session:
            yield SqlSnapshot(session, self._searchable, self.subject_id)


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
