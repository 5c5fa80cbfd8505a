"""Declarations and connections, and the tables of records that follow a declaration.

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
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import (
    BlobReferenceRow,
    ConnectionRow,
    DeclarationRow,
    LayoutRow,
    SourceRow,
)
from personal_server.storage.sql.layout import Column, Layout, adapted, create_index, layouts
from personal_server.storage.sql.source_tables import (
    SourceTables,
    StorePart,
    all_sources,
    make_tables,
    remove_tables,
)
from personal_server.storage.sql.statements import (
    delete,
    exists,
    insert,
    listed,
    select,
    update,
)
from personal_server.storage.sql.written_rows import (
    FLUSHED_AT,
    insert_line,
    insert_words,
    place_in_time,
    prepare_one,
    value_in,
)

# The columns of a `StoredDeclaration` and of a `Connection`, in the order of their members.
DECLARATION_COLUMNS = (
    DeclarationRow.connector_key,
    DeclarationRow.source_kind,
    DeclarationRow.source_id,
    DeclarationRow.version,
    DeclarationRow.digest,
    DeclarationRow.raw,
    DeclarationRow.registered_at,
    DeclarationRow.current,
)
CONNECTION_COLUMNS = (
    ConnectionRow.connection_id,
    ConnectionRow.connector_key,
    ConnectionRow.source_id,
    ConnectionRow.display_name,
    ConnectionRow.status,
    ConnectionRow.created_at,
    ConnectionRow.updated_at,
    ConnectionRow.revoked_at,
)
DECLARATION, CONNECTION = listed(DECLARATION_COLUMNS), listed(CONNECTION_COLUMNS)

_DECLARED = (DeclarationRow.subject_id, DeclarationRow.connector_key)
_CONNECTED = (ConnectionRow.subject_id, ConnectionRow.connector_key)
_ONE_CONNECTION = (ConnectionRow.subject_id, ConnectionRow.connection_id)
_MAKE_CURRENT = (
    f"UPDATE {DeclarationRow.table} SET {DeclarationRow.current} = ({DeclarationRow.version} = ?)"  # noqa: S608
    f" WHERE {DeclarationRow.subject_id} = ? AND {DeclarationRow.connector_key} = ?"
)
_FIND_DECLARATION = (
    f"SELECT {DECLARATION} FROM {DeclarationRow.table} WHERE {DeclarationRow.subject_id} = ?1"  # noqa: S608
    f" AND {DeclarationRow.connector_key} = ?2"
    f" AND ({DeclarationRow.version} = ?3 OR ?3 IS NULL AND {DeclarationRow.current})"
)
# a revision is current when it comes
_ADD_DECLARATION = insert(DeclarationRow).removesuffix("?)") + "1)"
_IS_DECLARED = exists(DeclarationRow, *_DECLARED)
_REVISIONS = select(
    DeclarationRow,
    *_DECLARED,
    columns=(DeclarationRow.source_id, DeclarationRow.version, DeclarationRow.digest),
)
_FORGET_DECLARATIONS = delete(DeclarationRow, *_DECLARED)
_FORGET_LAYOUTS = delete(LayoutRow, LayoutRow.subject_id, LayoutRow.connector_key)
_HAS_CONNECTIONS = exists(ConnectionRow, *_CONNECTED)
_CONNECTIONS_OF = select(ConnectionRow, *_CONNECTED, columns=(ConnectionRow.connection_id,))
_ADD_CONNECTION = (
    f"INSERT INTO {ConnectionRow.table} ({ConnectionRow.subject_id}, {CONNECTION})"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_FIND_CONNECTION = select(ConnectionRow, *_ONE_CONNECTION, columns=CONNECTION_COLUMNS)
_UPDATE_CONNECTION = update(
    ConnectionRow,
    [
        ConnectionRow.display_name,
        ConnectionRow.status,
        ConnectionRow.updated_at,
        ConnectionRow.revoked_at,
    ],
    *_ONE_CONNECTION,
)
_FORGET_REFERENCES = delete(BlobReferenceRow, BlobReferenceRow.source)
_MOVE_SOURCE = update(
    SourceRow,
    [SourceRow.tables, SourceRow.layout, SourceRow.unindexed_below],
    SourceRow.source,
)
_SET_LAYOUT = update(SourceRow, [SourceRow.layout], SourceRow.source)


class CatalogPart(StorePart):
    """Declarations and connections of a subject."""

    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> bool:
        """Sources whose stream is now stored another way are moved in the same transaction."""
        key = declaration.connector_key
        with self._database.write() as session:
            known = self._known(session, declaration)
            session.run(_MAKE_CURRENT, (declaration.version, self.subject_id, key))
            if not known:
                session.run(
                    _ADD_DECLARATION,
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
        """Older revisions stay, each with the bytes it came in."""
        with self._database.read() as session:
            line = session.first(_FIND_DECLARATION, (self.subject_id, connector_key, version))
            return None if line is None else stored_declaration(line)

    def delete_declaration(self, connector_key: str) -> bool:
        """All its revisions go."""
        place = (self.subject_id, connector_key)
        with self._database.write() as session:
            if session.first(_HAS_CONNECTIONS, place):
                raise InvalidState("Connections of this source exist. Delete them first.")
            session.run(_FORGET_LAYOUTS, place)
            session.run(_FORGET_DECLARATIONS, place)
            return session.changed > 0

    def add_connection(self, connection: Connection) -> None:
        """Its sources come with its first records."""
        with self._database.write() as session:
            if not session.first(_IS_DECLARED, (self.subject_id, connection.connector_key)):
                raise NotFound("No source with this connector key is declared here.")
            session.run(_ADD_CONNECTION, (self.subject_id, *astuple(connection)))

    def update_connection(
        self, connection_id: str, change: Callable[[Connection], Connection]
    ) -> Connection:
        """Read, change and write while nobody else does."""
        with self._database.write() as session:
            line = session.first(_FIND_CONNECTION, (self.subject_id, connection_id))
            if line is None:
                raise ConnectionNotFound("No such connection.", param="connection_id")
            changed = change(stored_connection(line))
            session.run(
                _UPDATE_CONNECTION,
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
        revisions = session.rows(_REVISIONS, (self.subject_id, declaration.connector_key))
        if any(source_id != declaration.source_id for source_id, _, _ in revisions):
            raise DeclarationConflict("This connector key belongs to another source.")
        digests = {version: digest for _, version, digest in revisions}
        known = digests.get(declaration.version)
        if known is not None and known != declaration.digest:
            raise DeclarationConflict("This version was declared with other content.")
        return known is not None

    def _lay_out(self, session: Session, declaration: SourceDeclaration) -> None:
        key, wanted = declaration.connector_key, layouts(declaration)
        session.run(_FORGET_LAYOUTS, (self.subject_id, key))
        session.many(
            insert(LayoutRow),
            [(self.subject_id, key, name, each.render()) for name, each in wanted.items()],
        )
        mine = session.rows(_CONNECTIONS_OF, (self.subject_id, key))
        for (connection_id,) in mine:
            for source in all_sources(session, self.subject_id, connection_id):
                layout = wanted.get(source.stream)
                if layout is not None:
                    _renew(session, source, layout)


def _renew(session: Session, source: SourceTables, layout: Layout) -> None:
    target = adapted(source.layout, layout)
    if target is None:
        rebuild(session, source, layout)
    elif target != source.layout:
        alter(session, source, target)


def stored_declaration(line: Line) -> StoredDeclaration:
    """A line of `DECLARATION_COLUMNS` as a value."""
    *members, current = line
    return StoredDeclaration(*members, current=bool(current))


def stored_connection(line: Line) -> Connection:
    """A line of `CONNECTION_COLUMNS` as a value."""
    connection_id, connector_key, source_id, display_name, status, *times = line
    return Connection(
        connection_id, connector_key, source_id, display_name, ConnectionStatus(status), *times
    )


# A declaration that stores a stream another way: further columns and indexes, or new tables.


def rebuild(session: Session, source: SourceTables, layout: Layout) -> None:
    """Move all records of a source into tables of another layout."""
    number = make_tables(session, layout)
    session.run(_FORGET_REFERENCES, (source.source,))
    words: list[tuple[int, str]] = []
    old = source.tables
    lines = session.run(
        f"SELECT k, cs, ce, e, fc, data FROM r{old} JOIN h{old} USING (id) ORDER BY id"  # noqa: S608
    )
    for key, created, created_at, latest, changes, text in lines:
        record = prepare_one(key, orjson.loads(text), created_at, layout)
        at = place_in_time(record.placed_ns, created_at, layout)
        rest = (key, created, created_at, latest, *record.values, record.word_counts, changes)
        chosen = insert_line(session, number, layout, at, rest)
        session.run(f"INSERT INTO h{number} VALUES (?, ?)", (chosen, text))  # noqa: S608
        if record.words:
            words.append((chosen, record.words))
        for field, blob_id in (record.blobs or {}).items():
            session.run(insert(BlobReferenceRow), (source.source, key, field, blob_id))
        if len(words) >= FLUSHED_AT:
            insert_words(session, number, words)
    insert_words(session, number, words)
    remove_tables(session, source)
    session.run(_MOVE_SOURCE, (number, layout.render(), None, source.source))


def alter(session: Session, source: SourceTables, layout: Layout) -> None:
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
    session.run(_SET_LAYOUT, (layout.render(), source.source))


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
