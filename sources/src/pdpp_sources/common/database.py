"""A SQLite file that a stranger made, read without trust in its schema and never written.

Source: sqlite.org/security.html, "Untrusted SQLite Database Files"; of the log that lies beside a
database while its program has it open (`-wal`): sqlite.org/fileformat2.html 4.

SQLite gets the bytes from `_PagedFile` and opens no file by itself: so a database inside a zip and
one whose newest pages stand in the log beside it are read as any other.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from typing import BinaryIO, cast

import apsw
import msgspec

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import MemberDamaged
from pdpp_sources.common.export import FAILURES, Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import decoded
from pdpp_sources.export_files import BESIDE, SQLITE

LARGEST_VALUE_BYTES = 16 * 1024 * 1024
LARGEST_PACKED_BYTES = 64 * 1024 * 1024
MOST_COLUMNS = 2_000  # a schema with more is not even parsed, and no table of the file read
Cell = int | float | str | bytes | None
_ALLOWED = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION})
_SWITCHES = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
}
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: LARGEST_VALUE_BYTES,
    apsw.SQLITE_LIMIT_COLUMN: MOST_COLUMNS,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_ROW_NAMES = ("rowid", "_rowid_", "oid")
_BEFORE_ALL = -(2**63)
_LISTED = "SELECT name, type, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema ORDER BY name"
_OWN = "sqlite_"
# Columns of the answers to `PRAGMA table_xinfo` and `PRAGMA table_list`.
_KEY, _HIDDEN, _WITHOUT_ROW_NUMBERS = 5, 6, 4
_LOG, _JOURNAL = "-wal", "-journal"


class DatabaseUnreadable(Exception):
    """The file is damaged, encrypted, or asks for what is refused; the words say what to do."""

    def __init__(
        self, next_step: str = message("Export the database again, or repair it first.")
    ) -> None:
        super().__init__(next_step)
        self.next_step = next_step


class RowTooLarge(Exception):
    """A row holds, or makes, a value beyond the limit."""


class DatabaseTable(msgspec.Struct, frozen=True):
    """One table: its columns, the one that names a row, and how its rows are numbered."""

    name: str
    columns: tuple[str, ...]
    key: str | None
    row_name: str | None
    row_count: int


def is_database(head: bytes) -> bool:
    """Whether a file begins as SQLite's do."""
    return head.startswith(SQLITE)


def beside(export: Export, member: ExportMember) -> tuple[ExportMember, ...]:
    """The files that SQLite keeps beside a database while it is open."""
    members = (export.member(member.name + ending) for ending in BESIDE)
    return tuple(companion for companion in members if companion is not None)


@contextmanager
def opened(export: Export, member: ExportMember) -> Generator[ForeignDatabase]:
    """A database as it is now, with what its log says. Raises: DatabaseUnreadable."""
    try:
        with closing(_PagedFile(export, member)) as pages, closing(_connected(pages)) as connection:
            yield ForeignDatabase(connection)
    except (apsw.Error, MemberDamaged, UnicodeDecodeError):
        raise DatabaseUnreadable from None


