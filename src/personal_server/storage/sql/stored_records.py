"""Records as they stand, for whoever writes them again with something that they lack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from personal_server.domain.record import StoredRecord
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.source_tables import Reader, StorePart, find_source
from personal_server.storage.tables import ColumnKind


class StoredRecordsPart(StorePart):
    """The stored records of a subject."""

    def records_holding(
        self, connection_id: str, stream: str, field: str, value: str, after: str, limit: int
    ) -> list[StoredRecord]:
        """By the index that a field has which records are grouped by."""
        behind = Where(("r.k > ?",), (after,))
        tail = f" ORDER BY r.k LIMIT {limit}"
        place = (connection_id, stream)
        return self._found(*place, lambda at: at.holding(field, value) & behind, tail)

    def records_named(
        self, connection_id: str, stream: str, keys: Sequence[str]
    ) -> list[StoredRecord]:
        """By the index of keys."""
        listed = orjson.dumps(list(keys)).decode()

        def named(compiler: Compiler) -> Where:
            return Where((f"r.k IN {compiler.dialect.values('?', ColumnKind.TEXT)}",), (listed,))

        return self._found(connection_id, stream, named)

    def _found(
        self,
        connection_id: str,
        stream: str,
        where: Callable[[Compiler], Where],
        tail: str = "",
    ) -> list[StoredRecord]:
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return []
            compiler = Compiler(source.reading, source.tables, session.dialect)
            rows = compiler.rows(where(compiler), tail)
            # damaged ones stay as they are until they are written again
            reader = Reader(session, self.subject_id, self._database.damage)
            found = (reader.whole(source, line) for line in reader.lines(source, rows))
            return [row for row in found if row is not None]
