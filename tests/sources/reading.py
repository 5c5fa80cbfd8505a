"""Read exports in tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from personal_server.sources.errors import ExportNotRecognized
from personal_server.sources.export import open_export
from personal_server.sources.item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.registry import readings


def read_path(path: Path, start: int = 0) -> list[tuple[str, SourceItem]]:
    """Everything that all sources read from a path, with their keys; blobs are checked."""
    with open_export(path) as export:
        return [
            (reading.source.connector_key, item)
            for reading in readings(export)
            for item in reading.source.read(reading.export, start)
            if isinstance(item, Skipped) or holds_its_blobs(item)
        ]


def holds_its_blobs(item: SourceRecord) -> bool:
    """Check each blob against its address and against the field that points to it."""
    for blob in item.blobs:
        with blob.open() as stream:
            content = stream.read()
        assert hashlib.sha256(content).hexdigest() == blob.sha256
        assert len(content) == blob.size_bytes
        assert item.data[blob.json_path.lstrip("/")] == blob.value
    return True


def read_if_known(path: Path) -> list[tuple[str, SourceItem]]:
    """The same, and nothing from an export that no source recognizes any more."""
    try:
        return read_path(path)
    except ExportNotRecognized:
        return []


def records_of(items: list[tuple[str, SourceItem]], stream: str | None = None) -> list[Data]:
    """The data of the records, of one stream if named."""
    return [
        item.data
        for _, item in items
        if isinstance(item, SourceRecord) and stream in (None, item.stream)
    ]


def skips_of(items: list[tuple[str, SourceItem]]) -> list[str]:
    """The codes of what was skipped."""
    return [item.code for _, item in items if isinstance(item, Skipped)]
