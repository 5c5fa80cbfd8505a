"""The sources of a snapshot or write: where the records of a (connection, stream) are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition
from pdpp_kernel.record import DamagedRow, FieldChange, JsonObject, StoredRecord
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.enforcement.rows import Candidate
from personal_server.enforcement.scopes import Scope
from personal_server.storage.checksums import is_line_of, line_sum, record_sum
from personal_server.storage.damage import DamagedLine, DamageNotes
from personal_server.storage.derived import Derived, once
from personal_server.storage.record_changes import latest_change
from personal_server.storage.sql.compiler import Compiler, Statement, Where
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import LayoutRow, RebuildRow, SourceRow, StoreRow
from personal_server.storage.sql.layout import CHECKED_FORM, FORM, Column, Layout
from personal_server.storage.sql.record_tables import create_tables, drop_tables
from personal_server.storage.sql.statements import listed, select
from personal_server.storage.sql.stored_layouts import between, parse_layout

_COLUMNS = (
    SourceRow.source,
    SourceRow.connection_id,
    SourceRow.stream,
    SourceRow.tables,
    SourceRow.records,
    SourceRow.layout,
    SourceRow.unindexed_below,
)
_WANTED = (
    f"(SELECT {RebuildRow.layout} FROM {RebuildRow.table} b"  # noqa: S608
    f" WHERE b.{RebuildRow.source} = s.{SourceRow.source} AND b.{RebuildRow.emptying} = 0)"
)
_SOURCES = f"SELECT {listed(_COLUMNS)}, {_WANTED} FROM {SourceRow.table} s"  # noqa: S608
_FIND = (
    f"{_SOURCES} WHERE {SourceRow.subject_id} = ? AND {SourceRow.connection_id} = ?"
    f" AND {SourceRow.stream} = ?"
)
_FIND_ALL = (
    f"{_SOURCES} WHERE {SourceRow.subject_id} = ?1"
    f" AND ({SourceRow.connection_id} = ?2 OR ?2 IS NULL)"
    f" ORDER BY {SourceRow.connection_id}, {SourceRow.stream}"
)
_ADD = (
    f"INSERT INTO {SourceRow.table} ({SourceRow.subject_id}, {SourceRow.connection_id},"  # noqa: S608
    f" {SourceRow.stream}, {SourceRow.tables}, {SourceRow.records}, {SourceRow.layout})"
    " VALUES (?, ?, ?, ?, 0, ?)"
)
_FIND_LAYOUT = select(
    LayoutRow,
    LayoutRow.subject_id,
    LayoutRow.connector_key,
    LayoutRow.stream,
    columns=(LayoutRow.layout,),
)
_NEXT_TABLES = (
    f"UPDATE {StoreRow.table} SET {StoreRow.value} = {StoreRow.value} + 1"  # noqa: S608
    f" WHERE {StoreRow.name} = 'tables' RETURNING {StoreRow.value}"
)


# Of so many records that a grant picks by their content the texts are read, as those of named ones.
MOST_READ = 1_000


class SourceTables(msgspec.Struct, frozen=True):
    """One (connection, stream) with its tables `r<tables>`, `h<tables>`, `w<tables>`.

    `is_indexed`: the word index knows every line; else those whose words were counted (`wc`).
    `layout` is how they are written, `reading` how they are read: the same, but while a rebuild
    (`rebuilds`) is under way to the layout that is `wanted`.
    """

    source: int
    connection_id: str
    stream: str
    tables: int
    records: int
    layout: Layout
    is_indexed: bool = True
    wanted: Layout | None = None

    @property
    def reading(self) -> Layout:
        """Every field that has a column, now or soon."""
        return self.layout if self.wanted is None else _between(self.layout, self.wanted)


def find_source(
    session: Session, subject_id: str, connection_id: str, stream: str
) -> SourceTables | None:
    """The source, if anything was ever stored there."""
    line = session.first(_FIND, (subject_id, connection_id, stream))
    return None if line is None else _source(line)


def all_sources(
    session: Session, subject_id: str, connection_id: str | None = None
) -> list[SourceTables]:
    """All sources, of one connection if asked, by (connection, stream)."""
    lines = session.rows(_FIND_ALL, (subject_id, connection_id))
    return [_source(line) for line in lines]


def add_source(
    session: Session, subject_id: str, connection_id: str, stream: str, layout: Layout
) -> SourceTables:
    """Make the tables of a source that has none."""
    number = make_tables(session, layout)
    session.run(_ADD, (subject_id, connection_id, stream, number, layout.render()))
    source = find_source(session, subject_id, connection_id, stream)
    assert source is not None  # noqa: S101  # it was just inserted
    return source


def layout_now(session: Session, subject_id: str, connector_key: str, stream: str) -> Layout | None:
    """How the current declaration of a source stores a stream, in tables made now."""
    text = session.value(_FIND_LAYOUT, (subject_id, connector_key, stream))
    return None if text is None else replace(_layout(text), form=FORM)


def make_tables(session: Session, layout: Layout) -> int:
    """New tables, with a number that was never used before."""
    number = int(session.value(_NEXT_TABLES))
    for statement in create_tables(layout, number, session.dialect):
        session.run(statement)
    return number


def remove_tables(session: Session, source: SourceTables) -> None:
    """Drop the records of a source with everything made from them."""
    for statement in drop_tables(source.layout, source.tables, session.dialect):
        session.run(statement)


def _source(line: Line) -> SourceTables:
    *members, layout, unindexed, layout_wanted = line
    source, connection_id, stream, tables, records = members
    aim = None if layout_wanted is None else _layout(layout_wanted)
    source_columns = (source, connection_id, stream, tables, records)
    return SourceTables(*source_columns, _layout(layout), unindexed is None, aim)


@lru_cache(maxsize=512)
def _layout(text: str) -> Layout:
    return parse_layout(text)


@lru_cache(maxsize=128)
def _between(stored: Layout, layout_wanted: Layout) -> Layout:
    return between(stored, layout_wanted)


class ScopedSource(msgspec.Struct, frozen=True):
    """A scope with the source that holds its records."""

    scope: Scope
    source: SourceTables
    compiler: Compiler

    def visible(self) -> Where:
        """All lines that exist for this request."""
        return self.compiler.visible(self.scope)

    def matching(self, conditions: Iterable[Condition]) -> Where:
        """Visible lines that satisfy the conditions."""
        return self.compiler.matching(self.scope, conditions)

    @property
    def is_whole(self) -> bool:
        """Whether every stored record is visible."""
        return self.scope.window is None and not self.scope.is_picked

    def is_read(self, reader: Reader) -> bool:
        """Whether words are looked for in the texts of the records picked, which are few.

        The word index knows the others too, and how long it takes would tell of them.
        """
        if self.scope.resources is not None or not self.scope.only:
            return self.scope.resources is not None
        rows_visible = self.compiler.select("1", self.visible(), f" LIMIT {MOST_READ + 1}")
        counted = f"SELECT count(*) FROM ({rows_visible.sql}) AS met"  # noqa: S608
        return int(str(reader.value(Statement(counted, rows_visible.params)))) <= MOST_READ

    @property
    def name(self) -> tuple[str, str]:
        """The connection id and the stream."""
        return (self.source.connection_id, self.source.stream)

    @property
    def event(self) -> Column | None:
        """The column of the event time, if that may be seen."""
        column = self.compiler.layout.column(self.compiler.layout.event)
        return column if column is not None and column.field in self.scope.fields else None

    @property
    def event_unit_ns(self) -> int:
        """What the column of the event time counts in."""
        is_day = self.event is not None and self.event.kind is ValueKind.DATE
        return DAY_NANOSECONDS if is_day else 1

    def candidate(
        self,
        key: str,
        event_ns: int | None,
        created: FieldChange,
        changes: str | Mapping[str, FieldChange] | None,
        counts: tuple[int, ...] = (),
        length: int = 0,
    ) -> Candidate:
        """A record that was found; without an event, creation and changes date it."""
        if event_ns is None:
            event_ns = self.dated_ns(created, changes)
        return Candidate(*self.name, key, counts, length, event_ns)

    def dated_ns(
        self, created: FieldChange, changes: str | Mapping[str, FieldChange] | None
    ) -> int:
        """What dates a record without an event."""
        dated = changes if isinstance(changes, Mapping) else parse_changes(changes)
        return latest_change(created, dated, self.scope.fields).emitted_at_ns


def whole_row(source: SourceTables, line: Line) -> StoredRecord | DamagedRow:
    """A record of a source from a line of `Compiler.rows`, if its bytes are those written."""
    _, key, created, created_at, changes, stored_sum, text = line
    own = line_sum(key, created, created_at, changes)
    data = checked_data(source.layout, own, stored_sum, text)
    if data is None:
        is_named = stored_sum is None or is_line_of(own, stored_sum)
        return DamagedRow(source.connection_id, source.stream, key if is_named else None)
    return StoredRecord(
        source.connection_id,
        source.stream,
        key,
        data,
        FieldChange(created, created_at),
        {} if changes is None else parse_changes(changes),
    )


def checked_data(
    layout: Layout, line: int, stored_sum: int | None, text: bytes | None
) -> JsonObject | None:
    """What a stored text says, `None` if it is damaged; `line` is the sum of its line."""
    checked = checked_text(layout, line, stored_sum, text)
    return None if checked is None else _object(checked)


def checked_text(
    layout: Layout, line: int, stored_sum: int | None, text: bytes | None
) -> bytes | None:
    """A stored text, `None` if it is damaged.

    Texts of an older form may have no sum yet: those must only be what they could be.
    """
    if text is None:
        return None
    if stored_sum is not None:
        return text if stored_sum == record_sum(line, text) else None
    return None if layout.form >= CHECKED_FORM or _object(text) is None else text


def _object(text: bytes) -> JsonObject | None:
    try:
        parsed: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return cast("JsonObject", parsed) if isinstance(parsed, dict) else None


class Reader:
    """A session and its sources, found once.

    `damaged` are the records that reads met and left out, in the order in which they were met.
    """

    def __init__(self, session: Session, subject_id: str, damage: DamageNotes) -> None:
        self.session = session
        self.subject_id = subject_id
        self._damage = damage
        self._damaged: dict[DamagedRow | DamagedLine, DamagedRow] = {}
        # as the session knows whether anything was written
        self.derived: Derived = session.derived
        # what the steps of this read share: it ends with the read
        self.shared: Derived = {}
        self.passed_over = 0

    @property
    def damaged(self) -> tuple[DamagedRow, ...]:
        """Each once."""
        return tuple(self._damaged.values())

    def places(self, scopes: Iterable[Scope]) -> list[ScopedSource]:
        """The scopes that hold anything, by connection."""
        sources: list[ScopedSource] = []
        for scope in scopes:
            scoped = self._place(scope)
            if scoped is not None:
                sources.append(ScopedSource(scope, *scoped))
        return sorted(sources, key=lambda scoped: scoped.name)

    def rows(self, scoped: ScopedSource, where: Where, tail: str = "") -> list[StoredRecord]:
        """The records that meet the conditions, whole."""
        return list(self.rows_by_id(scoped, where, tail).values())

    def rows_by_id(
        self, scoped: ScopedSource, where: Where, tail: str = ""
    ) -> dict[int, StoredRecord]:
        """Whole records by the number of their line, in the order of the statement."""
        source = scoped.source
        return self.whole_by_id(source, self.lines(source, scoped.compiler.rows(where, tail)))

    def whole_by_id(self, source: SourceTables, lines: Iterable[Line]) -> dict[int, StoredRecord]:
        """Those of lines of `Compiler.rows` that are whole."""
        rows = ((line[0], self.whole(source, line)) for line in lines)
        return {number: row for number, row in rows if row is not None}

    def whole(self, source: SourceTables, line: Line) -> StoredRecord | None:
        """The record of a line of `Compiler.rows`; one that is damaged is noted."""
        row = whole_row(source, line)
        if isinstance(row, StoredRecord):
            return row
        self.note(source, line[0], row.key)
        return None

    def note(self, source: SourceTables, number: int | None, key: str | None = None) -> None:
        """Note a damaged record by the number of its line, if that is known."""
        at = DamagedLine(source.tables, number)
        self._damage.note(at, f"{source.stream} of {source.connection_id}")
        record = DamagedRow(source.connection_id, source.stream, key)
        self._damaged[at if key is None else record] = record

    def recall(self, scoped: ScopedSource, conditions: Iterable[Condition]) -> None:
        """Note matching records that are known to be damaged, for figures that read none."""
        ids = self._damage.lines(scoped.source.tables)
        if ids:
            self.rows(scoped, scoped.matching(conditions) & scoped.compiler.with_ids(ids))

    def lines(self, source: SourceTables, statement: Statement) -> list[Line]:
        """All lines of a statement over a source; those that are no text are passed over."""
        try:
            return self.session.rows(statement.sql, statement.params)
        except UnicodeDecodeError:
            return list(self.each_line(source, statement))

    def lines_of_each(
        self, statements: Sequence[tuple[SourceTables, Statement]]
    ) -> Iterator[list[Line]]:
        """All lines of several statements, asked at once where that is shorter."""
        if self.session.dialect.waits:
            yield from self.session.several([(s.sql, s.params) for _, s in statements])
        else:
            for source, statement in statements:
                yield self.lines(source, statement)

    def each_line(self, source: SourceTables, statement: Statement) -> Iterator[Line]:
        """The same, one after the other."""
        lines = self.session.run(statement.sql, statement.params)
        while True:
            try:
                yield next(lines)
            except StopIteration:
                return
            except UnicodeDecodeError:
                self.passed_over += 1
                self.note(source, None)

    def value(self, statement: Statement) -> object:
        """The first value of a statement."""
        return self.session.value(statement.sql, statement.params)

    def extreme(
        self, scoped: ScopedSource, column: Column, where: Where, *, highest: bool
    ) -> object:
        """The lowest or highest comparable of a column."""
        return self.value(scoped.compiler.extreme(column, where, highest=highest))

    def _place(self, scope: Scope) -> tuple[SourceTables, Compiler] | None:
        if scope.made_of is not None:
            return self._found(scope)
        key = ("place", self.subject_id, scope.connection_id, scope.stream.name)
        return once(self.derived, key, lambda: self._found(scope))

    def _found(self, scope: Scope) -> tuple[SourceTables, Compiler] | None:
        source = self.source_of(scope)
        return None if source is None else (source, self._compiler(source))

    def source_of(self, scope: Scope) -> SourceTables | None:
        """Where the records of a scope are, if any were ever stored."""
        return find_source(self.session, self.subject_id, scope.connection_id, scope.stream.name)

    def _compiler(self, source: SourceTables) -> Compiler:
        return Compiler(source.reading, source.tables, self.session.dialect, source.is_indexed)


def parse_changes(text: str | bytes | None) -> dict[str, FieldChange]:
    """The dates of changed fields as a line holds them.

    Damaged ones are none: whoever shows the record compares its checksum, which covers them.
    """
    if text is None:
        return {}
    try:
        return {name: FieldChange(*pair) for name, pair in orjson.loads(text).items()}
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return {}


def render_changes(changes: Mapping[str, FieldChange]) -> str | None:
    """The opposite; `None` for a record that never changed."""
    if not changes:
        return None
    pairs = {name: (c.sequence, c.emitted_at_ns) for name, c in changes.items()}
    return orjson.dumps(pairs).decode()