class ForeignDatabase:
    """One open database, of which nothing but tables can be asked."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def table_names(self) -> list[str]:
        """The names of its tables in their order."""
        listed = self._asked(_LISTED)
        return [str(n) for n, kind, virtual in listed if kind == "table" and _is_stored(n, virtual)]

    def computed_names(self) -> list[tuple[str, str]]:
        """What would have to be computed to be read, and what it is: views and virtual tables."""
        return [
            (str(name), "view" if kind == "view" else "virtual table")
            for name, kind, virtual in self._asked(_LISTED)
            if kind == "view" or (kind == "table" and virtual)
        ]

    def column_names(self, table: str) -> tuple[str, ...]:
        """The columns of a table; none if there is no such table."""
        described = self._asked(f"PRAGMA table_xinfo({quoted(table)})")
        return tuple(str(row[1]) for row in described if row[_HIDDEN] != 1)

    def table(self, name: str) -> DatabaseTable:
        """All about a table. Raises: DatabaseUnreadable, where it cannot be read at all."""
        try:
            return self._table(name)
        except (apsw.Error, UnicodeDecodeError):
            raise DatabaseUnreadable from None

    def _table(self, name: str) -> DatabaseTable:
        described = list(self._asked(f"PRAGMA table_xinfo({quoted(name)})"))
        visible = [row for row in described if row[_HIDDEN] != 1]
        columns = tuple(str(row[1]) for row in visible)
        keys = [str(row[1]) for row in visible if row[_KEY]]
        [listed] = self._asked(f"PRAGMA table_list({quoted(name)})")
        used_names = {column.lower() for column in columns}
        row_name = next((name for name in _ROW_NAMES if name not in used_names), None)
        [[rows]] = self._asked(f"SELECT count(*) FROM {quoted(name)}")  # noqa: S608 (quoted)
        key = keys[0] if len(keys) == 1 else None
        row_name = None if listed[_WITHOUT_ROW_NUMBERS] else row_name
        return DatabaseTable(name, columns, key, row_name, int(str(rows)))

    def rows_of(self, table: DatabaseTable) -> Iterator[Sequence[Cell] | RowTooLarge]:
        """The rows of a table in their order.

        Raises: DatabaseUnreadable, where the rest is damaged.
        """
        columns = [f"t.{quoted(column)}" for column in table.columns]
        try:
            if table.row_name is None:
                yield from self._asked(f"SELECT {', '.join(columns)} FROM {quoted(table.name)} t")  # noqa: S608 (quoted)
            else:
                origin = f"FROM {quoted(table.name)} t"
                yield from self._numbered_rows(columns, origin, f"t.{table.row_name}")
        except (apsw.Error, UnicodeDecodeError):
            raise DatabaseUnreadable from None

    def rows(
        self, table: str, columns: Mapping[str, str], joins: str = ""
    ) -> Iterator[dict[str, Cell] | RowTooLarge]:
        """What a program of ours wants of each row of a table, `t`, in their order.

        Shapes: `columns` are expressions of SQL by their names, never taken from a file.
        Raises: DatabaseUnreadable, where the rest is damaged.
        """
        origin = f"FROM {quoted(table)} t {joins}"
        try:
            for cells in self._numbered_rows(list(columns.values()), origin, "t.rowid"):
                if isinstance(cells, RowTooLarge):
                    yield cells
                else:
                    yield dict(zip(columns, cells, strict=True))
        except (apsw.Error, UnicodeDecodeError):
            raise DatabaseUnreadable from None

    def _numbered_rows(
        self, columns: Sequence[str], origin: str, row_name: str
    ) -> Iterator[Sequence[Cell] | RowTooLarge]:
        """Rows by their numbers, so that one that cannot be read costs no other."""
        own = f"{origin} WHERE {row_name}"
        every = f"SELECT {', '.join([row_name, *columns])} {own} >= ? ORDER BY {row_name}"
        at = _BEFORE_ALL
        while True:
            try:
                for number, *cells in self._asked(every, at):
                    at = int(str(number)) + 1
                    BOOKMARK.goes_on()
                    yield cells
            except apsw.TooBigError:
                yield RowTooLarge()
            except UnicodeDecodeError:
                yield self._as_written(columns, own, self._number(own, row_name, at))
            else:
                return
            at = self._number(own, row_name, at) + 1

    def _number(self, own: str, row_name: str, at: int) -> int:
        """The number of the first row from one on. Raises: DatabaseUnreadable."""
        for (number,) in self._asked(f"SELECT min({row_name}) {own} >= ?", at):
            if isinstance(number, int):
                return number
        raise DatabaseUnreadable

    def _as_written(self, columns: Sequence[str], own: str, number: int) -> Sequence[Cell]:
        """A row whose text is not UTF-8: its bytes are decoded as those of any file."""
        cells = [
            f"typeof({name}) = 'text', CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB)"
            f" ELSE {name} END"
            for name in columns
        ]
        [row] = self._asked(f"SELECT {', '.join(cells)} {own} = ?", number)
        pairs = zip(row[::2], row[1::2], strict=True)
        return [decoded(c) if is_text and isinstance(c, bytes) else c for is_text, c in pairs]

    def _asked(self, statement: str, *values: int) -> Iterator[Sequence[Cell]]:
        """The rows of a statement, typed as SQLite's values are."""
        return _asked(self._connection, statement, *values)


