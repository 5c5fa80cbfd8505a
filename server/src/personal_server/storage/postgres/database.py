"""The PostgreSQL database of one owner: a schema of its own, read and written in transactions.

Rule: nothing outlives a transaction, so that a pooler may give each to another session: what a
session has to know is said at its beginning, in one message, which is answered by the number of
the state that the transaction sees: what was made of that state before is not asked for again.
Only where the server itself is spoken to, statements stay prepared.  Statements name no schema.
One writer at a time, by a lock that ends with the transaction: numbers of changes become visible
in their order, whichever server wrote them.

Raises: DatabaseTooNew, DatabaseTooOld, ForeignSchema, StorageUnavailable, StorageReadOnly,
    QueryTimeout.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout, TooManyRequests

from pdpp_kernel.errors import QueryTimeout, StorageReadOnly, StorageUnavailable
from pdpp_kernel.refused_writes import DISK_FULL, READ_ONLY, read_only
from pdpp_kernel.texts import message
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Matches
from personal_server.storage.damage import DamageNotes
from personal_server.storage.ports.snapshots import PastBudget
from personal_server.storage.postgres.dialect import BRING_UP, FIND_FUNCTIONS, FUNCTIONS
from personal_server.storage.postgres.schema_rights import is_changed_by_others
from personal_server.storage.postgres.search import PostedPart
from personal_server.storage.postgres.session import (
    Connection,
    PostgresSession,
    WriteListener,
    connect_with,
    is_ending,
    settle,
)
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.migrations import (
    Step,
    known_steps,
    missing_steps,
    tables_of,
    take_steps,
)
from personal_server.storage.sql.reads.search import count_terms, search
from personal_server.storage.sql.source_tables import Reader
from personal_server.storage.writability import Writability

_log = logging.getLogger(__name__)
# what it says of a connection that fails is the server's text; `translated` says it
logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
OLDEST_VERSION = 150_000
CONNECT_SECONDS = 5
POOL_SECONDS = 10.0
# How often whoever waits for a session looks whether any can still be opened.
LOOK_SECONDS = 0.5
LOCK_MS = 5_000
DEFAULT_SCHEMA = "pdpp"
# Tries to begin: a session that was ended meanwhile is found out by that.
TRIES = 5
# Statements that stay prepared: those that were asked so often, the last so many.
PREPARED_AFTER, MOST_PREPARED = 2, 400
# A session that ended a read is taken again at once, this often before its age is looked at.
RESTS = 1_000
# Tables are cleaned of what was erased at most so often.
CLEANED_EACH_SECONDS = 60.0
# What is made of one state and kept: some kilobytes each.
MOST_DERIVED = 2_000

_FIND_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND relnamespace = to_regnamespace(quote_ident(?))"
)
_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = to_regnamespace(quote_ident(?))"
)
_SERVER = (
    "SELECT current_setting('server_version_num'), current_setting('server_encoding'),"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',"
    " 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
)
# the writer of the number too: a copy that is put back may come to the same number by another way
_FIND_STATE = "SELECT value, xmin::text, pg_backend_pid() FROM store WHERE name = 'state'"
_OTHER_STATE = (
    "INSERT INTO store VALUES ('state', 1) ON CONFLICT (name) DO UPDATE SET value = store.value + 1"
)


class ForeignSchema(StorageUnavailable):
    """The schema is another program's, or not whole."""


