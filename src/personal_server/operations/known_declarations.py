"""Declarations as values: parsed once per digest, since a digest never changes its content."""

from __future__ import annotations

from collections.abc import Sequence

from personal_server.domain.declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration
from personal_server.storage.stored import StoredDeclaration

SPARE = 16


class KnownDeclarations:
    """Parsed declarations by digest."""

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
        known = self._parsed.get(revision.digest)
        if known is None:
            known = parse_declaration(revision.raw)
            self._parsed[revision.digest] = known
        return known