def quoted(name: str) -> str:
    """A name as SQL writes it. Raises: DatabaseUnreadable."""
    if "\x00" in name:
        raise DatabaseUnreadable
    return '"' + name.replace('"', '""') + '"'


def _is_stored(name: Cell, virtual: Cell) -> bool:
    return not virtual and not str(name).startswith(_OWN)


def _asked(connection: apsw.Connection, statement: str, *values: int) -> Iterator[Sequence[Cell]]:
    run = cast("Callable[[str, tuple[int, ...]], Iterator[Sequence[Cell]]]", connection.execute)  # pyright: ignore[reportUnknownMemberType]
    return run(statement, values)


def _connected(pages: _PagedFile) -> apsw.Connection:
    """A connection that reads those pages, for nothing but reading tables."""
    name = _DOOR.admit(pages)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{name}?mode=ro&immutable=1", flags=flags, vfs=_DOOR.name)
    try:
        for switch, value in _SWITCHES.items():
            connection.config(switch, value)
        for limit, most in _LIMITS.items():
            connection.limit(limit, most)
        for pragma in ("cell_size_check = 1", "temp_store = memory", "mmap_size = 0"):
            list(_asked(connection, f"PRAGMA {pragma}"))
        connection.authorizer = _authorized
    except BaseException:
        connection.close()
        raise
    return connection


def _authorized(
    action: int, first: str | None, _second: str | None, _database: str | None, _by: str | None
) -> int:
    asks_columns = action == apsw.SQLITE_PRAGMA and first in ("table_xinfo", "table_list")
    return apsw.SQLITE_OK if action in _ALLOWED or asks_columns else apsw.SQLITE_DENY


class _PagedFile:
    """The bytes of a database: its file, and over it the pages that its log has committed.

    Raises: DatabaseUnreadable, MemberDamaged.
    """

    def __init__(self, export: Export, member: ExportMember) -> None:
        self._packed = export.is_packed
        self._opened: list[BinaryIO] = []
        self._newer: dict[int, tuple[BinaryIO, int]] = {}
        self.size_bytes = member.size_bytes
        try:
            self._base = self._content(member)
            head = self._base.read(_HEADER_BYTES)
            if not is_database(head):
                raise DatabaseUnreadable
            (size,) = struct.unpack_from(">H", head, _PAGE_SIZE_AT)
            self._page_bytes = 65_536 if size == 1 else max(size, 1)
            if _is_hot(export.member(member.name + _JOURNAL)):
                raise DatabaseUnreadable(
                    "Start the program that this file belongs to, close the program, "
                    "and import the file again."
                )
            log = export.member(member.name + _LOG)
            if log is not None and log.size_bytes > _LOG_HEADER.size:
                self._take_log(self._content(log))
        except BaseException:
            self.close()
            raise

    def read(self, amount: int, at: int) -> bytes:
        """The bytes from a place on; fewer at the end."""
        content = b""
        while len(content) < amount and at + len(content) < self.size_bytes:
            page, within = divmod(at + len(content), self._page_bytes)
            piece_bytes = min(amount - len(content), self._page_bytes - within)
            stream, begin = self._newer.get(page + 1, (self._base, page * self._page_bytes))
            try:
                stream.seek(begin + within)
                chunk = stream.read(piece_bytes)
            except FAILURES:
                raise MemberDamaged from None
            if not chunk:
                break
            content += chunk
        if at <= _FORMAT_AT < at + len(content):  # the log is merged here: say there is none
            cut = _FORMAT_AT - at
            content = content[:cut] + b"\x01\x01"[: len(content) - cut] + content[cut + 2 :]
        return content[:amount]

    def close(self) -> None:
        """Leave the files."""
        for stream in self._opened:
            stream.close()

    def _content(self, member: ExportMember) -> BinaryIO:
        """The bytes of a file, which one in a zip is unpacked for, within bounds."""
        if self._packed and member.size_bytes > LARGEST_PACKED_BYTES:
            raise DatabaseUnreadable("Unpack the zip, and import the unpacked file.")
        try:
            if self._packed:
                with member.exact() as stream:
                    content: BinaryIO = io.BytesIO(stream.read(LARGEST_PACKED_BYTES))
            else:
                content = member.opener()
        except FAILURES:
            raise MemberDamaged from None
        self._opened.append(content)
        return content

    def _take_log(self, log: BinaryIO) -> None:
        """Know the last page of each number up to the last commit whose sums are right."""
        head = log.read(_LOG_HEADER.size)
        magic, _, size, _, *salts, first, second = _LOG_HEADER.unpack(head)
        if magic & ~1 != _LOG_MAGIC or size != self._page_bytes:
            return
        order = ">" if magic & 1 else "<"
        sums = _summed(order, head[:-8], (0, 0))
        if sums != (first, second):
            return
        pending: dict[int, tuple[BinaryIO, int]] = {}
        while len(head := log.read(_FRAME_HEADER.size)) == _FRAME_HEADER.size:
            number, pages, *own_salts, first, second = _FRAME_HEADER.unpack(head)
            begin = log.tell()
            body = log.read(size)
            if own_salts != salts or len(body) < size:
                return
            sums = _summed(order, head[:8] + body, sums)
            if sums != (first, second):
                return
            pending[number] = (log, begin)
            if pages:
                self._newer |= pending
                self.size_bytes = pages * size
                pending = {}