class PostgresDatabase:
    """The schema of one owner.

    `readers` bounds how many reads run at once, further ones wait; `listen_url` leads to the server
    without a pooler.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        schema: str = DEFAULT_SCHEMA,
        steps: Sequence[Step] | None = None,
        *,
        listen_url: str | None = None,
        serving: bool = False,
        readers: int = 8,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schema = schema
        self.damage = DamageNotes()
        self.writability = Writability(directory, logs=serving)
        self.is_read_only = False
        self._monotonic = monotonic
        self._write_lock = threading.Lock()
        self._known_lock = threading.Lock()
        self._written = 0
        digest = hashlib.sha256(f"pdpp {schema}".encode()).digest()
        self._lock_key = int.from_bytes(digest[:8], "big", signed=True)
        self._has_written = threading.Event()
        self._channel = f"pdpp_{digest[:8].hex()}"
        self._when_other = f"{_OTHER_STATE}; NOTIFY {self._channel}"
        self._listener: WriteListener | None = None
        if listen_url is not None:
            self._listener = WriteListener(listen_url, self._channel, CONNECT_SECONDS)
        name = sql.Identifier(schema).as_string()
        # lines are found by indexes, whatever the planner knows of a table that was just filled
        self._settings = (
            f"SET LOCAL search_path TO {name}; SET LOCAL jit TO off;"
            " SET LOCAL standard_conforming_strings TO on; SET LOCAL extra_float_digits TO 1;"
            " SET LOCAL enable_hashjoin TO off; SET LOCAL enable_mergejoin TO off;"
            " SET LOCAL max_parallel_workers_per_gather TO 0;"
        )
        self._write_settings = f"SET LOCAL lock_timeout TO {LOCK_MS};"
        self._known: dict[object, Any] = {}
        self._known_of: object = None
        self._is_made = False
        self._holds_erased = False
        self._cleaned_at = -math.inf
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            connection_class=Connection,
            kwargs=connect_with(CONNECT_SECONDS),
            min_size=1,
            max_size=readers + 1,
            timeout=POOL_SECONDS,
            reconnect_timeout=0,
            open=False,
            configure=self._forget,
        )
        self._url = url
        self._resting: list[Connection] = []
        self._rests = 0
        try:
            self._begin(known_steps() if steps is None else steps)
        except BaseException:
            self.close()
            raise

    # Sessions -----------------------------------------------------------------------------------
    @contextmanager
    def read(self, timeout_seconds: float | None = None) -> Generator[PostgresSession, None, None]:
        """One read snapshot, interrupted when its statements pass the time limit."""
        level = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._session(level, timeout_seconds) as session:
            yield session

    @contextmanager
    def read_briefly(self) -> Generator[PostgresSession, None, None]:
        """Whoever must not wait asks no other machine.  Raises: PastBudget."""
        raise PastBudget
        yield

    @contextmanager
    def write(self) -> Generator[PostgresSession, None, None]:
        """One write transaction: committed when the block ends, undone when it raises."""
        with self._writing() as session:
            yield session

    @contextmanager
    def write_soon(self) -> Generator[PostgresSession, None, None]:
        """A write that a crash of the database may undo: it does not wait for the disk."""
        with self._writing("SET LOCAL synchronous_commit TO off;") as session:
            yield session

    @contextmanager
    def erase(self) -> Generator[PostgresSession, None, None]:
        """A write; what it removes leaves the files of the database with `empty_journal`."""
        with self._writing() as session:
            yield session
        self._holds_erased = True

    def await_write(self, timeout_seconds: float) -> bool:
        """By a notification where one can be heard; else others' writes are looked for."""
        heard = self._listener.hear(timeout_seconds) if self._listener else None
        if heard is not None:
            return heard
        self._has_written.wait(timeout_seconds)
        self._has_written.clear()
        return True

    def empty_journal(self) -> None:
        """Have the tables cleaned of what was erased; the journal is the database's own."""
        if not self._holds_erased or self._monotonic() < self._cleaned_at + CLEANED_EACH_SECONDS:
            return
        self._cleaned_at, self._holds_erased = self._monotonic(), False
        with self.read() as session:
            tables = [sql.Identifier(self.schema, name) for (name,) in self._tables(session)]
        with translated(), self._pool.connection() as connection:
            for table in tables:
                # one that was removed meanwhile holds nothing any more
                with suppress(errors.UndefinedTable):
                    clean = f"VACUUM (ANALYZE, INDEX_CLEANUP ON) {table.as_string()}"
                    connection.execute(clean.encode(), prepare=False)

    def wipe_words(self, index: str) -> None:
        """As `erase` has it."""

    def merge_words(self, index: str) -> bool:
        """What is posted lies in blocks, which are never in more than one place."""
        del index
        return False

    def probe(self) -> None:
        """After a refused write, try a small one; without one, nothing.

        Raises: StorageUnavailable.
        """
        if self.writability.trouble is None or self.is_read_only:
            return
        with self._writing() as session:
            session.run("CREATE TEMPORARY TABLE probe (tried bigint) ON COMMIT DROP")
            self._written += 1

    def let_read_pages_go(self) -> None:
        """The database holds what was read, too."""

    def few_pages(self) -> AbstractContextManager[None]:
        """The database holds them."""
        return nullcontext()

    def keep_few_pages(self) -> None:
        """The database keeps them, in memory of its own."""

    def sizes(self) -> tuple[int, int]:
        """Of its tables; the journal is the database's own."""
        with self.read() as session:
            return int(session.value(_SIZE, (self.schema,))), 0

    def search(self, reader: Reader, plan: SearchPlan) -> Matches:
        """Full text of what is posted."""
        return search(reader, plan, PostedPart)

    def count_terms(self, reader: Reader, plan: SearchPlan) -> tuple[int, ...] | None:
        """The same."""
        return count_terms(reader, plan, PostedPart)

    def indexed_words(self, session: Session, index: str) -> Iterator[tuple[bytes, int, int]]:
        """(word, id, place) of everything in a word index."""
        for number, words in session.run(f"SELECT rowid, words FROM {index}"):  # noqa: S608
            for position, word in enumerate(words.split(" ")):
                yield word.encode(), number, position

    def close(self) -> None:
        """End every session."""
        if self._listener:
            self._listener.close()
        self._pool.close()
        while self._resting:
            self._pool.putconn(self._resting.pop())

    @contextmanager
    def _writing(self, settings: str = "") -> Generator[PostgresSession, None, None]:
        """What every write has around it."""
        self.writability.require_place()
        settings += self._write_settings
        settings += f"SELECT pg_advisory_xact_lock({self._lock_key});"
        with self._write_lock, self.writability.observed(lambda: self._written):
            if self.is_read_only:
                raise standby()
            with self._session("ISOLATION LEVEL READ COMMITTED", None, settings) as session:
                yield session
                session.commit(self._when_other)
                self._written += session.has_changed
        self._has_written.set()

    @contextmanager
    def _session(
        self, level: str, timeout_seconds: float | None, settings: str = ""
    ) -> Generator[PostgresSession, None, None]:
        with translated():
            limit_ms = 0 if timeout_seconds is None else max(1, math.ceil(timeout_seconds * 1_000))
            begin = (
                f"BEGIN {level}; {self._settings} SET LOCAL statement_timeout TO {limit_ms};"
                f" {settings}"
            )
            connection, derived = self._begun(begin, has_state=self._is_made and not settings)
            session = PostgresSession(
                connection, derived, timeout_seconds, self._monotonic, self._other_session
            )
            try:
                yield session
            finally:
                try:
                    session.end()
                finally:
                    self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        """One whose read is ending rests, unless somebody waits for one.

        So the answer to its end comes before it is taken again.
        """
        self._rests += 1
        if is_ending(connection) and not self._resting and self._rests % RESTS:
            self._resting.append(connection)
            if not self._pool.get_stats().get("requests_waiting"):
                return
            try:
                connection = self._resting.pop()
            except IndexError:
                return
        try:
            settle(connection)
        finally:
            self._pool.putconn(connection)

    def _other_session(self, snapshot: str) -> Connection:
        """A session of its own that sees the same state, and may make temporary tables."""
        connection = Connection.connect(self._url, **connect_with(CONNECT_SECONDS))
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}';"
        connection.execute(f"{begin} {self._settings}".encode(), prepare=False)
        return connection

    def _forget(self, connection: Connection) -> None:
        """A server that comes back may have lost the last states, and count on from before."""
        connection.prepare_threshold = None
        self._known, self._known_of = {}, None

    def _derived(self, connection: Connection, line: Line) -> MutableMapping[object, Any]:
        """What was made of the state that a transaction sees."""
        *state, process = line
        if process == connection.info.backend_pid:
            # no pooler stands between: its sessions have numbers of their own
            connection.prepare_threshold = PREPARED_AFTER
            connection.prepared_max = MOST_PREPARED
        with self._known_lock:
            if state != self._known_of or len(self._known) > MOST_DERIVED:
                self._known_of, self._known = state, {}
            return self._known

    def _begun(
        self, begin: str, *, has_state: bool
    ) -> tuple[Connection, MutableMapping[object, Any] | None]:
        """A session in which a transaction has begun; those that were ended are given back."""
        for tried in range(TRIES):
            connection = self._free_session()
            try:
                settle(connection)
                statement = f"{begin} {_FIND_STATE}" if has_state else begin
                cursor = connection.execute(statement.encode(), prepare=False)
                while cursor.nextset():
                    pass
                state = cursor.fetchone() if has_state else None
            except BaseException as error:
                if not connection.closed:
                    with suppress(psycopg.Error):
                        connection.execute(b"ROLLBACK", prepare=False)
                self._pool.putconn(connection)
                is_over = isinstance(error, psycopg.OperationalError) and connection.closed
                if not is_over or tried == TRIES - 1:
                    raise
            else:
                return connection, None if state is None else self._derived(connection, state)
        raise AssertionError

    def _free_session(self) -> Connection:
        """One that is free before the time is over.

        Raises: PoolTimeout; StorageUnavailable as soon as a new one cannot be opened, since nobody
            else has one either then.
        """
        failed = self._failed_openings()
        end = time.monotonic() + POOL_SECONDS
        while True:
            with suppress(IndexError):
                return self._resting.pop()
            try:
                return self._pool.getconn(min(LOOK_SECONDS, max(0.0, end - time.monotonic())))
            except PoolTimeout:
                if self._failed_openings() != failed:
                    raise unreachable() from None
                if time.monotonic() >= end:
                    raise

    def _failed_openings(self) -> int:
        return self._pool.get_stats().get("connections_errors", 0)

    # Opening ------------------------------------------------------------------------------------
    def _begin(self, steps: Sequence[Step]) -> None:
        with translated():
            self._pool.open()
            try:
                self._pool.wait(CONNECT_SECONDS)
            except PoolTimeout:
                raise unreachable() from None
        with self.read() as session:
            version, encoding, is_read_only, has_lz4 = session.rows(_SERVER)[0]
            self.is_read_only = bool(is_read_only)
            if int(version) < OLDEST_VERSION:
                raise StorageUnavailable("This server needs PostgreSQL 15 or newer.")
            if encoding != "UTF8":
                raise StorageUnavailable(
                    "The database is not encoded in UTF-8. Create a database with "
                    "`ENCODING 'UTF8'`."
                )
            if not self.is_read_only and is_changed_by_others(session, self.schema):
                raise ForeignSchema(
                    f"Other roles of the database may change the schema {self.schema}. Have its "
                    f"administrator say: ALTER SCHEMA {self.schema} OWNER TO the role of "
                    f"PDPP_DATABASE_URL; REVOKE CREATE ON SCHEMA {self.schema} FROM all others."
                )
            is_whole = self._is_whole(session, steps)
        if has_lz4:
            # the other way to compress long texts and blocks of ids takes twice their time
            self._write_settings += "SET LOCAL default_toast_compression TO lz4;"
        if not is_whole and self.is_read_only:
            raise standby()
        if not is_whole:
            self._make(steps)
        self._is_made = True

    def _is_whole(self, session: Session, steps: Sequence[Step]) -> bool:
        """Whether nothing is missing.  Raises: DatabaseTooNew, ForeignSchema."""
        tables = {str(name) for (name,) in self._tables(session)}
        if tables and "schema_version" not in tables:
            raise ForeignSchema(
                f"The schema {self.schema} of the database contains tables of "
                "another program. Set PDPP_DATABASE_SCHEMA to another schema."
            )
        try:
            missing = missing_steps(session, steps)
        except errors.UndefinedColumn:
            raise ForeignSchema(
                f"The schema {self.schema} of the database belongs to another "
                "program. Set PDPP_DATABASE_SCHEMA to another schema."
            ) from None
        if missing.is_new:
            return False
        lacking = set(missing.steps)
        if tables_of([step for step in steps if step not in lacking]) - tables:
            raise ForeignSchema(
                f"Tables are missing in the schema {self.schema} of the database. "
                "Restore the whole schema."
            )
        return not missing.steps and bool(session.value(FIND_FUNCTIONS))

    def _tables(self, session: Session) -> list[Line]:
        return session.rows(_TABLES, (self.schema,))

    def _make(self, steps: Sequence[Step]) -> None:
        """Take every missing step, all in one transaction."""
        with self.write() as session:
            if session.first(_FIND_SCHEMA, (self.schema,)) is None:
                name = sql.Identifier(self.schema).as_string()
                session.run(f"CREATE SCHEMA {name}")
            # what another process took while this one waited is not taken twice
            take_steps(session, steps)
            for statement in (*FUNCTIONS, *BRING_UP):
                session.run(statement)


