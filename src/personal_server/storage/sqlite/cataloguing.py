"""Declarations and connections in SQLite.

Rule: a declaration that stores a stream another way rebuilds its tables in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration import SourceDeclaration
from personal_server.errors import (
    ConnectionNotFound,
    DeclarationConflict,
    InvalidState,
    NotFound,
)
from personal_server.storage.sql.layout import Layout, adapted, layouts
from personal_server.storage.sqlite.part import SqlitePart
from personal_server.storage.sqlite.rebuilding import alter, rebuild
from personal_server.storage.sqlite.session import Line, Session
from personal_server.storage.sqlite.sources import Source, all_sources
from personal_server.storage.stored import StoredDeclaration

DECLARATION = "connector_key, source_kind, source_id, version, digest, raw, registered_at, current"
CONNECTION = (
    "connection_id, connector_key, source_id, display_name, status, created_at, updated_at,"
    " revoked_at"
)


class SqliteCatalog(SqlitePart):
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
