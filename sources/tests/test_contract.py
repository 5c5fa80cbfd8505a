"""What every source promises, whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.common.source import SourceReader
from pdpp_sources.registry import SOURCES, reading_as, readings
from sources.tests.reading import read_if_known, read_path
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_zip

every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.connector_key)
modest = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def specimen(source: SourceReader) -> Files:
    return SPECIMENS[source.connector_key]


def fitted(source: SourceReader, path: Path) -> SourceReader:
    """The source as it reads this path; tables are read by a source made for them."""
    with open_export(path) as export:
        return reading_as(export, source).source


def records(items: list[tuple[str, SourceItem]]) -> list[SourceRecord]:
    return [item for _, item in items if isinstance(item, SourceRecord)]


def facts(items: list[tuple[str, SourceItem]]) -> list[tuple[Any, ...]]:
    """What two readings of one export have in common."""
    return [
        (key, item.stream, item.data, item.position)
        if isinstance(item, SourceRecord)
        else (key, item)
        for key, item in items
    ]


@every_source
def test_it_recognizes_its_export_alone(source: SourceReader, tmp_path: Path) -> None:
    path = as_folder(specimen(source), tmp_path)
    with open_export(path) as export:
        (reading,) = readings(export)
        assert reading.source.connector_key.startswith(source.connector_key)


@every_source
def test_every_stream_that_it_declares_has_a_record_in_the_specimen(
    source: SourceReader, tmp_path: Path
) -> None:
    path = as_folder(specimen(source), tmp_path)
    seen = {item.stream for item in records(read_path(path))}
    assert seen == {stream["name"] for stream in fitted(source, path).declaration["streams"]}


@every_source
def test_every_record_fits_its_schema(source: SourceReader, tmp_path: Path) -> None:
    read_path(as_folder(specimen(source), tmp_path))


@every_source
def test_a_zip_says_the_same_as_the_folder(source: SourceReader, tmp_path: Path) -> None:
    folder = read_path(as_folder(specimen(source), tmp_path / "folder"))
    archive = read_path(as_zip(specimen(source), tmp_path / "export.zip"))
    assert [(i.stream, i.data) for i in records(folder)] == [
        (i.stream, i.data) for i in records(archive)
    ]


@every_source
def test_reading_again_says_the_same(source: SourceReader, tmp_path: Path) -> None:
    path = as_zip(specimen(source), tmp_path / "export.zip")
    assert facts(read_path(path)) == facts(read_path(path))


@every_source
def test_reading_from_a_position_continues_there(source: SourceReader, tmp_path: Path) -> None:
    path = as_zip(specimen(source), tmp_path / "export.zip")
    whole = facts(read_path(path))
    positions = [item.position for _, item in read_path(path)]
    assert positions == sorted(positions)
    for start in sorted(set(positions)):
        rest = [fact for fact, at in zip(whole, positions, strict=True) if at >= start]
        assert facts(read_path(path, start)) == rest


@every_source
def test_no_key_has_two_values_in_one_export(source: SourceReader, tmp_path: Path) -> None:
    twice = {f"{copy}/{name}": body for copy in "ab" for name, body in specimen(source).items()}
    known: dict[tuple[str, str], Data] = {}
    for path in (as_folder(specimen(source), tmp_path / "1"), as_folder(twice, tmp_path / "2")):
        known.clear()
        for item in records(read_if_known(path)):
            assert known.setdefault((item.stream, item.data["id"]), item.data) == item.data


@every_source
@pytest.mark.parametrize("kept", [0.9, 0.5, 0.1])
def test_a_truncated_file_is_reported_and_never_stops_the_others(
    source: SourceReader, kept: float, tmp_path: Path
) -> None:
    cut = {name: body[: int(len(body) * kept)] for name, body in specimen(source).items()}
    read_if_known(as_folder(cut, tmp_path))


@every_source
@modest
@given(data=st.data())
def test_no_damage_to_the_bytes_makes_it_fail(
    source: SourceReader, tmp_path: Path, data: st.DataObject
) -> None:
    files = dict(specimen(source))
    name = data.draw(st.sampled_from(sorted(files)))
    body = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    files[name] = bytes(body)
    read_if_known(as_zip(files, tmp_path / "export.zip"))


@every_source
def test_it_says_how_to_get_the_export_and_what_the_streams_are(
    source: SourceReader, tmp_path: Path
) -> None:
    assert len(source.how_to_export) > 40
    path = as_folder(specimen(source), tmp_path)
    for stream in fitted(source, path).declaration["streams"]:
        assert stream["display"]["label"]
        assert stream["display"]["detail"]
