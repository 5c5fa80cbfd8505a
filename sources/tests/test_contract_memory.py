"""Memory holds an entry of an export, never the export."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import SOURCES, readings
from sources.tests.bulk import AT_ONCE, BULK, bulky
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder

ENTRIES = 550
MOST_BYTES = 3_000_000


def test_every_source_is_read_in_bulk_or_says_why_not() -> None:
    assert {*BULK, *AT_ONCE} == {source.connector_key for source in SOURCES}


@pytest.mark.parametrize("key", sorted(BULK))
def test_an_export_of_any_length_takes_as_much_memory_as_a_short_one(
    key: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with open_export(as_folder(SPECIMENS[key], tmp_path_factory.mktemp("first"))) as export:
        for reading in readings(export):  # what a reader loads at its first use is no entry's
            assert list(reading.source.read(reading.export))
    path = bulky(key, ENTRIES, tmp_path)
    with open_export(path) as export:
        assert export.total_bytes > 1.1 * MOST_BYTES
        (reading,) = readings(export)
        tracemalloc.start()
        try:
            items = reading.source.read(reading.export)
            read = sum(isinstance(item, SourceRecord) for item in items)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert read >= ENTRIES
    assert peak < MOST_BYTES