_HEADER_BYTES, _PAGE_SIZE_AT, _FORMAT_AT = 100, 16, 18
_LOG_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
_LOG_MAGIC = 0x377F0682
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


def _is_hot(journal: ExportMember | None) -> bool:
    """Whether a program was stopped in the middle of a change."""
    return journal is not None and journal.size_bytes > 0 and journal.head(8) == _JOURNAL_MAGIC


def _summed(order: str, content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """The running sums of a log. Source: sqlite.org/fileformat2.html 4.2."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    BOOKMARK.goes_on()
    return first, second


class _OpenPages:
    """A file as SQLite asks for it: only ever read."""

    def __init__(self, pages: _PagedFile) -> None:
        self._pages = pages

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 (SQLite's name)
        try:
            return self._pages.read(amount, offset)
        except MemberDamaged:
            raise apsw.IOError from None

    def xFileSize(self) -> int:  # noqa: N802
        return self._pages.size_bytes

    def xClose(self) -> None:  # noqa: N802
        """The pages are closed by whoever opened them."""

    def xLock(self, level: int) -> None:  # noqa: N802
        """Nobody else has it open."""

    def xUnlock(self, level: int) -> None:  # noqa: N802
        """Nobody else has it open."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, *_: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return apsw.SQLITE_IOCAP_IMMUTABLE


class _Door(apsw.VFS):
    """What SQLite knows of files: the pages it was given, and no others."""

    name = "pdpp-pages"

    def __init__(self) -> None:
        super().__init__(self.name, base="")
        self._waiting: dict[str, _PagedFile] = {}
        self._numbers = count(1)

    def admit(self, pages: _PagedFile) -> str:
        """The name under which those pages can be opened once."""
        name = f"database-{next(self._numbers)}"
        self._waiting[name] = pages
        return name

    def xOpen(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride] (it need not be a file)
        self, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> _OpenPages:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        pages = self._waiting.pop(path or "", None)
        if pages is None:
            raise apsw.CantOpenError
        flags[1] = apsw.SQLITE_OPEN_READONLY
        return _OpenPages(pages)

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: ARG002, N802
        return False


_DOOR = _Door()
