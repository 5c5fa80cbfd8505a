"""Declarations and connections, and the tables of records that follow a declaration.

Rule: a declaration that stores a stream another way has its tables rebuilt (`rebuilds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson
from msgspec.structs import astuple

from pdpp_kernel.errors import ConnectionNotFound, DeclarationConflict, InvalidState, NotFound
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.connection import Connection
from personal_server.domain.stored import Rebuild, StoredDeclaration
from personal_server.storage.known_declarations import kept_declaration
from personal_server.storage.sql.declared_layouts import layouts
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import (
    BookmarkRow,
    ConnectionRow,
    DeclarationRow,
    LayoutRow,
)
from personal_server.storage.sql.records.catalog_lines import (
    CONNECTION,
    CONNECTION_COLUMNS,
    DECLARATION,
    stored_connection,
    stored_declaration,
)
from personal_server.storage.sql.records.rebuilds import LAST_SEQUENCE, progress, slice_once, want
from personal_server.storage.sql.source_tables import all_sources
from personal_server.storage.sql.statements import delete, exists, insert, select, update
from personal_server.storage.sql.store_part import StorePart

_DECLARED = (DeclarationRow.subject_id, DeclarationRow.connector_key)
_CONNECTED = (ConnectionRow.subject_id, ConnectionRow.connector_key)
_ONE_CONNECTION = (ConnectionRow.subject_id, ConnectionRow.connection_id)
_MAKE_CURRENT = (
    f"UPDATE {DeclarationRow.table} SET {DeclarationRow.current} ="  # noqa: S608
    f" CASE WHEN {DeclarationRow.version} = ? THEN 1 ELSE 0 END"
    f" WHERE {DeclarationRow.subject_id} = ? AND {DeclarationRow.connector_key} = ?"
)
_FIND_DECLARATION = (
    f"SELECT {DECLARATION} FROM {DeclarationRow.table} WHERE {DeclarationRow.subject_id} = ?1"  # noqa: S608
    f" AND {DeclarationRow.connector_key} = ?2"
    f" AND ({DeclarationRow.version} = ?3 OR ?3 IS NULL AND {DeclarationRow.current} = 1)"
)
# a revision is current when it comes
_ADD_DECLARATION = insert(DeclarationRow).removesuffix("?)") + "1)"
_IS_DECLARED = exists(DeclarationRow, *_DECLARED)
_REVISIONS = select(
    DeclarationRow,
    *_DECLARED,
    columns=(DeclarationRow.source_id, DeclarationRow.version, DeclarationRow.digest),
)
_CURRENT = (
    f"SELECT {DeclarationRow.raw} FROM {DeclarationRow.table}"  # noqa: S608
    f" WHERE {DeclarationRow.subject_id} = ? AND {DeclarationRow.current} = 1"
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


class CatalogPart(StorePart):
    """Declarations and connections of a subject."""

    # when all word indexes were last found merged, for this process
    _merged_at: int | None = None

    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> bool:
        """Sources whose stream is now stored another way are rebuilt, small ones at once."""
        key = declaration.connector_key
        with self._database.write() as session:
            stored = self._known(session, declaration)
            session.run(_MAKE_CURRENT, (declaration.version, self.subject_id, key))
            if not stored:
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
            return not stored

    def declaration(self, connector_key: str, version: str | None) -> StoredDeclaration | None:
        """Older revisions stay, each with the bytes it came in."""
        with self._database.read() as session:
            line = session.first(_FIND_DECLARATION, (self.subject_id, connector_key, version))
            return None if line is None else stored_declaration(line)

    def delete_declaration(self, connector_key: str) -> bool:
        """All its revisions go."""
        row_key = (self.subject_id, connector_key)
        with self._database.write() as session:
            if session.first(_HAS_CONNECTIONS, row_key):
                raise InvalidState("This source still has accounts. Delete the accounts first.")
            session.run(_FORGET_LAYOUTS, row_key)
            session.run(_FORGET_DECLARATIONS, row_key)
            return session.changed > 0

    def add_connection(
        self, connection: Connection, state: Mapping[str, object] | None = None
    ) -> None:
        """Its sources come with its first records."""
        with self._database.write() as session:
            if not session.first(_IS_DECLARED, (self.subject_id, connection.connector_key)):
                raise NotFound("No source with this connector key is declared on this server.")
            session.run(_ADD_CONNECTION, (self.subject_id, *astuple(connection)))
            key = (self.subject_id, connection.connection_id)
            notes = [(*key, name, orjson.dumps(v).decode()) for name, v in (state or {}).items()]
            session.many(insert(BookmarkRow), notes)

    def update_connection(
        self, connection_id: str, change: Callable[[Connection], Connection]
    ) -> Connection:
        """Read, change and write while nobody else does."""
        key = (self.subject_id, connection_id)
        with self._database.write() as session:
            line = session.first(_FIND_CONNECTION, key)
            if line is None:
                raise ConnectionNotFound(
                    "There is no account with this connection_id.", param="connection_id"
                )
            changed = change(stored_connection(line))
            values = (changed.display_name, changed.status, changed.updated_at_ns)
            session.run(_UPDATE_CONNECTION, (*values, changed.revoked_at_ns, *key))
            return changed

    def plan_rebuilds(self) -> None:
        """Layouts follow from declarations, and from the version that lays them out."""
        with self._database.read() as session:
            lines = session.rows(_CURRENT, (self.subject_id,))
        for (raw,) in lines:
            with self._database.write() as session:
                self._lay_out(session, kept_declaration(raw))

    def rebuild_slice(self) -> bool:
        """One transaction."""
        return slice_once(self._database)

    def merge_slice(self) -> bool:
        """Nothing is looked at while nothing was written."""
        with self._database.read() as session:
            sequence = int(session.value(LAST_SEQUENCE))
            if sequence == self._merged_at:
                return False
            sources = all_sources(session, self.subject_id)
        indexes = [f"w{source.tables}" for source in sources if source.layout.lexical]
        if any(map(self._database.merge_words, indexes)):
            return True
        self._merged_at = sequence
        return False

    def rebuilds(self) -> tuple[Rebuild, ...]:
        """Emptying is not told of: nobody waits for it."""
        with self._database.read() as session:
            return progress(session, self.subject_id)

    def _known(self, session: Session, declaration: SourceDeclaration) -> bool:
        """Whether this revision is stored.  Raises DeclarationConflict."""
        revisions = session.rows(_REVISIONS, (self.subject_id, declaration.connector_key))
        if any(source_id != declaration.source_id for source_id, _, _ in revisions):
            raise DeclarationConflict("This connector key belongs to another source.")
        digests = {version: digest for _, version, digest in revisions}
        digest = digests.get(declaration.version)
        if digest is not None and digest != declaration.digest:
            raise DeclarationConflict("This version of the source was declared with other content.")
        return digest is not None

    def _lay_out(self, session: Session, declaration: SourceDeclaration) -> None:
        key, fresh = declaration.connector_key, layouts(declaration)
        session.run(_FORGET_LAYOUTS, (self.subject_id, key))
        session.many(
            insert(LayoutRow),
            [(self.subject_id, key, name, layout.render()) for name, layout in fresh.items()],
        )
        mine = session.rows(_CONNECTIONS_OF, (self.subject_id, key))
        for (connection_id,) in mine:
            for source in all_sources(session, self.subject_id, connection_id):
                layout = fresh.get(source.stream)
                if layout is not None:
                    want(session, source, layout)
