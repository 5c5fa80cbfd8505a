"""Read exports in tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_sources.common.database import is_database
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.common.export import ExportMember, open_export
from pdpp_sources.common.source import SourceReader
from pdpp_sources.registry import readings


def read_path(path: Path, start: int = 0) -> list[tuple[str, SourceItem]]:
    """Everything that all sources read from a path, with their keys, checked."""
    with open_export(path) as export:
        return [
            (reading.source.connector_key, item)
            for reading in readings(export)
            for item in checked(reading.source, reading.items(start))
        ]


def checked(source: SourceReader, items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """The items, each record valid by its schema, its key usable, its blobs what they say."""
    validators = {
        stream["name"]: jsonschema_rs.validator_for(stream["schema"], validate_formats=True)
        for stream in source.declaration["streams"]
    }
    for item in items:
        if isinstance(item, SourceRecord):
            validators[item.stream].validate(item.data)
            assert 0 < len(item.data["id"]) <= 1024
            check_blobs(item)
        yield item


def check_blobs(item: SourceRecord) -> None:
    """Each blob against its address and against the field that points to it."""
    for blob in item.blobs:
        with blob.open() as stream:
            content = stream.read()
        assert hashlib.sha256(content).hexdigest() == blob.sha256
        assert len(content) == blob.size_bytes
        assert item.data[blob.json_path.lstrip("/")] == blob.value


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


def entries_of(path: Path) -> list[tuple[str, int, int]]:
    """Each entry that something was read from: its file, where it begins, where the next does."""
    positions = {item.position for _, item in read_path(path)}
    found: list[tuple[str, int, int]] = []
    with open_export(path) as export:
        for member in export.members:
            if is_database(member.head()):
                continue  # its positions count rows, not bytes
            starts = sorted(at - member.offset for at in positions if within(at, member))
            ends = [*starts[1:], member.size_bytes]
            found += [(member.name, *bounds) for bounds in zip(starts, ends, strict=False)]
    return found


def within(position: int, member: ExportMember) -> bool:
    """Whether a position lies in a member."""
    return member.offset <= position < member.end
