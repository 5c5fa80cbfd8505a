"""The SQLite file: who may open it, how it is read and written, and which tables it has.

Rule: one *server* per file; commands of the owner (import, grant, link) open it beside the server,
so what is remembered of one state is forgotten once anybody wrote.  One writer at a
time, readers on their own connections (WAL).  Tables come from steps (`storage/sql/migrations`),
which an existing file takes while no server works on it.

Raises: DatabaseInUse, DatabaseTooNew, DatabaseTooOld, StorageUnavailable, QueryTimeout.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import queue
import threading
import time
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    MutableMapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from pdpp_kernel.errors import QueryTimeout, StorageReadOnly, StorageUnavailable
from pdpp_kernel.refused_writes import DISK_FULL, READ_ONLY, WRITE_FAILED, read_only
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Matches
from personal_server.storage.damage import DamageNotes
from personal_server.storage.ports.snapshots import PastBudget
from personal_server.storage.sql.dialect import Dialect, Value
from personal_server.storage.sql.driver import Line, Session, T
from personal_server.storage.sql.migrations import (
    BeforeMigration,
    Step,
    known_steps,
    missing_steps,
    take_steps,
)
from personal_server.storage.sql.reads.search import count_terms, search
from personal_server.storage.sql.source_tables import Reader
from personal_server.storage.sqlite.dialect import DIALECT, SCRATCH, register
from personal_server.storage.sqlite.file_claims import (
    BUSY_MS,
    Turns,
    claim_file,
    make_private,
    wait_for_others,
)
from personal_server.storage.sqlite.page_memory import PageMemory
from personal_server.storage.sqlite.search import FtsPart
from personal_server.storage.writability import Writability

_log = logging.getLogger(__name__)
PROGRESS_STEPS = 20_000
# What a brief read may take: five times `PROGRESS_STEPS` are about 2 ms, as much are the bytes.
BRIEF_PROGRESS = 5
BRIEF_BYTES = 512 * 1024
BRIEF_SECONDS = 0.05
# What one reader makes of one state and keeps: some kilobytes each.
MOST_DERIVED = 500
STATEMENT_CACHE = 400
JOURNAL_BYTES = 64 * 1024 * 1024
# Pages of a word index written per step of a merge: some tens of milliseconds.
PAGES_MERGED = 500

# The other ways in which the disk fails are those of writing.
_OF_READING = (
    apsw.SQLITE_IOERR_READ,
    apsw.SQLITE_IOERR_SHORT_READ,
    apsw.SQLITE_IOERR_FSTAT,
    apsw.SQLITE_IOERR_CORRUPTFS,
)


class Opening(msgspec.Struct, frozen=True):
    """How connections open the file; never a new one in the place of one."""

    name: str
    flags: int = apsw.SQLITE_OPEN_READWRITE
    vfs: str | None = None

    @classmethod
    def for_reading(cls, path: Path, reason: str) -> Opening:
        """How a file is opened that nobody can write.

        On a full disk the index of the journal is kept in memory, which only one process can do.
        On a disk that is read-only a journal is read where it is; without one nothing can change.
        """
        if reason != READ_ONLY:
            return cls(str(path), vfs="unix-excl")
        immutable = "" if _size_of(Path(f"{path}-wal")) else "&immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return cls(f"file:{quote(str(path))}?mode=ro{immutable}", flags)

    def connect(self) -> apsw.Connection:
        """A new connection to the file, with this server's settings and functions."""
        return apsw.Connection(
            self.name, flags=self.flags, vfs=self.vfs, statementcachesize=STATEMENT_CACHE
        )


