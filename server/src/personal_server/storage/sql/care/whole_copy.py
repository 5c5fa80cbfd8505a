"""Everything of one database in another, table by table, and proven to be the same.

Each table is walked by its key, so that a copy that was ended goes on behind the last key that is
there.  At the end a digest of every table is taken on both sides; what the source changed while the
copy was interrupted is found by that and copied anew.  What follows from the rest is not copied:
word indexes are made from the texts, signs from the vectors, rebuilds (`rebuilds`) begin anew.

Rule: until it is whole the target has a table `moving`, and no server opens it.
Raises: CopyRefused, StorageUnavailable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

import msgspec

from pdpp_kernel.errors import StorageUnavailable
from personal_server.storage.checksums import line_sum
from personal_server.storage.feed_rows import FEED_ROWS
from personal_server.storage.notice_rows import NOTICE_ROWS
from personal_server.storage.sql.care.copy_mark import COPY_MARK, is_being_copied
from personal_server.storage.sql.driver import Database, Line, Session
from personal_server.storage.sql.fixed_tables import (
    ErasedRow,
    FactRow,
    PassageBlockRow,
    PassageIndexRow,
    PassageRow,
    PassageSignsRow,
    RebuildRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.migrations import known_steps, tables_of
from personal_server.storage.sql.record_tables import create_tables, drop_tables
from personal_server.storage.sql.records.passages import put_signs
from personal_server.storage.sql.records.word_index import marked_words
from personal_server.storage.sql.records.written_rows import NewLines
from personal_server.storage.sql.source_tables import checked_data
from personal_server.storage.sql.statements import SUBJECT
from personal_server.storage.sql.stored_layouts import parse_layout
from personal_server.storage.tables import ColumnKind, StoredRow, StoredTable

LINES_AT_ONCE = 500
_SIGNS = (PassageSignsRow.table, PassageBlockRow.table)
_DERIVED = frozenset({RebuildRow.table, ErasedRow.table, *_SIGNS})
_OF_SOURCES = f"tables IN (SELECT {SourceRow.tables} FROM {SourceRow.table})"  # noqa: S608
_ONLY = {
    # PostgreSQL counts its states there
    StoreRow.table: f"{StoreRow.name} <> 'state'",
    # tables of a rebuild have passages, too
    PassageRow.table: _OF_SOURCES,
    PassageIndexRow.table: _OF_SOURCES,
}
_SIGNED = (
    PassageRow.tables,
    PassageRow.field,
    PassageRow.id,
    PassageRow.place,
    PassageRow.vector,
)
_EPOCH = f"SELECT {FactRow.said} FROM {FactRow.table} WHERE {FactRow.name} = 'epoch'"  # noqa: S608
_MARKED = f"SELECT epoch FROM {COPY_MARK}"  # noqa: S608
_SOURCES = (
    f"SELECT {SourceRow.source}, {SourceRow.connection_id}, {SourceRow.stream},"  # noqa: S608
    f" {SourceRow.tables}, {SourceRow.layout} FROM {SourceRow.table} ORDER BY {SourceRow.source}"
)
_FORGET_SOURCE = f"DELETE FROM {SourceRow.table} WHERE {SourceRow.source} = ?"  # noqa: S608
_EVERY_LINE = "1 = 1"
Tell = Callable[[str, int, int], None]
"""Told the name of a table, how many of its lines are copied, and how many there are."""


def silently(name: str, done: int, count: int) -> None:
    """Report no progress."""


class CopyRefused(StorageUnavailable):
    """The target holds something else, or is not the same as the source in the end."""


class CopiedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table in the order of its key, or those of its lines that meet a condition (`only`)."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    origin: str
    only: str = _EVERY_LINE
    numbered: str | None = None

    @classmethod
    def of(cls, table: StoredTable) -> CopiedTable:
        """Every column of all lines, but for those that follow from others."""
        led = (SUBJECT,) if table.by_subject else ()
        numbered = next((each.name for each in table.columns if each.numbered), None)
        return cls(
            name=table.name,
            columns=(*led, *table.names),
            key=(*led, *table.key),
            origin=table.name,
            only=_ONLY.get(table, _EVERY_LINE),
            numbered=numbered,
        )

    def count(self, session: Session) -> int:
        """How many lines there are."""
        return int(session.value(f"SELECT count(*) FROM {self.origin} WHERE {self.only}"))  # noqa: S608

    def lines(self, session: Session, after: Line | None = None) -> Iterator[Line]:
        """The lines behind a key, as they come."""
        key, marks = ", ".join(self.key), ", ".join("?" * len(self.key))
        behind = f" AND ({key}) > ({marks})" if after else ""
        named = ", ".join(self.columns)
        sql = f"SELECT {named} FROM {self.origin} WHERE {self.only}{behind} ORDER BY {key}"  # noqa: S608
        return session.run(sql, after or ())

    def last(self, session: Session) -> Line | None:
        """The highest key of the lines in the origin, or `None` where there are none."""
        key, down = ", ".join(self.key), ", ".join(f"{name} DESC" for name in self.key)
        sql = f"SELECT {key} FROM {self.origin} WHERE {self.only} ORDER BY {down} LIMIT 1"  # noqa: S608
        return session.first(sql)

    def put(self, session: Session, lines: Sequence[Line]) -> None:
        """Write lines."""
        session.add(self.name, self.columns, lines)
        if self.name == PassageRow.table.name:
            signed = [self.columns.index(each.name) for each in _SIGNED]
            put_signs(session, [itemgetter(*signed)(line) for line in lines])

    def clear(self, session: Session) -> None:
        """Remove all lines."""
        session.run(f"DELETE FROM {self.name} WHERE {self.only}")  # noqa: S608
        if self.name == PassageRow.table.name:
            for derived in _SIGNS:
                session.run(f"DELETE FROM {derived}")  # noqa: S608

    def digest(self, session: Session) -> str:
        """A digest of all lines."""
        found = hashlib.sha256()
        for line in self.lines(session):
            # no database but SQLite holds a NUL
            found.update(repr(line).replace("\\x00", "\ufffd").encode())
        return found.hexdigest()

    def number(self, source: Session, target: Session) -> None:
        """Go on counting where the source was."""
        if self.numbered is not None:
            dialect = source.dialect
            last = source.value(dialect.last_number(self.name, self.numbered))
            if last is not None:
                target.rows(target.dialect.set_last_number(self.name, self.numbered), (last,))


class CopiedRecords(CopiedTable, frozen=True, kw_only=True):
    """The records of a source: lines `r` with their texts `h`, of which the words `w` are made."""

    tables: int
    layout: Layout

    @classmethod
    def at(cls, line: Line) -> CopiedRecords:
        """The source of a line of `_SOURCES`."""
        _, connection_id, stream, tables, text = line
        layout = parse_layout(text)
        return cls(
            name=f"{connection_id}/{stream}",
            columns=(*(f"r.{name}" for name in layout.line_columns), "h.sum", "h.data"),
            key=("r.id",),
            origin=f"r{tables} r LEFT JOIN h{tables} h ON h.id = r.id",
            tables=tables,
            layout=layout,
        )

    def make(self, session: Session) -> None:
        """Their tables, if there are none."""
        if not session.first(session.dialect.find_table, (f"r{self.tables}",)):
            for statement in create_tables(self.layout, self.tables, session.dialect):
                session.run(statement)

    def put(self, session: Session, lines: Sequence[Line]) -> None:
        """A record whose text is lost has a line only, and no words."""
        new = NewLines([line[:-2] for line in lines])
        new.texts.extend((line[0], *line[-2:]) for line in lines if line[-1] is not None)
        if self.layout.lexical:
            words = ((line[0], self._words(line)) for line in lines)
            new.words.extend(each for each in words if each[1])
        new.add(session, self.tables, self.layout)

    def clear(self, session: Session) -> None:
        """With their tables."""
        for statement in drop_tables(self.layout, self.tables, session.dialect):
            session.run(statement)

    def _words(self, line: Line) -> str:
        """Of a line that is indexed and not damaged."""
        members = dict(zip(self.layout.line_columns, line, strict=False))
        stored_sum, text = line[-2:]
        if members["wc"] is None or text is None:
            return ""
        own = line_sum(members["k"], members["cs"], members["ce"], members["fc"])
        data = checked_data(self.layout, own, stored_sum, text.encode())
        return "" if data is None else marked_words([data.get(n) for n in self.layout.lexical])[0]


class DatabaseCopy:
    """A copy that is under way; nobody else writes to the source meanwhile."""

    def __init__(self, source: Session, target: Database, tell: Tell = silently) -> None:
        self._source = source
        self._target = target
        self._tell = tell
        self._sources = source.rows(_SOURCES)
        known = {table.name: table for table in stored_tables()}
        named = [known[name] for name in sorted(tables_of(known_steps()))]
        self._fixed = [CopiedTable.of(table) for table in named if table not in _DERIVED]
        self._tables = (*self._fixed, *(CopiedRecords.at(line) for line in self._sources))

    def run(self) -> dict[str, str]:
        """Copy what is not there yet; the digest of each table, which is the same on both sides."""
        self._begin()
        for table in self._tables:
            self._fill(table)
        return {table.name: self._proven(table) for table in self._tables}

    def finish(self) -> None:
        """Let servers open the target."""
        with self._target.write() as session:
            session.run(f"DROP TABLE {COPY_MARK}")

    def _begin(self) -> None:
        epoch = self._source.value(_EPOCH)
        with self._target.write() as session:
            if not is_being_copied(session):
                if any(table.count(session) for table in self._fixed):
                    raise CopyRefused(
                        "The target of the move already contains data. Name an "
                        "empty schema or folder."
                    )
                text = session.dialect.column_type(ColumnKind.TEXT)
                session.run(f"CREATE TABLE {COPY_MARK} (epoch {text})")
                session.run(f"INSERT INTO {COPY_MARK} VALUES (?)", (epoch,))  # noqa: S608
            if session.value(_MARKED) != epoch:
                raise CopyRefused(
                    "Data of another server are being moved to the same target. Name "
                    "another schema or folder."
                )
            for gone in set(session.rows(_SOURCES)) - set(self._sources):
                records = CopiedRecords.at(gone)
                records.make(session)
                records.clear(session)
                session.run(_FORGET_SOURCE, gone[:1])

    def _fill(self, table: CopiedTable) -> None:
        with self._target.write() as session:
            if isinstance(table, CopiedRecords):
                table.make(session)
            after, done = table.last(session), table.count(session)
        count = table.count(self._source)
        lines = table.lines(self._source, after)
        while batch := list(islice(lines, LINES_AT_ONCE)):
            with self._target.write_soon() as session:
                table.put(session, batch)
            done += len(batch)
            self._tell(table.name, done, count)
        with self._target.write() as session:
            table.number(self._source, session)

    def _proven(self, table: CopiedTable) -> str:
        wanted = table.digest(self._source)
        if self._digest(table) != wanted:
            with self._target.write() as session:
                table.clear(session)
            self._fill(table)
            if self._digest(table) != wanted:
                raise CopyRefused(
                    f"The copy of {table.name} differs from the original. Empty "
                    "the target, and move again; if that fails too, run `pdpp "
                    "doctor --data`."
                )
        return wanted

    def _digest(self, table: CopiedTable) -> str:
        with self._target.read() as session:
            return table.digest(session)


def stored_tables() -> Iterator[StoredTable]:
    """The table of every row class; those of feeds and notices are loaded by nobody else here."""
    loaded_here = (*FEED_ROWS, *NOTICE_ROWS)
    yield from (each.table for each in loaded_here)
    waiting = StoredRow.__subclasses__()
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        if "table" in vars(found) and found not in loaded_here:
            yield found.table
