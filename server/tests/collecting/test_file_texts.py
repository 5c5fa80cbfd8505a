"""The text of files: read after their records, once, whatever ends it, and gone with them."""

from __future__ import annotations

import json
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from pdpp_kernel.record import JsonObject
from pdpp_kernel.source_item import Data, FileText, TextState
from pdpp_kernel.system import picture_languages
from pdpp_sources.reader_process import ReaderProcess
from personal_server.collecting import text_readings
from personal_server.collecting.imports import ImportRun
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.app.http_server.served import until
from server.tests.cli.import_machine import Machine
from server.tests.storage.conftest import sqlite_store
from sources.tests.specimens.documents import DOCX, PDF


def mail(*files: tuple[str, str, bytes], number: int = 1) -> bytes:
    """A message that carries files, each with its kind."""
    parts = "".join(
        f'--b\nContent-Type: {kind}; name="{name}"\nContent-Transfer-Encoding: base64\n\n'
        f"{b64encode(content).decode()}\n"
        for name, kind, content in files
    )
    head = f"From - Fri Mar  1 10:00:00 2024\nMessage-ID: <m{number}@x>\nSubject: bill {number}\n"
    head += "From: ann@x\nDate: 01 Mar 2024 10:00:00 +0000\n"
    return f'{head}Content-Type: multipart/mixed; boundary="b"\n\n{parts}--b--\n\n'.encode()


BILL = ("bill.pdf", "application/pdf", PDF)
LEASE = ("lease.docx", "application/octet-stream", DOCX)
PHOTO = ("photo.jpg", "image/jpeg", b"\xff\xd8\xff\xe0")


