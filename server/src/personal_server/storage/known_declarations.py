"""Declarations that were accepted once, as values."""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_kernel.errors import InvalidDeclaration, StorageUnavailable
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import StoredDeclaration

# Beyond twice the current declarations, so many parsed ones are kept before old ones are dropped.
SPARE = 16


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
