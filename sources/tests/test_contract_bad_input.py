"""What every source promises of exports that are broken, hostile, or written elsewhere."""

from __future__ import annotations

import re
import zipfile
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.source_item import SourceItem, SourceRecord
from pdpp_sources.common.errors import ExportError, ExportNotRecognized
from pdpp_sources.common.export import open_export
from pdpp_sources.common.source import SourceReader
from pdpp_sources.registry import SOURCES, readings
from sources.tests import hostile
from sources.tests.reading import checked, entries_of, read_if_known, read_path, skips_of, within
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_zip
from sources.tests.test_contract import every_source, modest, specimen

# Lines that say where an entry begins and ends: without them nobody can tell entries apart.
FRAMING = re.compile(
    rb"^(?:BEGIN|END|From |[A-Z]+HEADER)[^\n]*|<[^>]*>"
    rb'|\]\s*,\s*"[^"]*"\s*:(?:\s*\{\s*"[^"]*"\s*:(?=\s*\[))?|\]\s*\}\s*,\s*\{[^{}\[\]]*"messages"\s*:'
    rb'|"messages"\s*:',
    re.MULTILINE,
)

FIT = b"\x0e\x20"  # its values are no characters that could be spoiled
BINARY = (b"\x89", b"\xff", b"SQLite format 3", b"bplist00", FIT)
Known = set[tuple[str, str]]
Packed = Callable[[Files, Path], Path]


def known(items: list[tuple[str, SourceItem]]) -> Known:
    """The records that were read, by stream and id."""
    return {(i.stream, i.data["id"]) for _, i in items if isinstance(i, SourceRecord)}


def test_every_source_has_a_specimen() -> None:
    assert set(SPECIMENS) == {source.connector_key for source in SOURCES}


