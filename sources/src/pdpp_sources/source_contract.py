"""The contract of a source as tests that a package of readers runs over its own.

A test module names the reader and an export of it; pytest, or unittest, finds the rest:

    class TestViewings(SourceContract):
        source = ViewingsSource()
        specimen = Path(__file__).parent / "specimen"

Nothing here needs pytest. What the checks promise stands in docs/sources.md.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from pdpp_kernel.source_item import SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.common.source import SourceReader
from pdpp_sources.declared_values import faults_of_declaration, faults_of_record
from pdpp_sources.registry import readings, with_outside

# What no reader of an export of its own may claim: a text, a table, a list in JSON, a mailbox.
_FOREIGN = (
    b"Bread\n\nFlour, water, salt. Bake for an hour.\n",
    b"colour;pieces\nred;3\ngreen;4\n",
    b'[{"colour": "red", "pieces": 3}, {"colour": "green", "pieces": 4}]\n',
    b"From bo@example.org Thu Feb  1 12:00:00 2024\nFrom: Bo <bo@example.org>\n"
    b"To: cy@example.org\nSubject: Bread\nDate: Thu, 1 Feb 2024 12:00:00 +0000\n\nBaked.\n",
)
_DATED = (2024, 2, 1, 12, 0, 0)


class SourceContract:
    """Tests of one source over a small export of it, which has something broken in it.

    Shapes: `specimen` is a file or a folder with a record of every stream that the source declares.
    """

    source: ClassVar[SourceReader]
    specimen: ClassVar[Path]

    def test_it_alone_reads_its_export(self) -> None:
        """No built-in source is surer of these files."""
        with open_export(self.specimen) as export:
            known = readings(export, sources=with_outside([self.source]))
        keys = [reading.source.connector_key for reading in known]
        assert keys == [self.source.connector_key], f"these sources read the specimen: {keys}"

    def test_it_leaves_the_files_of_others_alone(self) -> None:
        """A text, a table and a mailbox are not its own, whatever their names end in."""
        endings = {Path(name).suffix for name in _files(self.specimen)}
        for ending in sorted(endings | {".txt", ".csv", ".mbox"}):
            for content in _FOREIGN:
                with _folder({f"other{ending}": content}) as folder, open_export(folder) as export:
                    mine = self.source.recognize(export)
                names = [member.name for member in mine.members] if mine else []
                assert not names, f"it claims a {ending} that begins with {content[:20]!r}"

    def test_something_in_the_specimen_is_broken(self) -> None:
        """What is broken in an export is reported, and the rest is read."""
        broken = [item for item in self._read(self.specimen) if not isinstance(item, SourceRecord)]
        assert broken, "nothing in the specimen is reported: put an entry into it that is broken"

    def test_every_stream_has_a_record(self) -> None:
        """What is declared can come."""
        declared = {stream["name"] for stream in self.source.declaration["streams"]}
        seen = {item.stream for item in _records(self._read(self.specimen))}
        assert seen == declared, f"without a record: {sorted(declared - seen)}"

    def test_its_declaration_names_only_what_it_declares(self) -> None:
        """Keys, times, views, queries and relations are of fields that are there."""
        faults = list(faults_of_declaration(self.source.declaration))
        assert not faults, f"the import would refuse the declaration: {faults}"

    def test_every_record_fits_its_declaration(self) -> None:
        """Each value has its type and format, and none is missing or not declared."""
        streams = {each["name"]: each for each in self.source.declaration["streams"]}
        for item in _records(self._read(self.specimen)):
            faults = list(faults_of_record(streams[item.stream], item.data))
            assert not faults, f"the import would refuse a record of {item.stream}: {faults}"

    def test_reading_again_and_from_a_zip_says_the_same(self) -> None:
        """Ids come from the content, so that importing again changes nothing."""
        first = self._read(self.specimen)
        assert _told(first) == _told(self._read(self.specimen))
        with _zipped(self.specimen) as archive:
            assert _told(first) == _told(self._read(archive))

    def test_reading_from_a_position_continues_there(self) -> None:
        """An import that was interrupted goes on."""
        whole = self._read(self.specimen)
        positions = [item.position for item in whole]
        assert positions == sorted(positions), "positions fall"
        for start in sorted(set(positions)):
            rest = self._read(self.specimen, start)
            assert rest == [item for item in whole if item.position >= start], f"from {start}"

    def test_no_key_has_two_values(self) -> None:
        """A record is known by its stream and its key."""
        keys = {each["name"]: each["primary_key"] for each in self.source.declaration["streams"]}
        known: dict[tuple[str, ...], object] = {}
        for item in self._read(self.specimen):
            if isinstance(item, SourceRecord):
                own = (item.stream, *(str(item.data[name]) for name in keys[item.stream]))
                assert known.setdefault(own, item.data) == item.data, f"two records are {own}"
            else:
                assert item.code != "duplicate_id", f"{item.where}: two records have one key"

    def test_a_file_that_is_cut_short_ends_no_import(self) -> None:
        """Damage is reported, never raised."""
        for kept in (0.9, 0.5, 0.1):
            with _cut(self.specimen, kept) as folder:
                self._read(folder)

    def _read(self, path: Path, start: int = 0) -> list[SourceItem]:
        with open_export(path) as export:
            mine = self.source.recognize(export)
            return list(self.source.read(export.only(mine.members), start)) if mine else []


def _records(items: list[SourceItem]) -> Iterator[SourceRecord]:
    return (item for item in items if isinstance(item, SourceRecord))


def _told(items: list[SourceItem]) -> list[tuple[str, object]]:
    return [(item.stream, item.data) for item in _records(items)]


def _files(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    root = path.parent if path.is_file() else path
    return {str(each.relative_to(root)): each.read_bytes() for each in files}


@contextmanager
def _zipped(path: Path) -> Generator[Path]:
    """The files in an archive, all of one time."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "export.zip"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in _files(path).items():
                archive.writestr(zipfile.ZipInfo(name, _DATED), content)
        yield target


@contextmanager
def _folder(contents: Mapping[str, bytes]) -> Generator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            target = Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield Path(folder)


@contextmanager
def _cut(path: Path, kept: float) -> Generator[Path]:
    """The files without their ends."""
    files = _files(path).items()
    with _folder({name: content[: int(len(content) * kept)] for name, content in files}) as folder:
        yield folder
