from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from personal_server.collecting import imports, receipts
from personal_server.collecting.receipts import ImportMemory
from server.tests.cli.import_machine import Machine
from sources.tests.specimens.mail import MAIL

MESSAGE = b"From a Mon Jan  1 00:00:00 2024\nFrom: a@b\nMessage-ID: <%d>\n\ntext %d\n\n"


def mailbox(path: Path, numbers: range) -> Path:
    path.write_bytes(b"".join(MESSAGE % (n, n) for n in numbers))
    return path


def memory_of(machine: Machine) -> ImportMemory:
    with machine.store.snapshot() as snapshot:
        (connection,) = snapshot.connections()
    return ImportMemory(machine.store, connection.connection_id, "messages")


def test_each_of_two_exports_goes_on_where_it_was_interrupted(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH_RECORDS", 10)
    first = mailbox(tmp_path / "one", range(100))
    second = mailbox(tmp_path / "two", range(100, 200))
    with machine.interrupted_after(50):
        machine.run("import", first)
    with machine.interrupted_after(100):
        machine.run("import", second)
    assert machine.streams(first)["messages"]["read"] <= 60
    assert machine.streams(second)["messages"]["read"] <= 60
    assert machine.count() == 200
    assert machine.streams(first)["messages"]["read"] == 100


def test_a_receipt_says_what_came_from_which_file(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "Inbox").write_bytes(MAIL)
    _, printed = machine.run("import", tmp_path / "Inbox")
    receipt: Data = printed["imports"][0]["receipt"]
    assert receipt["sha256"] == hashlib.sha256(MAIL).hexdigest()
    assert receipt["size_bytes"] == len(MAIL)
    assert (receipt["earliest"], receipt["latest"]) == ("2022-03-14", "2022-03-15")
    assert receipt["streams"]["messages"] == {"new": 2, "updated": 0}
    assert memory_of(machine).receipts() == [receipt]


def test_receipts_and_places_are_kept_in_bounds(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "MOST_PLACES", 3)
    monkeypatch.setattr(receipts, "MOST_RECEIPTS", 3)
    (tmp_path / "Inbox").write_bytes(MAIL)
    for _ in range(5):
        machine.run("import", tmp_path / "Inbox")
    memory = memory_of(machine)
    for number in range(5):
        memory.keep_place(str(number), number + 1, now_ns=1)
    assert [memory.place(str(number)) for number in range(5)] == [0, 0, 3, 4, 5]
    assert len(memory.receipts()) == 3
    memory.finish("4", {"name": "x"}, now_ns=1)
    assert [memory.place("3"), memory.place("4")] == [4, 0]