class SqliteSession:
    """A connection inside a transaction.  Cursors are read to their end before the next write."""

    def __init__(
        self, driver: apsw.Connection, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.driver = driver
        self.dialect: Dialect = DIALECT
        self._monotonic = monotonic
        self._end = math.inf
        self._room_bytes: int | None = None
        self._version: int | None = None
        self._derived: dict[object, Any] = {}
        self._has_scratch = False
        untyped: Any = driver  # the driver's own stub names a type that Python 3.11 lacks
        self.run: Callable[..., Iterator[Line]] = untyped.execute
        self._executemany: Callable[..., Iterator[Line]] = untyped.executemany
        self.pragma: Callable[[str, int | str | bool], object] = untyped.pragma

    def look_for_writes(self) -> None:
        """Forget what was made of an older state, whichever process wrote since.

        Called where a snapshot begins: the number is that of the state that the snapshot shows.
        """
        version = self.value("PRAGMA data_version")
        if version != self._version or len(self._derived) > MOST_DERIVED:
            self._version, self._derived = version, {}

    @property
    def derived(self) -> MutableMapping[object, Any]:
        """Of a connection that only reads: a write of its own would not change the number."""
        return {} if self._version is None else self._derived

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[Line]:
        """Execute, and give all lines."""
        if self._room_bytes is None:
            return list(self.run(sql, params))
        return list(self._within_room(self.run(sql, params)))

    def first(self, sql: str, params: Sequence[Value] = ()) -> Line | None:
        """The first line, if there is one."""
        for line in self.run(sql, params):
            return line
        return None

    def _within_room(self, lines: Iterator[Line]) -> Iterator[Line]:
        """A brief read has so many bytes of records to work on; they come last in their lines."""
        for line in lines:
            text = line[-1]
            if type(text) is bytes and self._room_bytes is not None:
                self._room_bytes -= len(text)
                if self._room_bytes < 0:
                    raise PastBudget
            yield line

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first line, `None` without lines."""
        line = self.first(sql, params)
        return None if line is None else line[0]

    def several(self, statements: Sequence[tuple[str, Sequence[Value]]]) -> list[list[Line]]:
        """One after the other."""
        return [self.rows(sql, params) for sql, params in statements]

    def many(self, sql: str, params: Iterable[Sequence[Value]]) -> None:
        """Execute once per parameter list."""
        for _ in self._executemany(sql, params):
            pass

    def add(self, table: str, columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> None:
        """One after the other by one statement."""
        placeholders = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})", lines)  # noqa: S608

    @property
    def changed(self) -> int:
        """How many lines the last statement wrote."""
        return self.driver.changes()

    @property
    def total_changed(self) -> int:
        """How many lines were written since the connection was opened."""
        return self.driver.total_changes()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.driver.in_transaction

    def limit(self, timeout_seconds: float | None) -> None:
        """Interrupt statements from that many seconds after now (`None`: never)."""
        self._room_bytes = None
        self._end_at(math.inf if timeout_seconds is None else self._monotonic() + timeout_seconds)

    def limit_briefly(self) -> None:
        """Interrupt statements that together take more than a brief read may."""
        self._room_bytes = BRIEF_BYTES
        self._end = end = self._monotonic() + BRIEF_SECONDS
        calls = itertools.count(1)

        def overdue() -> bool:
            return next(calls) > BRIEF_PROGRESS or self._monotonic() > end

        self.driver.set_progress_handler(overdue, PROGRESS_STEPS)

    @contextmanager
    def scratch(self) -> Generator[None, None, None]:
        """In memory; what is made for this connection alone is no write to the file."""
        if self._room_bytes is not None:
            raise PastBudget
        self._has_scratch = True
        self.pragma("query_only", False)
        try:
            yield
        finally:
            self.pragma("query_only", True)

    def forget_scratch(self) -> None:
        """Drop what was made in `scratch`; an index goes with its table."""
        if not self._has_scratch:
            return
        self.pragma("query_only", False)
        # a word index drops the tables that it lies in
        for kind in ("sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite_%'"):
            find_tables = f"SELECT name FROM temp.sqlite_schema WHERE type = 'table' AND {kind}"  # noqa: S608
            for (name,) in self.rows(find_tables):
                self.run(f"DROP TABLE {SCRATCH}{name}")
        self.pragma("query_only", True)
        self._has_scratch = False

    def check(self) -> None:
        """For reads that work between their lines: the time limit holds for that work too."""
        if self._monotonic() > self._end:
            raise apsw.InterruptError

    def attempt(self, timeout_seconds: float, read: Callable[[], T]) -> T | None:
        """What reads find that have less time than the rest; `None` when it was too little."""
        if self._room_bytes is not None:
            raise PastBudget
        end = self._end
        self._end_at(min(end, self._monotonic() + timeout_seconds))
        try:
            return read()
        except apsw.InterruptError:
            if self._monotonic() > end:
                raise
            return None
        finally:
            self._end_at(end)

    def _end_at(self, end: float) -> None:
        self._end = end
        overdue = None if end == math.inf else lambda: self._monotonic() > end
        self.driver.set_progress_handler(overdue, PROGRESS_STEPS)


MANY_LINES, SOME_LINES = 1_000_000, 20


def describe_indexes(session: SqliteSession) -> None:
    """Tell the planner that all lines have the same subject, and many the same feed.

    It takes a value of a first column for a rare one, and so would read all lines of a subject
    rather than use an index on the subject and something else.
    """
    session.run("ANALYZE sqlite_schema")  # makes the table of figures, and counts nothing
    led = session.rows(
        "SELECT t.name, i.name, i.origin, (SELECT count(*) FROM pragma_index_info(i.name)),"
        " EXISTS (SELECT 1 FROM pragma_index_info(i.name) WHERE seqno = 1 AND name = 'feed_id')"
        " FROM sqlite_schema AS t, pragma_index_list(t.name) AS i"
        " WHERE t.type = 'table' AND EXISTS (SELECT 1 FROM pragma_index_info(i.name)"
        " WHERE seqno = 0 AND name = 'subject_id')"
    )
    for table, index, origin, columns, of_feed in led:
        name = table if origin == "pk" else index
        figures = [MANY_LINES] * (2 + of_feed) + [SOME_LINES] * (columns - 1 - of_feed)
        session.run("DELETE FROM sqlite_stat1 WHERE tbl = ? AND idx = ?", (table, name))
        told = (table, name, " ".join(map(str, figures)))
        session.run("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", told)


class SqliteDatabase(PageMemory):
    """An open SQLite file.

    `readers` bounds how many reads run at once, further ones wait; `serving` claims the file for
    the one server, whose processes share the `claim` of whoever started them; `before_migration`
    runs when an existing file is about to take steps.
    """

    def __init__(
        self,
        path: Path,
        steps: Sequence[Step] | None = None,
        *,
        before_migration: BeforeMigration = lambda _: None,
        readers: int = 8,
        serving: bool = False,
        claim: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._monotonic = monotonic
        self._opened_with = Opening(str(path))
        self.is_read_only = False
        self._journal_holds_erased = False
        self.damage = DamageNotes()
        self._claimed = claim
        self._turns = Turns(path.parent)
        self._write_lock = threading.Lock()
        self._has_written = threading.Event()
        self.idle: queue.LifoQueue[SqliteSession | None] = queue.LifoQueue()
        for _ in range(readers):
            self.idle.put(None)
        self._brief: queue.LifoQueue[SqliteSession | None] = queue.LifoQueue()
        self._brief.put(None)
        try:
            try:
                self._begin(serving, known_steps() if steps is None else steps, before_migration)
            except StorageReadOnly as refusal:
                self._begin_reading(serving, known_steps() if steps is None else steps, refusal)
        except BaseException:
            self._release()
            raise

    def _begin(self, serving: bool, steps: Sequence[Step], before: BeforeMigration) -> None:
        make_private(self.path)
        self.writability = Writability(self.path, logs=serving)
        if serving and self._claimed is None:
            self._claimed = claim_file(self.path)
        self._writer = self._open(self.writer_kib)
        try:
            with translated():
                self._writer.pragma("journal_mode", "wal")
                if serving:
                    # what was erased before a crash may still stand in the journal
                    self._truncate_journal()
            self._migrate(steps, before)
        except BaseException:
            self._writer.driver.close()
            raise

    def _begin_reading(
        self, serving: bool, steps: Sequence[Step], refusal: StorageReadOnly
    ) -> None:
        """Open what can only be read.  Raises: the refusal, where there is nothing to read."""
        if not _size_of(self.path):
            raise refusal
        self.writability = Writability(self.path, logs=serving)
        reason = str(refusal.members["reason"])
        self.writability.refused(reason, refusal)
        self._opened_with = Opening.for_reading(self.path, reason)
        self.is_read_only = True
        self._writer = self._open(self.writer_kib)
        with translated(), _transaction(self._writer, "BEGIN"):
            if missing_steps(self._writer, steps).steps:
                raise refusal

    @contextmanager
    def _writing(self) -> Generator[None, None, None]:
        """What every write has around it."""
        self.writability.require_place()
        written = self._written
        with self._write_lock, self.writability.observed(written), translated(self.damage):
            if self.is_read_only:
                trouble = self.writability.trouble
                raise read_only(trouble.reason if trouble else READ_ONLY)
            yield
        self._has_written.set()

    def await_write(self, timeout_seconds: float) -> bool:
        """Other processes say nothing: what they wrote is looked for each time."""
        self._has_written.wait(timeout_seconds)
        self._has_written.clear()
        return True

    @contextmanager
    def _transaction(self) -> Generator[SqliteSession, None, None]:
        """A transaction of the writing connection, when it is its turn."""
        with self._turns.taken():
            self._writer.run("BEGIN IMMEDIATE")
        with _ended(self._writer):
            yield self._writer

    def _written(self) -> int:
        return self._writer.total_changed

    def probe(self) -> None:
        """After a refused write, try a small one; without one, nothing.

        Raises: StorageUnavailable.
        """
        if self.writability.trouble is None or self.is_read_only:
            return
        with self._writing(), self._transaction():
            version = self._writer.value("PRAGMA user_version")
            self._writer.run(f"PRAGMA user_version = {int(version)}")
        self.writability.succeeded()

    @contextmanager
    def write(self) -> Generator[SqliteSession, None, None]:
        """One write transaction: committed when the block ends, undone when it raises."""
        with self._writing(), self._transaction() as session:
            yield session

    @contextmanager
    def write_soon(self) -> Generator[SqliteSession, None, None]:
        """A write that a power cut may undo: it does not wait for the disk."""
        with self._writing():
            self._writer.pragma("synchronous", "normal")
            try:
                with self._transaction() as session:
                    yield session
            finally:
                self._writer.pragma("synchronous", "full")

    @contextmanager
    def erase(self) -> Generator[SqliteSession, None, None]:
        """A write whose removed content leaves the journal, too, as it leaves the file.

        While others read an older state the journal keeps what they see; `empty_journal` is for
        when they are done.
        """
        with self._writing():
            with self._transaction() as session:
                yield session
            self._truncate_journal()

    def empty_journal(self) -> None:
        """Take out of the journal what was erased while others read, as soon as that can be."""
        if self._journal_holds_erased:
            with self._writing():
                self._truncate_journal()

    @contextmanager
    def read(self, timeout_seconds: float | None = None) -> Generator[SqliteSession, None, None]:
        """One read snapshot, interrupted when its statements pass the time limit."""
        reader = self.idle.get()
        try:
            with translated(self.damage):
                reader = reader or self._open(self.reader_kib, reader=True)
                reader.limit(timeout_seconds)
                with _transaction(reader, "BEGIN"):
                    reader.look_for_writes()
                    yield reader
                    reader.limit(None)
                    reader.forget_scratch()
        finally:
            if reader is not None:
                reader.limit(None)
            self.idle.put(reader)

    @contextmanager
    def read_briefly(self) -> Generator[SqliteSession, None, None]:
        """One read snapshot for who must not wait: nothing in it waits, and its work is bounded.

        Raises: PastBudget, also where another one is under way.
        """
        try:
            reader = self._brief.get_nowait()
        except queue.Empty:
            raise PastBudget from None
        try:
            with translated(self.damage):
                if reader is None:
                    reader = self._open(self.reader_kib, reader=True)
                    reader.driver.set_busy_timeout(0)
                reader.limit_briefly()
                try:
                    with _transaction(reader, "BEGIN"):
                        reader.look_for_writes()
                        yield reader
                except (apsw.InterruptError, apsw.BusyError, apsw.LockedError):
                    raise PastBudget from None
        finally:
            if reader is not None:
                reader.limit(None)
            self._brief.put(reader)

    def wipe_words(self, index: str) -> None:
        """Merge the index to one segment, a little per transaction; others write meanwhile."""
        pages = -PAGES_MERGED
        while self._merge(index, pages, self.write):
            pages = PAGES_MERGED
        with self._writing():
            self._truncate_journal()

    def merge_words(self, index: str) -> bool:
        """Merge segments of about the same size (the index merges two as soon as there are two)."""
        return self._merge(index, PAGES_MERGED, self.write_soon)

    def _merge(
        self, index: str, pages: int, begin: Callable[[], AbstractContextManager[SqliteSession]]
    ) -> bool:
        """One step; a negative number begins to merge everything.  Whether it did work."""
        with self.few_pages(), begin() as session:
            if session.first(session.dialect.find_table, (index,)) is None:
                return False
            before = session.total_changed
            session.run(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
            return session.total_changed - before >= 2

    def copy_to(self, path: Path) -> None:
        """As `copy_database`."""
        self.writability.require_place()
        copy_database(self.path, path)

    def sizes(self) -> tuple[int, int]:
        """Of the file and of its journal."""
        return _size_of(self.path), _size_of(Path(f"{self.path}-wal"))

    def check(self) -> bool:
        """Whether every page and index of the file is sound."""
        with self.read() as session:
            return session.value("PRAGMA quick_check(1)") == "ok"

    def search(self, reader: Reader, plan: SearchPlan) -> Matches:
        """Full text of FTS5."""
        return search(reader, plan, FtsPart)

    def count_terms(self, reader: Reader, plan: SearchPlan) -> tuple[int, ...] | None:
        """The same."""
        return count_terms(reader, plan, FtsPart)

    def indexed_words(self, session: Session, index: str) -> Iterator[tuple[bytes, int, int]]:
        """(word, id, place) of everything in a word index.

        Raises: StorageUnavailable, if it is damaged.
        """
        with translated():
            # what is made for this connection alone is no write to the file
            session.run("PRAGMA query_only = 0")
            session.run(f"CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, {index}, instance)")
            try:
                yield from session.run("SELECT CAST(term AS BLOB), doc, offset FROM temp.words")
            finally:
                session.run("DROP TABLE temp.words")
                session.run("PRAGMA query_only = 1")

    def pragma(self, name: str, value: int | str | bool) -> None:
        """Set a pragma of the writing connection, outside any transaction."""
        with self._write_lock, translated():
            self._writer.pragma(name, value)

    def close(self) -> None:
        """Close every connection.  Call when no read or write is under way.

        A server leaves everything in the one file, whoever else has it open.
        """
        for idle in (self.idle, self._brief):
            while not idle.empty():
                reader = idle.get_nowait()
                if reader is not None:
                    reader.driver.close()
        if self._claimed is not None and not self.is_read_only:
            self._leave_one_file()
        self._writer.driver.close()
        self._turns.close()
        self._release()

    def _migrate(self, steps: Sequence[Step], before: BeforeMigration) -> None:
        """Take every missing step, all in one transaction."""
        with translated(), _transaction(self._writer, "BEGIN"):
            missing = missing_steps(self._writer, steps)
        if not missing.steps:
            return
        with nullcontext() if missing.is_new else self._unserved():
            if not missing.is_new:
                before([step.name for step in missing.steps])
            with self.write() as session:
                # what another process took while this one waited is not taken twice
                take_steps(session, steps)
                describe_indexes(session)

    @contextmanager
    def _unserved(self) -> Generator[None, None, None]:
        """While no other server works on the file: its tables are not changed under one."""
        claimed = claim_file(self.path) if self._claimed is None else None
        try:
            yield
        finally:
            if claimed is not None:
                os.close(claimed)

    def _leave_one_file(self) -> None:
        try:
            (busy, *_), *_ = self._writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        except apsw.Error as error:
            busy = type(error).__name__
        if busy:
            _log.warning("the newest writes stay in the journal beside the database: %s", busy)

    def _truncate_journal(self) -> None:
        """Bring everything into the file and empty its journal, unless others still read it."""
        self._writer.driver.set_busy_timeout(0)
        (busy, *_), *_ = self._writer.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        wait_for_others(self._writer.driver)
        self._journal_holds_erased = bool(busy)

    def _release(self) -> None:
        if self._claimed is not None:
            os.close(self._claimed)
            self._claimed = None

    def _open(self, cache_kib: int, *, reader: bool = False) -> SqliteSession:
        self.writability.require_place()
        with translated():
            connection = SqliteSession(
                self._opened_with.connect(),
                self._monotonic,
            )
            try:
                self._prepare(connection, cache_kib, reader=reader)
            except BaseException:
                connection.driver.close()
                raise
            return connection

    def _prepare(self, connection: SqliteSession, cache_kib: int, *, reader: bool) -> None:
        wait_for_others(connection.driver)
        connection.pragma("cache_size", -cache_kib)
        connection.pragma("foreign_keys", True)
        # What is removed is overwritten, also in pages that become free: a page may keep an old
        # version of what is erased later.  It costs half a percent of what an import writes.
        connection.pragma("secure_delete", True)
        connection.pragma("synchronous", "full")
        connection.pragma("temp_store", "memory")
        connection.pragma("journal_size_limit", JOURNAL_BYTES)
        if reader:
            connection.pragma("query_only", True)
        register(connection.driver)


def copy_database(path: Path, target: Path) -> None:
    """Write a consistent, durable copy while others read and write; nothing erased is in it."""
    with translated():
        source = SqliteSession(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE))
        try:
            source.driver.set_busy_timeout(BUSY_MS)
            source.rows("VACUUM INTO ?", (str(target),))
        finally:
            source.driver.close()
    target.chmod(0o600)
    for file in (target, target.parent):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def translated(damage: DamageNotes | None = None) -> Generator[None, None, None]:
    """Turn the driver's errors into ours, without its text; a damaged file is noted."""
    try:
        yield
    except apsw.InterruptError:
        raise QueryTimeout(
            "The read took too long. Use filters or a smaller limit.",
            retry_after_seconds=1,
        ) from None
    except (apsw.FullError, apsw.ReadOnlyError) as error:
        reason = DISK_FULL if isinstance(error, apsw.FullError) else READ_ONLY
        raise read_only(reason) from error
    except apsw.IOError as error:
        error_code = getattr(error, "extendedresult", None)
        if error_code in _OF_READING:
            raise StorageUnavailable(
                "The disk cannot be read. Check the disk; if it is lost, restore a backup."
            ) from error
        # where the index of the journal cannot grow, there is no space
        is_full = error_code == apsw.SQLITE_IOERR_SHMSIZE
        raise read_only(DISK_FULL if is_full else WRITE_FAILED) from error
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        # every text was stored as UTF-8; those of records are looked at one by one (`each_line`)
        if damage is not None and not isinstance(error, UnicodeDecodeError):
            damage.note_file()
        raise StorageUnavailable(
            "The database file is damaged.",
            next_step="Restore a backup into an empty directory:"
            " PDPP_DATA_DIR=~/restored pdpp restore FILE",
        ) from error
    except (
        apsw.BusyError,
        apsw.LockedError,
        apsw.CantOpenError,
        apsw.PermissionsError,
        apsw.NoMemError,
    ) as error:
        raise StorageUnavailable(
            "The database cannot be used now. Repeat the call shortly.", retry_after_seconds=1
        ) from error


@contextmanager
def _transaction(connection: SqliteSession, begin: str) -> Generator[None, None, None]:
    connection.run(begin)
    with _ended(connection):
        yield


@contextmanager
def _ended(connection: SqliteSession) -> Generator[None, None, None]:
    """A transaction that has begun: committed when the block ends, undone when it raises."""
    try:
        yield
        connection.run("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.limit(None)
            connection.run("ROLLBACK")
        raise


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
