"""Uploads on the disk: cut off, twice, from two tabs, too large, of a wrong name, and read."""

from __future__ import annotations

import json
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import (
    BodyTooLarge,
    InvalidRequest,
    InvalidState,
    NotFound,
    StorageUnavailable,
)
from personal_server.collecting.uploads import READ_AT_ONCE, Uploads, UploadState
from server.tests.app.http_server.served import until

# How long whoever waits for a reader leaves the processor to it.
LOOK_SECONDS = 0.005
DONE: dict[str, Any] = {"imports": [{"streams": {}}], "not_read": []}
UNCLEAR = {"error": {"code": "ambiguous_connection", "message": "m", "next_step": "n"}}


class Reader:
    """What would import: it prints what it is told, once it may."""

    def __init__(self, folder: Path) -> None:
        self.said: object = DONE
        self.code = 0
        self.within: Path | None = None
        self.asked: list[tuple[list[str], str | None]] = []
        self.may_end = folder / "may-end"
        self.may_end.touch()
        self.running = folder / "running"
        self.running.mkdir()
        self.counted = folder / "counted"

    def __call__(
        self, paths: Sequence[Path], within: Path | None, account: str | None
    ) -> Sequence[str]:
        self.within = within
        self.asked.append(([path.name for path in paths], account))
        script = (
            "import os,sys,select\n"
            f"running = {str(self.running)!r}; own = running + f'/{{os.getpid()}}'\n"
            "open(own, 'w').close()\n"
            f"print(len(os.listdir(running)), file=open({str(self.counted)!r}, 'a'))\n"
            f"while not os.path.exists({str(self.may_end)!r}): select.select([],[],[],0.01)\n"
            f"os.remove(own); sys.stdout.write({json.dumps(self.said)!r}); sys.exit({self.code})"
        )
        return [sys.executable, "-I", "-S", "-c", script]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@pytest.fixture
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def uploads(tmp_path: Path, reader: Reader, numbers: Iterator[int]) -> Uploads:
    def random_bytes(size: int) -> bytes:
        return next(numbers).to_bytes(size, "big")

    return Uploads(tmp_path / "uploads", 1_000, reader, {}, lambda: next(numbers), random_bytes)


def ended(uploads: Uploads, upload_id: str) -> UploadState:
    """The state once nobody reads it any more."""
    until(
        lambda: uploads.one(upload_id).state is not UploadState.IMPORTING,
        pause_seconds=LOOK_SECONDS,
    )
    return uploads.one(upload_id).state


def whole(uploads: Uploads, name: str = "a.mbox") -> str:
    made = uploads.begin(name, 10, "m")
    uploads.append(made.upload_id, name, 0, b"0123456789")
    return made.upload_id


def test_a_cut_off_upload_is_found_again_and_goes_on_where_it_ended(uploads: Uploads) -> None:
    made = uploads.begin("a.mbox", 10, "m")
    assert uploads.append(made.upload_id, "a.mbox", 0, b"01234") == 5
    again = uploads.begin("a.mbox", 10, "m")
    assert (again.upload_id, again.received_bytes) == (made.upload_id, 5)
    assert uploads.begin("a.mbox", 10, "another").upload_id != made.upload_id
    with pytest.raises(InvalidState) as refused:
        uploads.append(made.upload_id, "a.mbox", 0, b"01234")
    assert refused.value.members["received_bytes"] == 5
    assert uploads.append(made.upload_id, "a.mbox", 5, b"56789") == 10
    content = uploads.folder / made.upload_id / "content" / "a.mbox"
    assert content.read_bytes() == b"0123456789"


def test_a_folder_keeps_its_places(uploads: Uploads) -> None:
    made = uploads.begin("Takeout", 4, "m")
    uploads.append(made.upload_id, "Takeout/a/x", 0, b"12")
    uploads.append(made.upload_id, "Takeout/b/x", 0, b"34")
    assert uploads.one(made.upload_id).is_whole
    assert (uploads.folder / made.upload_id / "content/Takeout/b/x").read_bytes() == b"34"


def test_every_folder_of_an_upload_is_its_owners_alone(uploads: Uploads) -> None:
    made = uploads.begin("Takeout", 2, "m")
    uploads.append(made.upload_id, "Takeout/a/b/x", 0, b"12")
    folders = [path for path in uploads.folder.rglob("*") if path.is_dir()]
    assert len(folders) == 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize(
    "path", ["", "../x", "a/../../x", "a\\b", "a\x00", "/etc/passwd", "a" * 201]
)
def test_a_file_stays_in_its_folder(uploads: Uploads, path: str) -> None:
    made = uploads.begin("a", 4, "m")
    with pytest.raises(InvalidRequest):
        uploads.append(made.upload_id, path, 0, b"1")


@pytest.mark.parametrize("name", ["明細\u30002026.csv", "relevé\u202f1\xa0.csv"])
def test_any_white_space_of_a_line_may_be_in_the_name_of_a_file(
    uploads: Uploads, name: str
) -> None:
    made = uploads.begin("a", 1, "m")
    uploads.append(made.upload_id, f"{name}/{name}", 0, b"1")
    assert uploads.one(made.upload_id).is_whole


def test_more_than_was_announced_or_than_there_is_room_for_is_refused(uploads: Uploads) -> None:
    made = uploads.begin("a", 4, "m")
    with pytest.raises(BodyTooLarge):
        uploads.append(made.upload_id, "a", 0, b"12345")
    with pytest.raises(BodyTooLarge):
        uploads.begin("b", 10 * 1024**3, "m")
    assert uploads.begin("c", 996, "m").received_bytes == 0
    with pytest.raises(BodyTooLarge):
        uploads.begin("d", 1, "m")


