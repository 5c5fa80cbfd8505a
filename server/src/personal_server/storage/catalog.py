"""What could be granted here: the accepted declarations and the connections, as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pdpp_kernel.errors import InvalidDeclaration, StorageUnavailable
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.connection import Connection
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import StoredDeclaration
from personal_server.storage.ports.snapshots import Snapshots

# Beyond twice the current declarations, so many parsed ones are kept before old ones are dropped.
SPARE = 16


@dataclass(frozen=True, slots=True)
class Catalog:
    """One look at the sources.  Shapes: `declarations` by `source.id`."""

    declarations: Mapping[str, SourceDeclaration]
    connections: tuple[Connection, ...]


class Catalogs(Protocol):
    """Looks at the sources."""

    def __call__(self) -> Catalog:
        """The declarations and connections as they are now."""
        ...


class KnownDeclarations:
    """Declarations as values: parsed once per digest, since a digest never changes its content."""

    def __init__(self) -> None:
        self._parsed: dict[str, SourceDeclaration] = {}

    def current(self, stored: Sequence[StoredDeclaration]) -> dict[str, SourceDeclaration]:
        """The parsed form of the current revisions, by connector key."""
        current = {revision.connector_key: self.one(revision) for revision in stored}
        if len(self._parsed) > 2 * len(stored) + SPARE:
            self._parsed = {declaration.digest: declaration for declaration in current.values()}
        return current

    def one(self, revision: StoredDeclaration) -> SourceDeclaration:
        """The parsed form of one revision."""
        parsed = self._parsed.get(revision.digest)
        if parsed is None:
            parsed = kept_declaration(revision.raw)
            self._parsed[revision.digest] = parsed
        return parsed


def kept_declaration(raw: bytes) -> SourceDeclaration:
    """The parsed form of what was accepted once.  Raises: StorageUnavailable if it is damaged."""
    try:
        return parse_declaration(raw)
    except InvalidDeclaration:
        raise StorageUnavailable(
            "The database file is damaged.",
            next_step="Restore a backup into an empty directory:"
            " PDPP_DATA_DIR=~/restored pdpp restore FILE",
        ) from None


class StoredCatalogs:
    """Looks into the record store."""

    def __init__(self, records: Snapshots, declarations: KnownDeclarations) -> None:
        self._records = records
        self._declarations = declarations

    def __call__(self) -> Catalog:
        """The declarations and connections as they are now."""
        with self._records.snapshot() as snapshot:
            connections = snapshot.connections()
            current = self._declarations.current(snapshot.declarations())
        return Catalog({stored.source_id: stored for stored in current.values()}, connections)
