"""A session with PostgreSQL inside a transaction: statements, values in and out.

Rule: values are parameters of the protocol, never text of a statement.  Numbers come back as they
were given: a `numeric` with a point is a double (`dialect.render_double`).
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from types import NoneType
from typing import Any, cast

import psycopg
from psycopg import RawCursor, errors
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.generators import fetch_many
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumper

from personal_server.storage.authorization_rows import ReadingSpanRow, ReadingWordsRow
from personal_server.storage.postgres.dialect import DIALECT, render_double
from personal_server.storage.sql.dialect import Dialect, Value
from personal_server.storage.sql.driver import Line, T
from personal_server.storage.sql.logs.disclosure_rows import (
    DisclosureDetailRow,
    DisclosureRow,
    DisclosureShareRow,
)

_log = logging.getLogger(__name__)
# So many lines are fetched at once where they are read as they come.
LINES_AT_ONCE = 500
Connection = psycopg.Connection[Line]
# A word of SQL that a column has as its name, and parameters; not those in quotes.
_TOKEN = re.compile(r"'[^']*'|\?(\d*)|\bgrant\b")
_READS = re.compile(r"\s*(SELECT|WITH)\b")
# Around lines in the binary format: its signature, no flags and no more of a head; the end.
_BINARY_BEGIN, _BINARY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
# What the server says of statements that write nothing.
_READING = ("SELECT", "FETCH", "DECLARE", "CLOSE")
# Nothing is kept that was read of these (`Derived`): a line more of them makes no other state, so
# that whoever reads now and then does not find everything forgotten since the last read was logged.
_LOGS = (DisclosureRow, DisclosureDetailRow, DisclosureShareRow, ReadingSpanRow, ReadingWordsRow)
_LOGGING = re.compile(
    rf"(INSERT INTO|UPDATE|DELETE FROM) ({'|'.join(str(row.table) for row in _LOGS)})\b"
)


class _DoubleDumper(Dumper):
    oid = psycopg.adapters.types["numeric"].oid

    def dump(self, obj: float) -> bytes:
        return render_double(obj).encode()


class _FlagDumper(Dumper):
    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class _NumberLoader(Loader):
    """The opposite of `render_double`."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text else int(text)


class _BytesLoader(Loader):
    def load(self, data: Buffer) -> bytes:
        return bytes(data)


class _TextDumper(StrDumper):
    """PostgreSQL holds no NUL; it is compared as U+FFFD everywhere (`domain.values.comparable`)."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(float, _DoubleDumper)
    adapters.register_dumper(bool, _FlagDumper)
    adapters.register_loader("numeric", _NumberLoader)
    adapters.register_loader("varchar", _BytesLoader)
    return adapters


def _rendered(lines: Sequence[Sequence[Value]]) -> bytes | str:
    """As `COPY` reads them; the driver would ask for the types of each value anew."""
    if isinstance(lines[0], bytes):
        return b"".join(cast("Sequence[bytes]", lines))
    return "".join(
        ["\t".join([_RENDERED[type(value)](value) for value in line]) + "\n" for line in lines]
    )


def _rendered_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return escaped.replace("\r", "\\r").replace("\0", "\ufffd")


class _Rendered(dict[type, Callable[[Any], str]]):
    """How values are written; those of a type's own children like the type's."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        self[kind] = next(self[ancestor] for ancestor in kind.__mro__[1:] if ancestor in self)
        return self[kind]


_RENDERED = _Rendered(
    {
        NoneType: lambda _: "\\N",
        str: _rendered_text,
        int: int.__repr__,
        bool: lambda flag: "1" if flag else "0",
        float: render_double,
        bytes: lambda content: f"\\\\x{content.hex()}",
    }
)


def connect_with(timeout_seconds: int) -> dict[str, Any]:
    """How sessions are opened: nothing is prepared, since a pooler may stand before the server."""
    return {
        "autocommit": True,
        "prepare_threshold": None,
        "context": _Adapting(),
        "client_encoding": "utf8",
        "connect_timeout": timeout_seconds,
        "application_name": "pdpp",
    }


class _Adapting:
    """What the driver asks for its adapters."""

    def __init__(self) -> None:
        self.adapters = _adapters()
        self.connection = None


@lru_cache(maxsize=4_096)
def translated_sql(sql: str) -> bytes:
    """A statement with parameters as PostgreSQL names them."""
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        sign = match.group()
        if sign[0] == "'":
            return sign
        if sign == "grant":
            return '"grant"'
        count += 1
        return f"${match.group(1) or count}"

    return _TOKEN.sub(numbered, sql).encode()


