"""A read snapshot of SQLite: every plan, answered by its module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from personal_server.domain.connection import Connection
from personal_server.domain.record import Row
from personal_server.enforcement.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    CountPlan,
    FieldWindowPlan,
    PagePlan,
    RecordPlan,
    SearchPlan,
    SpanPlan,
    SummaryPlan,
)
from personal_server.enforcement.rows import (
    Aggregation,
    BlobReference,
    Children,
    Feed,
    FieldWindow,
    Matches,
    Page,
    Span,
    Summary,
)
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sqlite import aggregating, feeding, figures, finding, pages
from personal_server.storage.sqlite.cataloguing import (
    CONNECTION,
    DECLARATION,
    stored_connection,
    stored_declaration,
)
from personal_server.storage.sqlite.dialect import DIALECT
from personal_server.storage.sqlite.reading import Reader, whole_row
from personal_server.storage.sqlite.session import Session
from personal_server.storage.sqlite.sources import find_source
from personal_server.storage.stored import (
    Collection,
    Run,
    RunStatus,
    StoredDeclaration,
    StoredStream,
)


class SqliteSnapshot:
    """One consistent state; used by one thread at a time."""

    def __init__(self, session: Session, subject_id: str) -> None:
        self._session = session
        self._subject_id = subject_id
        self._reader = Reader(session, subject_id)

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
        lines = self._session.rows(
            f"SELECT {DECLARATION} FROM declarations WHERE subject_id = ? AND current"  # noqa: S608
            " ORDER BY connector_key",
            (self._subject_id,),
        )
        return tuple(map(stored_declaration, lines))

    def connections(self) -> tuple[Connection, ...]:
        """See the port."""
        lines = self._session.rows(
            f"SELECT {CONNECTION} FROM connections WHERE subject_id = ?"  # noqa: S608
            " ORDER BY connection_id",
            (self._subject_id,),
        )
        return tuple(map(stored_connection, lines))

    def stored_streams(self) -> tuple[StoredStream, ...]:
        """See the port."""
        lines = self._session.rows(
            "SELECT s.connection_id, c.connector_key, s.stream, s.records FROM sources s"
            " JOIN connections c USING (subject_id, connection_id) WHERE s.subject_id = ?"
            " ORDER BY s.connection_id, s.stream",
            (self._subject_id,),
        )
        return tuple(StoredStream(*line) for line in lines)

    def collections(self) -> Mapping[str, Collection]:
        """See the port."""
        lines = self._session.rows(
            "SELECT connection_id, run_id, status, at, succeeded_at FROM runs WHERE subject_id = ?",
            (self._subject_id,),
        )
        return {
            connection_id: Collection(Run(run_id, RunStatus(status), at), succeeded_at)
            for connection_id, run_id, status, at, succeeded_at in lines
        }

    def page(self, plan: PagePlan) -> Page:
        """See the port."""
        return pages.page(self._reader, plan)

    def record(self, plan: RecordPlan) -> tuple[Row, ...]:
        """See the port."""
        return pages.record(self._reader, plan)

    def children(self, plan: ChildrenPlan) -> Mapping[str, Children]:
        """See the port."""
        return pages.children(self._reader, plan)

    def field_window(self, plan: FieldWindowPlan) -> tuple[FieldWindow, ...]:
        """See the port."""
        return pages.field_window(self._reader, plan)

    def count(self, plan: CountPlan) -> int:
        """See the port."""
        return figures.count(self._reader, plan)

    def span(self, plan: SpanPlan) -> Span:
        """See the port."""
        return figures.span(self._reader, plan)

    def summary(self, plan: SummaryPlan) -> Summary:
        """See the port."""
        return figures.summary(self._reader, plan)

    def aggregate(self, plan: AggregatePlan) -> Aggregation:
        """See the port."""
        return aggregating.aggregate(self._reader, plan)

    def search(self, plan: SearchPlan) -> Matches:
        """See the port."""
        return finding.search(self._reader, plan)

    def changes(self, plan: ChangesPlan) -> Feed:
        """See the port."""
        return feeding.changes(self._reader, plan)

    def blob(self, plan: BlobPlan) -> tuple[BlobReference, ...]:
        """See the port."""
        return finding.blob(self._reader, plan)

    def export(self, connection_id: str, stream: str) -> Iterator[Row]:
        """See the port."""
        source = find_source(self._session, self._subject_id, connection_id, stream)
        if source is None:
            return
        compiler = Compiler(source.layout, source.tables, DIALECT)
        statement = compiler.rows(Where(), " ORDER BY r.k")
        for line in self._session.run(statement.sql, statement.params):
            yield whole_row(source, line)

    def _kept(self, name: str) -> object:
        return self._session.value("SELECT value FROM store WHERE name = ?", (name,))
