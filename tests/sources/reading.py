"""Read exports in tests."""

from __future__ import annotations

from pathlib import Path

from personal_server.sources.errors import ExportNotRecognized
from personal_server.sources.export import open_export
from personal_server.sources.item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.registry import readings


def read_path(path: Path, start: int = 0) -> list[tuple[str, SourceItem]]:
    """Everything that all sources read from a path, with their keys."""
    with open_export(path) as export:
        return [
            (reading.source.connector_key, item)
            for reading in readings(export)
            for item in reading.source.read(reading.export, start)
        ]


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