def is_ending(connection: Connection) -> bool:
    """Whether a read has ended there, and the server has not answered it yet."""
    return connection.info.transaction_status is TransactionStatus.ACTIVE


def settle(connection: Connection) -> None:
    """Wait for that answer, if there is one to come."""
    if is_ending(connection):
        connection.wait(fetch_many(connection.pgconn))


class WriteListener:
    """A session of its own that hears of every write.  A pooler would hand nothing on to it."""

    def __init__(self, url: str, channel: str, timeout_seconds: int) -> None:
        self._connection: Connection | None = None
        self._listen = f"LISTEN {channel}".encode()
        self._connect = partial(Connection.connect, url, **connect_with(timeout_seconds))
        self._has_failed = False

    def hear(self, timeout_seconds: float) -> bool | None:
        """Whether somebody may have written; `None`, at once, while there is nothing to hear."""
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._connection.execute(self._listen)
                self._has_failed = False
                return True
            return any(
                True for _ in self._connection.notifies(timeout=timeout_seconds, stop_after=1)
            )
        except psycopg.Error as error:
            if not self._has_failed:
                kind = error.sqlstate or type(error).__name__
                _log.warning(
                    ("the database does not announce writes, so the server polls for them: %s"),
                    kind,
                )
            self.close()
            self._has_failed = True
            return None

    def close(self) -> None:
        """End the session."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PostgresSession:
    """A connection inside a transaction."""

    def __init__(
        self,
        connection: Connection,
        derived: MutableMapping[object, Any] | None = None,
        timeout_seconds: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        other_session: Callable[[str], Connection] | None = None,
    ) -> None:
        self._derived = derived
        self._other_session = other_session
        self._before: bytes = b""
        self.dialect: Dialect = DIALECT
        self.has_changed = self._is_other_state = False
        self._own = self._connection = connection
        self._scratch: Connection | None = None
        self._cursor = RawCursor(connection)
        self._monotonic = monotonic
        self._cursors = 0
        self._limit: float = math.inf if timeout_seconds is None else timeout_seconds
        self._end: float = math.inf if timeout_seconds is None else monotonic() + timeout_seconds

    @property
    def derived(self) -> MutableMapping[object, Any]:
        """Of one state; whoever writes changes it."""
        return {} if self._derived is None else self._derived

    def run(self, sql: str, params: Sequence[Value] = ()) -> Iterator[Line]:
        """Execute, and give the lines as they come."""
        if _READS.match(sql):
            return self._each(sql, params)
        self._execute(sql, params)
        return iter(())

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[Line]:
        """Execute, and give all lines."""
        return self._execute(sql, params).fetchall()

    def first(self, sql: str, params: Sequence[Value] = ()) -> Line | None:
        """The first line, if there is one."""
        return self._execute(sql, params).fetchone()

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first line, `None` without lines."""
        line = self.first(sql, params)
        return None if line is None else line[0]

    def several(self, statements: Sequence[tuple[str, Sequence[Value]]]) -> list[list[Line]]:
        """Execute all, and wait once."""
        if len(statements) < 2:
            return [self.rows(*statement) for statement in statements]
        self._limit_statement()
        before, self._before = self._before, b""
        with self._connection.pipeline():
            for part in filter(None, before.split(b";")):
                self._connection.execute(part, prepare=False)
            cursors = [
                RawCursor(self._connection).execute(translated_sql(sql), params or None)
                for sql, params in statements
            ]
        return [cursor.fetchall() for cursor in cursors]

    def many(self, sql: str, params: Iterable[Sequence[Value]]) -> None:
        """Execute once per parameter list, without waiting between them."""
        self._cursor.executemany(translated_sql(sql), params)
        if self._cursor.rowcount > 0:
            self._note_change(sql)

    def add(self, table: str, columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> None:
        """As one stream of lines; bytes are lines as the binary format has them."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        waiting = iter(lines)
        some = list(islice(waiting, LINES_AT_ONCE))
        is_binary = bool(some) and isinstance(some[0], bytes)
        if is_binary:
            statement += " (FORMAT binary)"
        with self._cursor.copy(translated_sql(statement)) as copy:
            if is_binary:
                copy.write(_BINARY_BEGIN)
            while some:
                copy.write(_rendered(some))
                self._note_change(statement)
                some = list(islice(waiting, LINES_AT_ONCE))
            if is_binary:
                copy.write(_BINARY_END)

    @property
    def changed(self) -> int:
        """How many lines the last statement wrote."""
        return max(0, self._cursor.rowcount)

    @contextmanager
    def scratch(self) -> Generator[None, None, None]:
        """In a session that may write; temporary tables end with its transaction."""
        if self._scratch is None and self._other_session is not None:
            self._scratch = self._other_session(self.value("SELECT pg_export_snapshot()"))
            self._connection, self._cursor = self._scratch, RawCursor(self._scratch)
            self._say(_limit(self._limit))
        yield

    def check(self) -> None:
        """For reads that work between their lines: the time limit holds for that work too."""
        if self._monotonic() > self._end:
            raise errors.QueryCanceled

    def attempt(self, timeout_seconds: float, read: Callable[[], T]) -> T | None:
        """What reads find that have less time than the rest; `None` when it was too little."""
        end, limit, before = self._end, self._limit, self._before
        self._end = min(end, self._monotonic() + timeout_seconds)
        # what is only to be known before the next statement is said with it
        self._before = begun = before + b"SAVEPOINT attempt;"
        try:
            answer = read()
        except errors.QueryCanceled:
            if self._monotonic() > end:
                raise
            if self._connection.info.transaction_status is TransactionStatus.INERROR:
                self._say(b"ROLLBACK TO SAVEPOINT attempt; RELEASE SAVEPOINT attempt")
                self._limit = limit  # what was said behind it is undone with the rest
            elif self._before == begun:
                self._before = before
            return None
        else:
            if self._before == begun:
                self._before = before
                return answer
            self._before += b"RELEASE SAVEPOINT attempt;"
            return answer
        finally:
            self._end = end

    def commit(self, when_other: str) -> None:
        """End the transaction; what it wrote stays, and another state is told by further
        statements.
        """
        self._say(b"%b; COMMIT" % when_other.encode() if self._is_other_state else b"COMMIT")

    def end(self) -> None:
        """End the transaction, if it is not over; what it wrote is undone.

        Nobody waits for the end of a read: whoever takes the connection does (`settle`).
        """
        if self._scratch is not None:
            self._scratch.close()
        status = self._own.info.transaction_status
        # prepared statements are forgotten with what is undone
        if status is TransactionStatus.INTRANS and self._derived is not None:
            self._own.pgconn.send_query(b"COMMIT")
            self._own.pgconn.flush()
        elif status is TransactionStatus.INTRANS or status is TransactionStatus.INERROR:
            self._own.execute(b"ROLLBACK", prepare=False)

    def _each(self, sql: str, params: Sequence[Value]) -> Iterator[Line]:
        """By a cursor of the server, so that no more than some lines are in memory."""
        self._cursors += 1
        name = b"lines_%d" % self._cursors
        cursor = RawCursor(self._connection)
        self._limit_statement()
        self._say_before()
        cursor.execute(b"DECLARE %b NO SCROLL CURSOR FOR %b" % (name, translated_sql(sql)), params)
        lines: list[Line] = []
        while not cursor.description or len(lines) == LINES_AT_ONCE:
            self._limit_statement()
            self._say_before()
            lines = cursor.execute(b"FETCH %d FROM %b" % (LINES_AT_ONCE, name)).fetchall()
            yield from lines
        cursor.execute(b"CLOSE %b" % name)

    def _execute(self, sql: str, params: Sequence[Value]) -> RawCursor[Line]:
        self._limit_statement()
        if self._before:
            before, self._before = self._before, b""
            with self._connection.pipeline():
                for part in filter(None, before.split(b";")):
                    self._connection.execute(part, prepare=False)
                cursor = self._cursor.execute(translated_sql(sql), params or None)
        else:
            cursor = self._cursor.execute(translated_sql(sql), params or None)
        status = cursor.statusmessage or ""
        if cursor.rowcount != 0 and not status.startswith(_READING):
            self._note_change(sql)
        return cursor

    def _note_change(self, statement: str) -> None:
        self.has_changed = True
        self._is_other_state |= _LOGGING.match(statement) is None

    def _say_before(self) -> None:
        if self._before:
            before, self._before = self._before, b""
            self._say(before)

    def _limit_statement(self) -> None:
        """Each statement may take what is left, up to twice that; what else was told before is
        told anew, with the statement.
        """
        if self._end == math.inf:
            return
        seconds_left = self._end - self._monotonic()
        if seconds_left <= 0:
            raise errors.QueryCanceled
        if not seconds_left <= self._limit <= 2 * seconds_left:
            self._before += b"%b;" % _limit(seconds_left)
            self._limit = seconds_left

    def _say(self, sql: bytes) -> None:
        self._connection.execute(sql, prepare=False)


def _limit(seconds: float) -> bytes:
    """How long a statement may take from here on."""
    limit_ms = 0 if seconds == math.inf else max(1, math.ceil(seconds * 1_000))
    return b"SET LOCAL statement_timeout TO %d" % limit_ms