def test_nothing_is_made_where_the_data_directory_was_moved_away(
    uploads: Uploads, tmp_path: Path
) -> None:
    gone = replace(uploads, folder=tmp_path / "gone" / "uploads")
    with pytest.raises(StorageUnavailable):
        gone.begin("a.mbox", 10, "m")
    with pytest.raises(StorageUnavailable):
        gone.take(tmp_path / "a.mbox", tmp_path, 10, "m")
    assert not gone.folder.parent.exists()


def test_what_is_not_whole_is_not_read(uploads: Uploads) -> None:
    made = uploads.begin("a", 4, "m")
    with pytest.raises(InvalidState):
        uploads.start(made.upload_id, None)


def test_it_is_read_and_its_bytes_are_gone(uploads: Uploads, reader: Reader) -> None:
    upload_id = whole(uploads)
    uploads.start(upload_id, "Home")
    assert ended(uploads, upload_id) is UploadState.IMPORTED
    assert reader.asked == [(["a.mbox"], "Home")]
    content = uploads.folder / upload_id / "content"
    until(lambda: not content.exists(), pause_seconds=LOOK_SECONDS)
    assert uploads.one(upload_id).report == DONE
    assert uploads.one(upload_id).is_whole
    with pytest.raises(InvalidState):
        uploads.start(upload_id, None)
    uploads.remove(upload_id)
    assert uploads.each() == []


def test_two_tabs_do_not_read_or_remove_it_at_once(uploads: Uploads, reader: Reader) -> None:
    upload_id = whole(uploads)
    reader.may_end.unlink()
    uploads.start(upload_id, None)
    assert uploads.one(upload_id).state is UploadState.IMPORTING
    with pytest.raises(InvalidState):
        uploads.start(upload_id, None)
    with pytest.raises(InvalidState):
        uploads.remove(upload_id)
    with pytest.raises(InvalidState):
        uploads.append(upload_id, "a.mbox", 10, b"")
    reader.may_end.touch()
    assert ended(uploads, upload_id) is UploadState.IMPORTED


def test_what_the_reader_asks_is_answered_by_an_account(uploads: Uploads, reader: Reader) -> None:
    upload_id = whole(uploads)
    reader.said, reader.code = UNCLEAR, 1
    uploads.start(upload_id, None)
    assert ended(uploads, upload_id) is UploadState.UNCLEAR
    reader.said, reader.code = DONE, 0
    uploads.start(upload_id, "cin_1")
    assert ended(uploads, upload_id) is UploadState.IMPORTED


def test_a_reader_that_ends_without_a_word_failed_and_may_try_again(
    uploads: Uploads, reader: Reader
) -> None:
    upload_id = whole(uploads)
    reader.said, reader.code = {}, 70
    uploads.start(upload_id, None)
    assert ended(uploads, upload_id) is UploadState.FAILED
    assert uploads.one(upload_id).received_bytes == 10


def test_what_nothing_reads_stays_until_it_is_removed(uploads: Uploads, reader: Reader) -> None:
    upload_id = whole(uploads)
    reader.said, reader.code = {"error": {"code": "export_not_recognized", "message": "m"}}, 65
    uploads.start(upload_id, None)
    for ending in [each for each in threading.enumerate() if each.name == upload_id]:
        ending.join()
    found = uploads.one(upload_id)
    assert (found.state, found.received_bytes) == (UploadState.FAILED, 10)


def test_of_many_that_are_to_be_read_few_are_read_at_a_time(
    uploads: Uploads, reader: Reader
) -> None:
    reader.may_end.unlink()
    uploads = replace(uploads, quota_bytes=10_000)
    waiting = [whole(uploads, f"{number}.mbox") for number in range(8)]
    for upload_id in waiting:
        uploads.start(upload_id, None)
    assert {uploads.one(each).state for each in waiting} == {UploadState.IMPORTING}
    until(
        lambda: reader.counted.exists() and reader.counted.read_text().count("\n") >= READ_AT_ONCE,
        pause_seconds=LOOK_SECONDS,
    )
    reader.may_end.touch()
    for importing in [each for each in threading.enumerate() if each.name in waiting]:
        importing.join()
    assert {uploads.one(each).state for each in waiting} == {UploadState.IMPORTED}
    counted = [int(line) for line in reader.counted.read_text().splitlines()]
    assert (len(counted), max(counted)) == (8, READ_AT_ONCE)


def test_what_waited_when_a_server_was_killed_is_read_by_the_next(
    uploads: Uploads, reader: Reader
) -> None:
    upload_id, read = whole(uploads), whole(uploads, "b.mbox")
    folder = uploads.folder / upload_id
    (folder / "waiting.json").write_text('"Home"')
    (folder / "report.json").touch()
    (uploads.folder / read / "report.json").write_text(json.dumps(DONE))
    assert uploads.one(upload_id).state is UploadState.IMPORTING
    uploads.go_on()
    assert ended(uploads, upload_id) is UploadState.IMPORTED
    assert reader.asked == [(["a.mbox"], "Home")]
    assert not (uploads.folder / read / "content").exists()
    assert uploads.one(read).state is UploadState.IMPORTED


@pytest.mark.parametrize("upload_id", ["upl_0", "..", "upl_../..", "x"])
def test_ids_of_others_lead_nowhere(uploads: Uploads, upload_id: str) -> None:
    whole(uploads)
    with pytest.raises(NotFound):
        uploads.one(upload_id)
