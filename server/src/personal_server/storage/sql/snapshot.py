"""One consistent state of a subject's records, as reads ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import MAX_INTEGER
from personal_server.domain.connection import Connection
from personal_server.domain.stored import (
    Collection,
    CollectionRun,
    RunStatus,
    StoredDeclaration,
    StoredStream,
)
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Matches
from personal_server.enforcement.scopes import Scope
from personal_server.storage.damage import DamagedLine
from personal_server.storage.derived import once
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.driver import Database, Line, Session
from personal_server.storage.sql.fixed_tables import (
    ChangeRow,
    ConnectionRow,
    DeclarationRow,
    EraRow,
    FactRow,
    RunRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.reads import (
    aggregates,
    blob_references,
    changes,
    figures,
    pages,
    text_windows,
    timelines,
)
from personal_server.storage.sql.reads.nearest import count_unembedded, nearest
from personal_server.storage.sql.reads.neighbours import beside
from personal_server.storage.sql.reads.search import walked_seconds
from personal_server.storage.sql.records import passages
from personal_server.storage.sql.records.catalog_lines import (
    CONNECTION_COLUMNS,
    DECLARATION,
    stored_connection,
    stored_declaration,
)
from personal_server.storage.sql.records.persons import make_persons
from personal_server.storage.sql.source_tables import Reader, SourceTables, all_sources, find_source
from personal_server.storage.sql.statements import select

_DECLARATIONS = (
    f"SELECT {DECLARATION} FROM {DeclarationRow.table} WHERE {DeclarationRow.subject_id} = ?"  # noqa: S608
    f" AND {DeclarationRow.current} = 1 ORDER BY {DeclarationRow.connector_key}"
)
_CONNECTIONS = (
    select(ConnectionRow, ConnectionRow.subject_id, columns=CONNECTION_COLUMNS)
    + f" ORDER BY {ConnectionRow.connection_id}"
)
_STORED_STREAMS = (
    f"SELECT s.{SourceRow.connection_id}, c.{ConnectionRow.connector_key}, s.{SourceRow.stream},"  # noqa: S608
    f" s.{SourceRow.records} FROM {SourceRow.table} s JOIN {ConnectionRow.table} c"
    f" USING ({ConnectionRow.subject_id}, {ConnectionRow.connection_id}) WHERE"
    f" s.{SourceRow.subject_id} = ? ORDER BY s.{SourceRow.connection_id}, s.{SourceRow.stream}"
)
_CHANGED_AFTER = (
    f"SELECT s.{SourceRow.connection_id}, s.{SourceRow.stream} FROM {SourceRow.table} s"  # noqa: S608
    f" WHERE s.{SourceRow.subject_id} = ? AND EXISTS (SELECT 1 FROM {ChangeRow.table} c"
    f" WHERE c.{ChangeRow.source} = s.{SourceRow.source} AND c.{ChangeRow.sequence} > ?)"
    f" ORDER BY s.{SourceRow.connection_id}, s.{SourceRow.stream}"
)
_RUNS = select(
    RunRow,
    RunRow.subject_id,
    columns=(RunRow.connection_id, RunRow.run_id, RunRow.status, RunRow.at, RunRow.succeeded_at),
)
_FIND_ERA = (
    f"SELECT {EraRow.era} FROM {EraRow.table} WHERE {EraRow.start} < ?"  # noqa: S608
    f" ORDER BY {EraRow.start} DESC LIMIT 1"
)
_FIND_COUNTER = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
FIND_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))


class SearchableDatabase(Database, Protocol):
    """A database that also finds words: full text is where databases really differ."""

    def search(self, reader: Reader, plan: SearchPlan) -> Matches:
        """Candidates of every source, and how many visible records hold each term."""
        ...

    def count_terms(self, reader: Reader, plan: SearchPlan) -> tuple[int, ...] | None:
        """As a snapshot does."""
        ...


class SqlSnapshot(Reader):
    """One consistent state; used by one thread at a time.

    Its reads of records are the functions of their modules: a function on a reader is its method.
    """

    page = pages.page
    timeline = timelines.timeline
    record = pages.record
    records = pages.records
    children = pages.children
    neighbours = pages.neighbours
    beside = beside
    field_window = text_windows.field_window
    count = figures.count
    span = figures.span
    summary = figures.summary
    aggregate = aggregates.aggregate
    first_change_after = changes.first_change_after
    changes = changes.changes
    walked_seconds = walked_seconds
    nearest = nearest
    count_unembedded = count_unembedded
    blob = blob_references.blob

    def __init__(self, session: Session, database: SearchableDatabase, subject_id: str) -> None:
        super().__init__(session, subject_id, database.damage)
        self._database = database
        self._made: list[tuple[Scope, SourceTables]] = []

    def source_of(self, scope: Scope) -> SourceTables | None:
        """Persons are made when they are first asked for."""
        if scope.made_of is None:
            return super().source_of(scope)
        for made_for, made in self._made:
            if (made_for.connection_id, made_for.made_of) == (scope.connection_id, scope.made_of):
                return made
        made = make_persons(self, scope, len(self._made))
        self._made.append((scope, made))
        return made

    def search(self, plan: SearchPlan) -> Matches:
        """Full text, which is the database's own."""
        return self._database.search(self, plan)

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...] | None:
        """Full text, likewise."""
        return self._database.count_terms(self, plan)

    def embedding_model(self) -> str | None:
        """The one whose vectors are kept."""
        return passages.embedding_model(self.session)

    @property
    def epoch(self) -> str:
        """As it was when the store was made or restored."""
        key, session = ("epoch",), self.session
        return str(once(self.derived, key, lambda: session.value(FIND_FACT, key)))

    @property
    def horizon(self) -> int:
        """Every change up to here is part of this state."""
        return int(str(self._kept("sequence")))

    @property
    def retained_from(self) -> int:
        """The newest change that was forgotten."""
        return int(str(self._kept("retained_from")))

    @property
    def forgotten_until_ns(self) -> int:
        """Files whose history was cut by an earlier version do not know until the next time."""
        kept_value = self._kept("forgotten_until")
        if kept_value is not None:
            return int(str(kept_value))
        return MAX_INTEGER if self.retained_from else 0

    def changed_after(self, sequence: int) -> Sequence[tuple[str, str]]:
        """By looking behind that number in the changes of each."""
        key = ("changed", self.subject_id, sequence)
        params = key[1:]
        return once(
            self.derived,
            key,
            lambda: [(line[0], line[1]) for line in self.session.rows(_CHANGED_AFTER, params)],
        )

    def era(self, sequence: int) -> str:
        """Files of before eras were written have none for their first changes."""
        return self.session.value(_FIND_ERA, (sequence,)) or ""

    def declarations(self) -> tuple[StoredDeclaration, ...]:
        """One for each connector key."""
        return tuple(map(stored_declaration, self._lines(_DECLARATIONS)))

    def connections(self) -> tuple[Connection, ...]:
        """Revoked ones are among them."""
        return tuple(map(stored_connection, self._lines(_CONNECTIONS)))

    def stored_streams(self) -> tuple[StoredStream, ...]:
        """The count is kept by every write; nothing is counted here."""
        lines = self.session.rows(_STORED_STREAMS, (self.subject_id,))
        return tuple(StoredStream(*line) for line in lines)

    def collections(self) -> Mapping[str, Collection]:
        """A line per connection holds both."""
        return {
            connection_id: Collection(CollectionRun(run_id, RunStatus(status), at), succeeded_at)
            for connection_id, run_id, status, at, succeeded_at in self._lines(_RUNS)
        }

    def export(self, connection_id: str, stream: str) -> Iterator[StoredRecord]:
        """Rows are read while they are written out."""
        source = find_source(self.session, self.subject_id, connection_id, stream)
        if source is None:
            return
        compiler = Compiler(source.layout, source.tables, self.session.dialect)
        statement = compiler.rows(Where(), " ORDER BY r.k")
        for line in self.each_line(source, statement):
            row = self.whole(source, line)
            if row is not None:
                yield row

    def is_damaged(self, noted: DamagedLine) -> bool:
        """Whether a line that was noted still is; one without a number was no text."""
        sources = {source.tables: source for source in all_sources(self.session, self.subject_id)}
        source = sources.get(noted.tables)
        if source is None:
            return False
        compiler = Compiler(source.layout, source.tables, self.session.dialect)
        if noted.line is None:
            before = self.passed_over
            for _ in self.each_line(source, compiler.select("r.k, r.fc", Where())):
                pass
            return self.passed_over > before
        lines = self.lines(source, compiler.rows(compiler.with_ids([noted.line])))
        return any(self.whole(source, line) is None for line in lines)

    def _kept(self, name: str) -> object:
        key = ("kept", name)
        return once(self.derived, key, lambda: self.session.value(_FIND_COUNTER, (name,)))

    def _lines(self, sql: str) -> list[Line]:
        """Lines of a table of the subject's that most requests read."""
        key = (sql, self.subject_id)
        return once(self.derived, key, lambda: self.session.rows(sql, (self.subject_id,)))