@pytest.fixture(params=["memory", "sqlite"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Machine]:
    if request.param == "memory":
        yield Machine()
        return
    with sqlite_store(tmp_path) as store:
        yield Machine(store)


def written(folder: Path, *mails: bytes) -> Path:
    path = folder / "Inbox"
    path.write_bytes(b"".join(mails))
    return path


def attachments(store: RecordStore) -> dict[str, JsonObject]:
    """The attachments by the name of their file."""
    with store.snapshot() as snapshot:
        (held,) = [each for each in snapshot.stored_streams() if each.stream == "attachments"]
        rows = snapshot.export(held.connection_id, "attachments")
        return {str(row.data["filename"]): row.data for row in rows}


def texts(store: RecordStore) -> dict[str, tuple[object, object]]:
    return {
        name: (data.get("text_state"), data.get("text"))
        for name, data in attachments(store).items()
    }


@contextmanager
def reading(text_of: object) -> Generator[None]:
    """Whoever reads files meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReaderProcess, "text_of", text_of)
        yield


@pytest.fixture(autouse=True)
def without_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_languages, "language_folder", lambda: None)


def of_a_loaf(*_: object) -> FileText:
    return FileText(TextState.READ, "A loaf")


def saying(state: TextState) -> Callable[..., FileText]:
    """Whoever reads no words."""

    def text_of(*_: object) -> FileText:
        return FileText(state)

    return text_of


def unread(*_: object) -> FileText:
    raise AssertionError("a file was read again")


def test_files_become_text_and_the_report_says_how_many(machine: Machine, tmp_path: Path) -> None:
    tallies = machine.streams(written(tmp_path, mail(BILL, LEASE, PHOTO)))
    assert tallies["attachments"] == {
        "read": 3,
        "rejected": 0,
        "new": 3,
        "updated": 0,
        "unchanged": 0,
        "texts": {"read": 2, "other_kind": 1},
    }
    found = texts(machine.store)
    assert found["bill.pdf"] == ("read", "A bill of 12 March\n\nPage two")
    assert found["lease.docx"][0] == "read"
    assert found["photo.jpg"] == ("other_kind", None)


def test_an_import_again_changes_nothing_and_reads_nothing(
    machine: Machine, tmp_path: Path
) -> None:
    path = written(tmp_path, mail(BILL, PHOTO), mail(LEASE, number=2))
    machine.streams(path)
    before = texts(machine.store)
    with reading(unread):
        tally = machine.streams(path)["attachments"]
    assert tally == {"read": 3, "rejected": 0, "new": 0, "updated": 0, "unchanged": 3}
    assert texts(machine.store) == before


def test_a_picture_is_read_once_tesseract_is_there(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, mail(PHOTO))
    machine.streams(path)
    assert texts(machine.store)["photo.jpg"] == ("other_kind", None)
    monkeypatch.setattr(picture_languages, "language_folder", lambda: tmp_path)
    with reading(of_a_loaf):
        assert machine.streams(path)["attachments"]["texts"] == {"read": 1}
    with reading(unread):
        machine.streams(path)
    assert texts(machine.store)["photo.jpg"] == ("read", "A loaf")


@pytest.mark.parametrize("state", [TextState.PICTURES_UNREAD, TextState.EMPTY])
def test_a_scan_is_read_once_tesseract_is_there(
    state: TextState, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, mail(BILL))
    with reading(saying(state)):
        machine.streams(path)
    assert texts(machine.store)["bill.pdf"] == (state, None)
    if state is TextState.PICTURES_UNREAD:  # which says that it has been looked for pictures
        with reading(unread):
            machine.streams(path)
    monkeypatch.setattr(picture_languages, "language_folder", lambda: tmp_path)
    with reading(of_a_loaf):
        tally = machine.streams(path)["attachments"]
    assert (tally["updated"], tally["texts"]) == (1, {"read": 1})
    with reading(unread):
        machine.streams(path)
    assert texts(machine.store)["bill.pdf"] == ("read", "A loaf")


def test_a_scan_without_words_is_read_once(machine: Machine, tmp_path: Path) -> None:
    path = written(tmp_path, mail(BILL))
    with reading(saying(TextState.NO_WORDS)):
        machine.streams(path)
    with reading(unread):
        machine.streams(path)
    assert texts(machine.store)["bill.pdf"] == ("no_words", None)


def test_the_same_bytes_are_read_once_in_a_batch(machine: Machine, tmp_path: Path) -> None:
    read: list[str | None] = []

    def text_of(_: object, content: BinaryIO, size: int, kind: str | None, name: str) -> FileText:
        read.append(name)
        return FileText(TextState.READ, f"{len(content.read())} of {size}")

    with reading(text_of):
        machine.streams(written(tmp_path, mail(BILL), mail(BILL, number=2)))
    assert read == ["bill.pdf"]
    assert texts(machine.store)["bill.pdf"] == ("read", f"{len(PDF)} of {len(PDF)}")


def test_what_was_interrupted_is_found_again_and_done(machine: Machine, tmp_path: Path) -> None:
    path = written(tmp_path, mail(BILL, LEASE))

    def interrupted(*_: object) -> FileText:
        raise KeyboardInterrupt

    with reading(interrupted):
        machine.run("import", path)
    assert {state for state, _ in texts(machine.store).values()} == {"waiting"}
    machine.run("import", path)
    assert {state for state, _ in texts(machine.store).values()} == {"read"}
    tally = machine.streams(path)["attachments"]
    assert (tally["read"], tally["unchanged"]) == (2, 2)


def test_a_file_that_ends_its_reader_is_told_and_not_tried_again(
    machine: Machine, tmp_path: Path
) -> None:
    def costly(_: object, content: BinaryIO, size: int, kind: str | None, name: str) -> FileText:
        if name == "bill.pdf":
            return FileText(TextState.TOO_COSTLY)
        # already, if this ends it
        until(lambda: texts(machine.store)["bill.pdf"] == ("too_costly", None))
        return FileText(TextState.READ, "lease")

    path = written(tmp_path, mail(BILL, LEASE))
    with reading(costly):
        tally = machine.streams(path)["attachments"]
    assert tally["texts"] == {"too_costly": 1, "read": 1}
    with reading(unread):
        machine.streams(path)
    assert texts(machine.store) == {
        "bill.pdf": ("too_costly", None),
        "lease.docx": ("read", "lease"),
    }


def two_cores(_: int) -> set[int]:
    return {0, 1}


@pytest.fixture
def on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", two_cores)


@pytest.mark.parametrize("most_begun", [text_readings.MOST_BEGUN, 0])
def test_files_are_read_beside_each_other_however_many_were_begun(
    most_begun: int,
    machine: Machine,
    tmp_path: Path,
    on_two_cores: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_readings, "MOST_BEGUN", most_begun)
    both = threading.Barrier(2, timeout=30)

    def text_of(*arguments: object) -> FileText:
        both.wait()
        return FileText(TextState.READ, str(arguments[-1]))

    with reading(text_of):
        machine.streams(written(tmp_path, mail(BILL, LEASE)))
    assert texts(machine.store) == {n: ("read", n) for n in ("bill.pdf", "lease.docx")}


def test_files_are_read_while_records_are_stored(
    machine: Machine, tmp_path: Path, on_two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, read_texts = threading.Event(), ImportRun.read_texts

    def text_of(*_: object) -> FileText:
        begun.set()
        return FileText(TextState.READ, "bill")

    def read_once_begun(run: ImportRun, show_count: Callable[[int], None]) -> None:
        assert begun.wait(30)
        read_texts(run, show_count)

    monkeypatch.setattr(ImportRun, "read_texts", read_once_begun)
    with reading(text_of):
        machine.streams(written(tmp_path, mail(BILL)))
    assert texts(machine.store) == {"bill.pdf": ("read", "bill")}


CHAT: Data = {
    "name": "Ann",
    "type": "personal_chat",
    "id": 7,
    "messages": [
        {
            "id": 1,
            "type": "message",
            "date": "2024-03-01T10:00:00",
            "date_unixtime": "1709287200",
            "from": "Ann",
            "from_id": "user1",
            "file": "files/note.txt",
            "mime_type": "text/plain",
            "text": "",
        }
    ],
}


def test_other_bytes_under_the_same_key_are_read_anew(machine: Machine, tmp_path: Path) -> None:
    for said in (b"the first version", b"the second version"):
        folder = tmp_path / "export"
        (folder / "files").mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(json.dumps(CHAT))
        (folder / "files" / "note.txt").write_bytes(said)
        machine.run("import", folder)
        with machine.store.snapshot() as snapshot:
            (held,) = [e for e in snapshot.stored_streams() if e.stream == "files"]
            (row,) = snapshot.export(held.connection_id, "files")
        assert (row.data["text_state"], row.data["text"]) == ("read", said.decode())


def test_a_record_erased_while_its_file_is_read_does_not_come_back(
    machine: Machine, tmp_path: Path
) -> None:
    store = machine.store

    def erasing(*_: object) -> FileText:
        with store.snapshot() as snapshot:
            (held,) = [e for e in snapshot.stored_streams() if e.stream == "attachments"]
            (row,) = snapshot.export(held.connection_id, "attachments")
        store.delete_record(held.connection_id, "attachments", row.key, 10**18)
        return FileText(TextState.READ, "secret")

    with reading(erasing):
        machine.streams(written(tmp_path, mail(BILL)))
    assert attachments(store) == {}


def test_bytes_that_are_gone_are_told(machine: Machine, tmp_path: Path) -> None:
    def gone(*_: object) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(machine.store), "open_blob", gone)
        machine.streams(written(tmp_path, mail(BILL)))
    assert texts(machine.store) == {"bill.pdf": ("damaged_file", None)}


def test_a_dry_run_reads_no_file(machine: Machine, tmp_path: Path) -> None:
    with reading(unread):
        tally = machine.streams(written(tmp_path, mail(BILL)), "--dry-run")["attachments"]
    assert tally == {"read": 1, "rejected": 0}