@every_source
@modest
@given(data=st.data())
def test_an_entry_that_cannot_be_decoded_costs_no_other(
    source: SourceReader, tmp_path: Path, data: st.DataObject
) -> None:
    whole, entries = spoilable(source.connector_key)
    if not entries:
        return  # databases only: of those test_a_row_that_is_not_utf_8 tells
    entry = data.draw(st.sampled_from(entries))
    spoiled = bytearray(specimen(source)[entry.name])
    for at in data.draw(st.lists(st.sampled_from(entry.letters), min_size=1, max_size=3)):
        spoiled[at] = 0xFF
    rest = read_path(as_folder({**specimen(source), entry.name: bytes(spoiled)}, tmp_path))
    others = [
        each for each in whole if not entry.begin <= each[1].position - entry.offset < entry.end
    ]
    assert streams_of(rest) >= streams_of(others)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a file of a specimen.

    Shapes: `offset` is the file's in the whole export; `letters` are where values can be spoiled.
    """

    name: str
    begin: int
    end: int
    offset: int
    letters: list[int]


@cache
def spoilable(connector_key: str) -> tuple[list[tuple[str, SourceItem]], list[Entry]]:
    """What the specimen of a source gives, and its entries that hold something to spoil."""
    files = SPECIMENS[connector_key]
    with TemporaryDirectory() as folder:
        path = as_folder(files, Path(folder))
        entries = [
            Entry(name, begin, end, offset_of(path, name), letters)
            for name, begin, end in entries_of(path)
            if not files[name].startswith(FIT)
            and (letters := values_within(files[name], begin, end))
        ]
        return read_path(path), entries


def values_within(body: bytes, begin: int, end: int) -> list[int]:
    """Where letters and digits stand that frame nothing."""
    framing = {at for line in FRAMING.finditer(body) for at in range(*line.span())}
    return [at for at in range(begin, end) if body[at : at + 1].isalnum() and at not in framing]


def offset_of(path: Path, name: str) -> int:
    with open_export(path) as export:
        return next(member.offset for member in export.members if member.name == name)


def held_by_file(source: SourceReader, path: Path) -> dict[str, Counter[str]]:
    """How many records of each stream each file of the specimen gives."""
    with open_export(as_zip(specimen(source), path)) as export:
        return {
            member.name: Counter(
                item.stream
                for _, item in read_path(path)
                if isinstance(item, SourceRecord) and within(item.position, member)
            )
            for member in export.members
        }


def total(counts: Iterable[Counter[str]]) -> Counter[str]:
    return Counter(stream for each in counts for stream in each.elements())


def streams_of(items: list[tuple[str, SourceItem]]) -> Counter[str]:
    return Counter(item.stream for _, item in items if isinstance(item, SourceRecord))


@every_source
def test_a_file_that_is_missing_costs_no_other(source: SourceReader, tmp_path: Path) -> None:
    held = held_by_file(source, tmp_path / "whole.zip")
    for missing in held:
        rest = {name: body for name, body in specimen(source).items() if name != missing}
        items = read_if_known(as_zip(rest, tmp_path / "rest.zip"))
        others = [counts for name, counts in held.items() if name != missing]
        assert streams_of(items) >= total(others) or not items


@every_source
def test_a_mark_before_the_text_changes_nothing(source: SourceReader, tmp_path: Path) -> None:
    marked = {
        name: body if body.startswith(BINARY) else BOM_UTF8 + body
        for name, body in specimen(source).items()
    }
    plain = read_path(as_folder(specimen(source), tmp_path / "plain"))
    again = read_path(as_folder(marked, tmp_path / "marked"))
    assert known(again) == known(plain)
    assert skips_of(again) == skips_of(plain)


@every_source
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "cp037"])
def test_no_encoding_makes_it_fail(source: SourceReader, encoding: str, tmp_path: Path) -> None:
    written = {
        name: body.decode("utf-8", "replace").encode(encoding, "replace")
        for name, body in specimen(source).items()
    }
    read_if_known(as_folder(written, tmp_path))


@every_source
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/St_Johns", "Africa/Abidjan"])
def test_times_without_a_zone_are_read_in_any(
    source: SourceReader, zone: str, tmp_path: Path
) -> None:
    path = as_folder(specimen(source), tmp_path)
    with open_export(path) as export:
        there = [
            ("", item)
            for reading in readings(replace(export, zone=ZoneInfo(zone)))
            for item in checked(reading.source, reading.source.read(reading.export))
        ]
    assert [item.position for _, item in there] == [i.position for _, i in read_path(path)]


@every_source
def test_entries_that_may_not_be_read_are_not_and_cost_no_other(
    source: SourceReader, tmp_path: Path
) -> None:
    clean = read_path(as_zip(specimen(source), tmp_path / "clean.zip"))
    path = hostile.with_hostile_entries(specimen(source), tmp_path / "hostile.zip")
    assert known(read_path(path)) == known(clean)
    assert hostile.SECRET not in repr(read_path(path)).encode()


@every_source
@pytest.mark.parametrize("packed", [hostile.encrypted, hostile.of_unknown_packing])
def test_an_archive_of_which_nothing_can_be_read_is_refused(
    source: SourceReader, packed: Packed, tmp_path: Path
) -> None:
    with pytest.raises(ExportNotRecognized):
        read_path(packed(specimen(source), tmp_path / "export.zip"))


@every_source
def test_bodies_shared_by_many_names_cost_no_other(source: SourceReader, tmp_path: Path) -> None:
    shared = hostile.overlapping(specimen(source), tmp_path / "shared.zip", copies=20)
    single = hostile.overlapping(specimen(source), tmp_path / "single.zip", copies=0)
    assert known(read_if_known(shared)) == known(read_if_known(single))


@every_source
def test_a_zip_cut_anywhere_is_refused_by_name(source: SourceReader, tmp_path: Path) -> None:
    whole = as_zip(specimen(source), tmp_path / "whole.zip").read_bytes()
    for kept in (4, 30, len(whole) // 3, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        cut = tmp_path / "cut.zip"
        cut.write_bytes(whole[:kept])
        with pytest.raises(ExportError) as caught:
            read_path(cut)
        assert caught.value.code == "export_truncated"
        assert caught.value.next_step


@every_source
def test_a_damaged_file_of_a_zip_costs_no_other(source: SourceReader, tmp_path: Path) -> None:
    whole = tmp_path / "whole.zip"
    held = held_by_file(source, whole)
    with zipfile.ZipFile(whole) as archive:
        entries = archive.infolist()
    for entry in entries:
        begin = entry.header_offset + 30 + len(entry.filename.encode())
        damaged = bytearray(whole.read_bytes())
        damaged[begin : begin + entry.compress_size] = b"\xff" * entry.compress_size
        (tmp_path / "damaged.zip").write_bytes(damaged)
        items = read_if_known(tmp_path / "damaged.zip")
        others = [counts for name, counts in held.items() if name != entry.filename]
        assert streams_of(items) >= total(others) or not items