def unreachable() -> StorageUnavailable:
    """Nobody answers, or nobody who knows this role."""
    return StorageUnavailable(
        (
            "The server cannot reach the database. Check that the database runs, and "
            "that PDPP_DATABASE_URL has the right address, database name, role and "
            "password."
        ),
        retry_after_seconds=1,
    )


def standby() -> StorageReadOnly:
    """Nothing can be written."""
    return StorageReadOnly(
        (
            "The database is read-only: it is a standby, or its role may only read. "
            "Set PDPP_DATABASE_URL to the primary. Reading and exporting still work."
        ),
        reason=READ_ONLY,
        retry_after_seconds=None,
    )


@contextmanager
def translated() -> Generator[None, None, None]:
    """Turn the driver's errors into ours, without its text, which may hold values."""
    try:
        yield
    except errors.QueryCanceled:
        raise QueryTimeout(
            "The read took too long. Use filters or a smaller limit.",
            retry_after_seconds=1,
        ) from None
    except errors.ReadOnlySqlTransaction:
        raise standby() from None
    except errors.DiskFull:
        raise read_only(DISK_FULL) from None
    except errors.InsufficientPrivilege:
        raise StorageUnavailable(
            "The database role in PDPP_DATABASE_URL may not do that. Let the role "
            "create a schema (`GRANT CREATE ON DATABASE … TO …`), or create a "
            "schema that the role owns."
        ) from None
    except (PoolTimeout, TooManyRequests):
        raise StorageUnavailable(
            "All database sessions are busy. Repeat the call shortly.",
            retry_after_seconds=1,
        ) from None
    except (
        errors.LockNotAvailable,
        errors.DeadlockDetected,
        errors.SerializationFailure,
        errors.UndefinedTable,  # what an older state has was removed meanwhile
    ):
        raise StorageUnavailable(
            "The database cannot be used now. Repeat the call shortly.", retry_after_seconds=1
        ) from None
    except psycopg.OperationalError as error:
        _log.warning("the database did not answer: %s", error.sqlstate or type(error).__name__)
        raise unreachable() from None
    except psycopg.Error as error:
        kind = error.sqlstate or type(error).__name__
        _log.error("the database refused a statement: %s", kind)
        raise StorageUnavailable(
            message("The database refused a statement (%(kind)s).", kind=kind)
        ) from None
