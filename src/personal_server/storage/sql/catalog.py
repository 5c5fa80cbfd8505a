"""Declarations and connections in SQLite.

Rule: a declaration that stores a stream another way rebuilds its tables in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import orjson

from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration import SourceDeclaration
from personal_server.errors import ConnectionNotFound, DeclarationConflict, InvalidState, NotFound
from personal_server.storage.ports import StoredDeclaration
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.layout import Column, Layout, adapted, create_index, layouts
from personal_server.storage.sql.source_tables import (
    Source,
    StorePart,
    all_sources,
    make_tables,
    remove_tables,
)
from personal_server.storage.sql.written_rows import (
    insert_line,
    insert_words,
    place_in_time,
    prepare_one,
    value_in,
)

# A source whose declaration stores it another way: further columns and indexes, or new tables.


FLUSHED_AT = 2_000


def rebuild(session: Session, source: Source, layout: Layout) -> None:
    """Move all records of a source into tables of another layout."""
    number = make_tables(session, layout)
    session.run("DELETE FROM blob_references WHERE source = ?", (source.source,))
    words: list[tuple[Value, ...]] = []
    old = source.tables
    lines = session.run(
        f"SELECT k, cs, ce, e, fc, data FROM r{old} JOIN h{old} USING (id) ORDER BY id"  # noqa: S608
    )
    for key, created, created_at, latest, changes, text in lines:
        record = prepare_one(key, orjson.loads(text), created_at, layout)
        at = place_in_time(record.event_ns, created_at, layout)
        rest = (key, created, created_at, latest, *record.values, changes)
        chosen = insert_line(session, number, layout, at, rest)
        session.run(f"INSERT INTO h{number} VALUES (?, ?)", (chosen, text))  # noqa: S608
        if record.words is not None:
            words.append((chosen, *record.words))
        for field, blob_id in (record.blobs or {}).items():
            session.run(
                "INSERT INTO blob_references VALUES (?, ?, ?, ?)",
                (source.source, key, field, blob_id),
            )
        if len(words) >= FLUSHED_AT:
            insert_words(session, number, layout, words)
    insert_words(session, number, layout, words)
    remove_tables(session, source)
    session.run(
        "UPDATE sources SET tables = ?, layout = ? WHERE source = ?",
        (number, layout.render(), source.source),
    )


def alter(session: Session, source: Source, layout: Layout) -> None:
    """Give the tables of a source the columns and indexes of an adapted layout."""
    number, old = source.tables, source.layout
    known = {column.name for column in old.columns}
    for column in layout.columns:
        if column.name not in known:
            session.run(f"ALTER TABLE r{number} ADD COLUMN {column.name}")
            _fill(session, number, column)
    before, after = old.indexes(), layout.indexes()
    for name, columns in before.items():
        if after.get(name) != columns:
            session.run(f"DROP INDEX r{number}_{name}")
    for name, columns in after.items():
        if before.get(name) != columns:
            session.run(create_index(number, name, columns))
    session.run("UPDATE sources SET layout = ? WHERE source = ?", (layout.render(), source.source))


def _fill(session: Session, number: int, column: Column) -> None:
    """Values of a new column, where records hold its field."""
    lines = session.rows(
        f"SELECT id, json_extract(data, ?1, '$') FROM h{number}"  # noqa: S608
        " WHERE json_type(data, ?1) IS NOT NULL",
        (f'$."{column.field}"',),
    )
    session.many(
        f"UPDATE r{number} SET {column.name} = ? WHERE id = ?",  # noqa: S608
        [(value_in(orjson.loads(text)[0], column.kind), row_id) for row_id, text in lines],
    )


DECLARATION = "connector_key, source_kind, source_id, version, digest, raw, registered_at, current"
CONNECTION = (
    "connection_id, connector_key, source_id, display_name, status, created_at, updated_at,"
    " revoked_at"
)


class CatalogPart(StorePart):
    """Declarations and connections of a subject."""

    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> bool:
        """See the port."""
        key = declaration.connector_key
        with self._database.write() as session:
            known = self._known(session, declaration)
            session.run(
                "UPDATE declarations SET current = (version = ?)"
                " WHERE subject_id = ? AND connector_key = ?",
                (declaration.version, self.subject_id, key),
            )
            if not known:
                session.run(
                    "INSERT INTO declarations VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
                    (
                        self.subject_id,
                        key,
                        declaration.version,
                        declaration.source_kind,
                        declaration.source_id,
                        declaration.digest,
                        raw,
                        now_ns,
                    ),
                )
            self._lay_out(session, declaration)
            return not known

    def declaration(self, connector_key: str, version: str | None) -> StoredDeclaration | None:
        """See the port."""
        with self._database.read() as session:
            line = session.first(
                f"SELECT {DECLARATION} FROM declarations"  # noqa: S608  # fixed names only
                " WHERE subject_id = ?1 AND connector_key = ?2"
                " AND (version = ?3 OR ?3 IS NULL AND current)",
                (self.subject_id, connector_key, version),
            )
            return None if line is None else stored_declaration(line)

    def delete_declaration(self, connector_key: str) -> bool:
        """See the port."""
        place = (self.subject_id, connector_key)
        with self._database.write() as session:
            if session.first(
                "SELECT 1 FROM connections WHERE subject_id = ? AND connector_key = ?", place
            ):
                raise InvalidState("Connections of this source exist. Delete them first.")
            for table in ("layouts", "declarations"):
                session.run(
                    f"DELETE FROM {table} WHERE subject_id = ? AND connector_key = ?",  # noqa: S608
                    place,
                )
            return session.changed > 0

    def add_connection(self, connection: Connection) -> None:
        """See the port."""
        with self._database.write() as session:
            if not session.first(
                "SELECT 1 FROM declarations WHERE subject_id = ? AND connector_key = ?",
                (self.subject_id, connection.connector_key),
            ):
                raise NotFound("No source with this connector key is declared here.")
            session.run(
                f"INSERT INTO connections (subject_id, {CONNECTION})"  # noqa: S608
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self.subject_id, *astuple(connection)),
            )

    def update_connection(
        self, connection_id: str, change: Callable[[Connection], Connection]
    ) -> Connection:
        """See the port."""
        with self._database.write() as session:
            line = session.first(
                f"SELECT {CONNECTION} FROM connections"  # noqa: S608
                " WHERE subject_id = ? AND connection_id = ?",
                (self.subject_id, connection_id),
            )
            if line is None:
                raise ConnectionNotFound("No such connection.", param="connection_id")
            changed = change(stored_connection(line))
            session.run(
                "UPDATE connections SET display_name = ?, status = ?, updated_at = ?,"
                " revoked_at = ? WHERE subject_id = ? AND connection_id = ?",
                (
                    changed.display_name,
                    changed.status,
                    changed.updated_at_ns,
                    changed.revoked_at_ns,
                    self.subject_id,
                    connection_id,
                ),
            )
            return changed

    def _known(self, session: Session, declaration: SourceDeclaration) -> bool:
        """Whether this revision is stored.  Raises DeclarationConflict."""
        revisions = session.rows(
            "SELECT source_id, version, digest FROM declarations"
            " WHERE subject_id = ? AND connector_key = ?",
            (self.subject_id, declaration.connector_key),
        )
        if any(source_id != declaration.source_id for source_id, _, _ in revisions):
            raise DeclarationConflict("This connector key belongs to another source.")
        digests = {version: digest for _, version, digest in revisions}
        known = digests.get(declaration.version)
        if known is not None and known != declaration.digest:
            raise DeclarationConflict("This version was declared with other content.")
        return known is not None

    def _lay_out(self, session: Session, declaration: SourceDeclaration) -> None:
        key, wanted = declaration.connector_key, layouts(declaration)
        session.run(
            "DELETE FROM layouts WHERE subject_id = ? AND connector_key = ?",
            (self.subject_id, key),
        )
        session.many(
            "INSERT INTO layouts VALUES (?, ?, ?, ?)",
            [(self.subject_id, key, name, each.render()) for name, each in wanted.items()],
        )
        mine = session.rows(
            "SELECT connection_id FROM connections WHERE subject_id = ? AND connector_key = ?",
            (self.subject_id, key),
        )
        for (connection_id,) in mine:
            for source in all_sources(session, self.subject_id, connection_id):
                layout = wanted.get(source.stream)
                if layout is not None:
                    _renew(session, source, layout)


def _renew(session: Session, source: Source, layout: Layout) -> None:
    target = adapted(source.layout, layout)
    if target is None:
        rebuild(session, source, layout)
    elif target != source.layout:
        alter(session, source, target)


def stored_declaration(line: Line) -> StoredDeclaration:
    """A line of `DECLARATION` columns as a value."""
    *members, current = line
    return StoredDeclaration(*members, current=bool(current))


def stored_connection(line: Line) -> Connection:
    """A line of `CONNECTION` columns as a value."""
    connection_id, connector_key, source_id, display_name, status, *times = line
    return Connection(
        connection_id, connector_key, source_id, display_name, ConnectionStatus(status), *times
    )
