"""Declaring: a source's description becomes the current one, if it fits what is stored.

Rule: the same version never changes content, and the key or semantics of a stream that holds
records never change.
Source: docs/contract/resource-server.md 14.1, 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import DeclarationConflict, DeclarationIncompatible
from pdpp_kernel.record import StoredRecord, canonical_key
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.stored import StoredDeclaration
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.ports.whole_store import RecordStore


class Accepted(msgspec.Struct, frozen=True):
    """The accepted declaration; `is_new` is false when the same content was known already."""

    declaration: SourceDeclaration
    is_new: bool


def declare(store: RecordStore, content: bytes | Mapping[str, object], now_ns: int) -> Accepted:
    """Accept a declaration and make it the current one of its source.

    Raises: InvalidDeclaration, DeclarationConflict, DeclarationIncompatible.
    """
    declaration = parse_declaration(content)
    rendered = render_declaration(declaration.raw)
    if b"$ref" in rendered or b"$dynamicRef" in rendered:  # few have any
        from personal_server.domain.schema_costs import refuse_costly  # noqa: PLC0415

        refuse_costly(declaration)
    with store.snapshot() as snapshot:
        current = snapshot.declarations()
        streams = _held(snapshot, declaration.connector_key)
    _refuse_conflict(store, declaration, current)
    current_one = next((d for d in current if d.connector_key == declaration.connector_key), None)
    if current_one is not None:
        _refuse_incompatible(declaration, parse_declaration(current_one.raw), streams)
    is_new = store.put_declaration(declaration, rendered, now_ns)
    return Accepted(declaration, is_new)


def _held(snapshot: ReadSnapshot, connector_key: str) -> dict[str, StoredRecord]:
    """Streams of a source that hold records, with one of them."""
    by_name: dict[str, StoredRecord] = {}
    for stream in snapshot.stored_streams():
        if stream.connector_key == connector_key and stream.record_count:
            for row in islice(snapshot.export(stream.connection_id, stream.stream), 1):
                by_name[stream.stream] = row
    return by_name


def _refuse_conflict(
    store: RecordStore, declaration: SourceDeclaration, current: tuple[StoredDeclaration, ...]
) -> None:
    key, source_id = declaration.connector_key, declaration.source_id
    for other in current:
        if (other.connector_key == key) != (other.source_id == source_id):
            raise DeclarationConflict(
                (
                    "A connector key belongs to one source. Here that key already belongs to "
                    "another source, or that source to another key."
                ),
                param="connector_key",
            )
    stored = store.declaration(key, declaration.version)
    if stored is not None and stored.digest != declaration.digest:
        raise DeclarationConflict(
            (
                "This version of the source declaration exists already with other "
                "content. Give the changed declaration a new version."
            ),
            param="declaration_version",
        )


def _refuse_incompatible(
    declaration: SourceDeclaration, known: SourceDeclaration, streams: Mapping[str, StoredRecord]
) -> None:
    for name, row in sorted(streams.items()):
        before, after = known.streams.get(name), declaration.streams.get(name)
        if after is not None and not _compatible(before, after, row):
            raise DeclarationIncompatible(
                f"The stream '{name}' has records, so its primary_key and semantics cannot change.",
                param="streams",
            )


def _compatible(before: Stream | None, after: Stream, row: StoredRecord) -> bool:
    """A stream that comes back after it was dropped is judged by the keys that are stored."""
    if before is not None:
        return before.primary_key == after.primary_key and before.semantics is after.semantics
    parts = [row.data.get(name) for name in after.primary_key]
    return None not in parts and canonical_key(parts) == row.key
