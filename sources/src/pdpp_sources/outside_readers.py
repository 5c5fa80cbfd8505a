"""Readers of other packages, found by the entry point `pdpp.sources`.

An installed package that declares, in its pyproject.toml,

    [project.entry-points."pdpp.sources"]
    viewings = "viewings_reader:ViewingsSource"

adds a reader: what is named is called without arguments and gives a `SourceReader`.

Rule: it is imported in the process that reads exports and nowhere else, and there only when that
process has given up the network and every change to files (`pdpp_kernel/system/confinement.py`).
A reader that cannot be used is named, and costs no other.
Source: CONTRIBUTING.md#a-reader-of-your-own-package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

import msgspec

from pdpp_kernel.source_declaration import OWN_FILE_PREFIX
from pdpp_kernel.source_item import Data, SourceItem
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.common.export import Export
from pdpp_sources.common.source import Claim, SourceReader
from pdpp_sources.reader_channel import fault_of
from pdpp_sources.reader_messages import UnusableReader

GROUP = "pdpp.sources"


class _Display(msgspec.Struct):
    name: str
    detail: str


class _StreamDisplay(msgspec.Struct):
    label: str
    detail: str


class _Schema(msgspec.Struct):
    properties: dict[str, dict[str, Any]]


class _Stream(msgspec.Struct):
    name: str
    display: _StreamDisplay
    schema: _Schema


class _Source(msgspec.Struct):
    id: str


class _Declared(msgspec.Struct):
    """What is shown of a declaration before the server checks all of it at an import."""

    connector_key: str
    source: _Source
    display: _Display
    streams: list[_Stream]


class UnusableError(Exception):
    """A reader that cannot be offered; its text says why."""


class OutsideReader(msgspec.Struct, frozen=True):
    """A reader of another package, as the port that built-in readers stand behind.

    Its declaration is a copy made once. An error of its own while it looks at an export is kept in
    `faults` and counts as "not mine", so that it costs no file that others read; one while it reads
    ends the reading, as of any reader.
    """

    package: str
    connector_key: str
    declaration: Data
    how_to_export: str
    inner: SourceReader
    faults: list[str] = msgspec.field(default_factory=list[str])

    def recognize(self, export: Export) -> Claim | None:
        """What it claims; nothing, where it fails."""
        try:
            claimed = self.inner.recognize(export)
            return Claim(tuple(claimed.members), str(claimed.why)) if claimed else None
        except (ExportError, BadRecord, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 (the boundary to code of others)
            self.faults.append(f"{self.package}: {fault_of(error)}")
            return None

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """What it yields."""
        return self.inner.read(export, start)


def outside_readers(
    built_in: Sequence[SourceReader],
) -> tuple[tuple[OutsideReader, ...], list[UnusableReader]]:
    """The readers of other packages, by name of package, and those that cannot be used."""
    usable: list[OutsideReader] = []
    unusable: list[UnusableReader] = []
    for package, entry in _entries():
        readers = [*built_in, *usable]
        try:
            usable.append(_loaded(package, entry, readers))
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the boundary to code of others)
            fault = str(error) if isinstance(error, UnusableError) else fault_of(error)
            unusable.append(UnusableReader(entry.name, package, fault))
    return tuple(usable), unusable


def _entries() -> list[tuple[str, EntryPoint]]:
    """Each entry point with the name and version of its package."""
    entries = [
        (f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?", entry)
        for entry in entry_points(group=GROUP)
    ]
    return sorted(entries, key=lambda pair: (pair[0], pair[1].name))


def _loaded(package: str, entry: EntryPoint, readers: Collection[SourceReader]) -> OutsideReader:
    """Raises: UnusableError, and whatever the package raises."""
    inner = cast("SourceReader", entry.load()())
    try:
        written = msgspec.msgpack.encode(inner.declaration)
        declared = msgspec.msgpack.decode(written, type=_Declared)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnusableError(f"its declaration cannot be used: {error}") from None
    key = declared.connector_key
    if inner.connector_key != key:
        raise UnusableError(f"it is called {inner.connector_key!r}, its declaration {key!r}")
    if key.startswith(OWN_FILE_PREFIX) or key in {reader.connector_key for reader in readers}:
        raise UnusableError(f"another reader is called {key!r}")
    if declared.source.id in {reader.declaration["source"]["id"] for reader in readers}:
        raise UnusableError(f"another reader declares the source {declared.source.id!r}")
    declaration = cast("Data", msgspec.msgpack.decode(written))
    return OutsideReader(package, key, declaration, str(inner.how_to_export), inner)
