"""What could be granted here: the accepted declarations and the connections, as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.connection import Connection
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import Snapshots


class Catalog(msgspec.Struct, frozen=True):
    """One look at the sources.  Shapes: `declarations` by `source.id`."""

    declarations: Mapping[str, SourceDeclaration]
    connections: tuple[Connection, ...]


class Catalogs(Protocol):
    """Looks at the sources."""

    def __call__(self) -> Catalog:
        """The declarations and connections as they are now."""
        ...


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
