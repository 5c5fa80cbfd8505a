"""What reads of a SQLite snapshot share: its sources, and rows from their lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from personal_server.domain.criteria import Condition
from personal_server.domain.record import FieldChange, Row
from personal_server.enforcement.plans import Scope
from personal_server.storage.sql.compiler import Compiler, Statement, Where
from personal_server.storage.sqlite.changing import parse_changes
from personal_server.storage.sqlite.dialect import DIALECT
from personal_server.storage.sqlite.session import Line, Session
from personal_server.storage.sqlite.sources import Source, find_source


@dataclass(frozen=True, slots=True)
class Place:
    """A scope with the source that holds its records."""

    scope: Scope
    source: Source
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
        return self.scope.window is None and self.scope.resources is None

    def row(self, line: Line) -> Row:
        """A record from a line of `Compiler.rows`."""
        return whole_row(self.source, line)


def whole_row(source: Source, line: Line) -> Row:
    """A record of a source from a line of `Compiler.rows`."""
    _, key, created, created_at, changes, text = line
    return Row(
        source.connection_id,
        source.stream,
        key,
        orjson.loads(text),
        FieldChange(created, created_at),
        parse_changes(changes),
    )


class Reader:
    """A session and its sources, found once."""

    def __init__(self, session: Session, subject_id: str) -> None:
        self.session = session
        self.subject_id = subject_id
        self._places: dict[tuple[str, str], tuple[Source, Compiler] | None] = {}

    def places(self, scopes: Iterable[Scope]) -> list[Place]:
        """The scopes that hold anything, by connection."""
        found: list[Place] = []
        for scope in scopes:
            known = self._place(scope)
            if known is not None:
                found.append(Place(scope, *known))
        return sorted(found, key=lambda place: (place.source.connection_id, place.source.stream))

    def rows(self, place: Place, where: Where, tail: str = "") -> list[Row]:
        """Whole records."""
        return [place.row(line) for line in self.lines(place.compiler.rows(where, tail))]

    def lines(self, statement: Statement) -> list[Line]:
        """All lines of a statement."""
        return self.session.rows(statement.sql, statement.params)

    def value(self, statement: Statement) -> object:
        """The first value of a statement."""
        return self.session.value(statement.sql, statement.params)

    def _place(self, scope: Scope) -> tuple[Source, Compiler] | None:
        key = (scope.connection_id, scope.stream.name)
        if key not in self._places:
            source = find_source(self.session, self.subject_id, *key)
            compiler = source and Compiler(source.layout, source.tables, DIALECT)
            self._places[key] = (source, compiler) if source and compiler else None
        return self._places[key]
