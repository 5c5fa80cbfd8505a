"""A file that would end or fill the process that reads it costs one entry, once."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace

from pdpp_kernel.source_item import FileText, Skipped, SourceItem, SourceRecord, TextState
from pdpp_kernel.system.confinement import MB, Limits
from pdpp_sources.common.errors import ExportError, ExportTooCostly
from pdpp_sources.common.resume_point import Place
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from sources.tests.hostile_attachments import ATTACHED
from sources.tests.hostile_corpus import HostileFile, hostile_files
from sources.tests.reading import check_blobs, read_path
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.documents import DOCX, PDF
from sources.tests.specimens.files import as_zip

# Mended at their cause; what is left is for the limits.
IN_A_MOMENT = (
    "mail 200,000 nested div.mbox",
    "mail encoded words.mbox",
    "calendar 30,000 alarms.ics",
    "contacts soft line breaks.vcf",
    "contacts a picture of 20 MB.vcf",
    "bank an amount of 100,000 digits.ofx",
    "notes a heading and blanks.zip",
    "notes open links.zip",
    "notes 100,000 brackets in front.zip",
    "slack a character of many digits.zip",
    "table a made column of 400 MB.db",
    "track a character of many digits.gpx",
    "clipping blanks in a title.txt",
    "clipping digits.txt",
)
MAIL = (
    b"From: ann@b.example\nTo: bob@b.example\nSubject: hi\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\nMessage-ID: <1@b.example>\n\nText\n"
)
HOSTILE = {each.name: each for each in hostile_files()}


@pytest.fixture(scope="module")
def reader() -> Iterator[ReaderProcess]:
    with ReaderProcess(CostlyPlaces()) as process:
        yield process


def items_of(reader: ReaderProcess, path: Path) -> list[SourceItem]:
    contents = reader.look(path, Wanted())
    return [item for reading in contents.readings for item in reading.items()]


def records(items: list[SourceItem]) -> list[SourceRecord]:
    return [item for item in items if isinstance(item, SourceRecord)]


def skips(items: list[SourceItem]) -> list[tuple[str, str]]:
    return [(item.where, item.code) for item in items if isinstance(item, Skipped)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not among those that are searched for secrets when all tests are done."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def written(file: HostileFile, folder: Path) -> Path:
    path = folder / file.name
    path.write_bytes(file.content())
    return path


@pytest.mark.parametrize("key", sorted(SPECIMENS))
def test_it_reads_what_a_reader_in_this_process_reads(
    reader: ReaderProcess, key: str, tmp_path: Path
) -> None:
    path = as_zip(SPECIMENS[key], tmp_path / "export.zip")
    here = [item for _, item in read_path(path)]
    there = items_of(reader, path)
    assert skips(there) == skips(here)
    assert [(e.stream, e.data, e.position) for e in records(there)] == [
        (e.stream, e.data, e.position) for e in records(here)
    ]
    for record in records(there):
        check_blobs(record)


@pytest.mark.parametrize("name", IN_A_MOMENT)
def test_what_was_slow_or_deadly_is_read_in_a_moment(
    reader: ReaderProcess, name: str, folder: Path
) -> None:
    path = written(HOSTILE[name], folder)
    items = items_of(reader, path)
    assert len(records(items)) >= HOSTILE[name].good
    assert "too_costly" not in {code for _, code in skips(items)}


SLOW, LARGE = "mail 100,000 parts.mbox", "mail broken base64.mbox"
PART = b"--b\nContent-Type: text/plain\n\nx\n"
BRIEF, NARROW = Limits(seconds=0.4), Limits(memory_bytes=80 * MB)


class CountedPlaces(CostlyPlaces):
    """Counts how often a process was ended."""

    ends = 0

    def add(self, costly: Place) -> None:
        self.ends += 1
        super().add(costly)


@pytest.mark.parametrize(("name", "limits"), [(SLOW, BRIEF), (LARGE, NARROW)])
def test_an_entry_beyond_the_limits_is_named_and_costs_no_other(
    name: str, limits: Limits, folder: Path
) -> None:
    path = written(HOSTILE[name], folder)
    second = path.read_bytes().index(b"From a@x", 1)
    with ReaderProcess(CostlyPlaces(), limits) as process:
        items = items_of(process, path)
    assert [record.data["subject"] for record in records(items)] == ["good", "good"]
    assert skips(items) == [(f"{name} at byte {second}", "too_costly")]


def test_a_place_that_was_too_costly_is_remembered_and_not_tried_again(folder: Path) -> None:
    path, memory = written(HOSTILE[SLOW], folder), folder / "places.json"
    first, later = CountedPlaces(memory), CountedPlaces(memory)
    for places in (first, later):
        with ReaderProcess(places, BRIEF) as process:
            assert [code for _, code in skips(items_of(process, path))] == ["too_costly"]
    assert (first.ends, later.ends) == (1, 0)
    assert "mail" not in memory.read_text()


def test_another_folder_of_that_name_is_read(reader: ReaderProcess, tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    for number in range(3):
        (folder / "cur").mkdir(parents=True)
        (folder / "cur" / str(number)).write_bytes(MAIL)
        assert len(records(items_of(reader, folder))) > 0, number
        shutil.rmtree(folder)


def test_another_file_of_that_name_is_tried(folder: Path) -> None:
    path, places = written(HOSTILE[SLOW], folder), CountedPlaces()
    with ReaderProcess(places, BRIEF) as process:
        items_of(process, path)
        few = path.read_bytes().replace(PART * 99_990, b"")  # far within the limit, on any Python
        path.write_bytes(few.replace(b"--b", b"-"))
        items = items_of(process, path)
    assert (len(records(items)), skips(items)) == (4, [])


def test_a_file_that_is_too_costly_to_open_is_refused(folder: Path) -> None:
    many = {f"d/{number}": b"" for number in range(20_000)}
    path = as_zip(many, folder / "many.zip")
    with (
        ReaderProcess(CostlyPlaces(), Limits(seconds=0.02)) as process,
        pytest.raises(ExportError) as refused,
    ):
        process.look(path, Wanted())
    assert refused.value.code == "export_too_costly"


def test_places_that_cannot_be_read_are_none(folder: Path) -> None:
    memory = folder / "places.json"
    for content in ("", "{}", "[1]", '["a b c"]', '["a entry"]'):
        memory.write_text(content)
        assert CostlyPlaces(memory).known() == ()


def test_an_error_of_the_reader_s_own_is_told_without_what_it_read(folder: Path) -> None:
    path = written(HOSTILE[SLOW], folder)
    with ReaderProcess(CostlyPlaces()) as process:
        (reading,) = process.look(path, Wanted()).readings
        with pytest.raises(ExportError):
            list(replace(reading, number=9).items())
        (fault,) = process.faults
    assert re.fullmatch(r"IndexError in reader_worker\.py, line \d+", fault)


# What attached files say --------------------------------------------------------------------------
HOSTILE_ATTACHED: dict[str, tuple[str, Callable[[], bytes]]] = {n: (f, c) for n, f, c in ATTACHED}
GOOD_TEXT = FileText(TextState.READ, "good")
TOLD_SOON = {
    "zip bomb": TextState.TOO_COSTLY,
    "entities within bounds": TextState.DAMAGED,
    "200,000 nested div": TextState.EMPTY,
    "20 MB of blanks": TextState.CUT,
    "PDF of 50,000 nested pages": TextState.DAMAGED,
    "PDF of pages in themselves": TextState.DAMAGED,
    "PDF whose table leads to itself": TextState.DAMAGED,
    "encrypted PDF": TextState.ENCRYPTED,
}
BEYOND_LIMITS = {
    "PDF of 100,000 objects": Limits(seconds=0.5),
    "a million attributes": Limits(seconds=0.5),
    "one string in 300,000 cells": Limits(memory_bytes=100 * MB),
}


def said(process: ReaderProcess, content: bytes, name: str) -> FileText:
    return process.text_of(io.BytesIO(content), len(content), None, name)


def test_hostile_files_are_told_in_a_moment_and_cost_no_other() -> None:
    with ReaderProcess(CostlyPlaces()) as process:
        for name, state in TOLD_SOON.items():
            filename, content = HOSTILE_ATTACHED[name]
            assert said(process, content(), filename) == FileText(state), name
            assert said(process, b"good", "a.txt") == GOOD_TEXT
        assert process.faults == []


@pytest.mark.parametrize("name", BEYOND_LIMITS)
def test_one_beyond_the_limits_is_too_costly_and_costs_no_other(name: str) -> None:
    filename, content = HOSTILE_ATTACHED[name]
    with ReaderProcess(CostlyPlaces(), BEYOND_LIMITS[name]) as process:
        assert said(process, b"good", "a.txt") == GOOD_TEXT
        assert said(process, content(), filename) == FileText(TextState.TOO_COSTLY)
        assert said(process, b"good", "a.txt") == GOOD_TEXT


def test_threads_that_ask_at_once_are_answered_at_once() -> None:
    with ReaderProcess(CostlyPlaces()) as process, ThreadPoolExecutor(4) as pool:
        contents = [f"file {number}".encode() * 50_000 for number in range(24)]
        answers = list(pool.map(partial(said, process), contents, ["a.txt"] * len(contents)))
        assert [each.text for each in answers] == [each.decode() for each in contents]


def test_whoever_leaves_waits_for_no_file() -> None:
    asked = Event()

    class Content(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.set()
            return super().read(size)

    def left() -> FileText:
        return process.text_of(Content(content()), len(content()), None, filename)

    filename, content = HOSTILE_ATTACHED["PDF of 100,000 objects"]  # which takes seconds
    with ThreadPoolExecutor(1) as pool:
        with ReaderProcess(CostlyPlaces()) as process:
            assert said(process, b"good", "a.txt") == GOOD_TEXT
            answer = pool.submit(left)
            assert asked.wait(30)
        with pytest.raises(ExportTooCostly):
            answer.result()


def test_it_reads_in_its_confinement_what_it_reads_without() -> None:
    with ReaderProcess(CostlyPlaces()) as process:
        assert said(process, PDF, "a.pdf").text == "A bill of 12 March\n\nPage two"
        assert said(process, DOCX, "a.docx").state is TextState.READ
