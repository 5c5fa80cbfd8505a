"""What checks find of records, of what is made from them, of the feed and of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from personal_server.domain.stored import BlobUpload
from personal_server.storage.sql.care import stream_walk
from personal_server.storage.sql.care.faults import BlobFault, Faulty, StreamCheck
from personal_server.storage.sql.care.integrity import IntegrityChecks
from personal_server.storage.sql.records.blob_files import blob_path
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import FILES_STREAM, furnish, note, write

NOTES = [note(f"n{number}", body=f"rain {number}", mood="calm") for number in range(5)]
PLACE = ("cin_a", "notes")


def undeclared(connection_id: str, stream: str) -> None:
    """No stream has a primary key any more."""
    del connection_id, stream


class Checked:
    """A store with five notes, its checks, and its file."""

    def __init__(self, store: SqlRecordStore, folder: Path) -> None:
        self.store = store
        self.blobs = folder / "data" / "blobs"
        self.database: SqliteDatabase = cast(Any, store)._database
        self.checks = IntegrityChecks(self.database, "owner", self.blobs)

    def stream(self, *key: str) -> StreamCheck:
        def primary_keys(connection_id: str, stream: str) -> tuple[str, ...] | None:
            assert (connection_id, stream) == PLACE
            return key or ("id",)

        return self.checks.stream(*PLACE, primary_keys, lambda _: None)

    def change(self, statement: str) -> None:
        """`#` is the number of the tables, `@` the line of `n1`."""
        with self.database.write() as session:
            number = session.value("SELECT tables FROM sources WHERE stream = 'notes'")
            line = "(SELECT id FROM r# WHERE k = 'n1')"
            session.run(statement.replace("@", line).replace("#", str(number)))

    def keep(self, content: bytes, connection_id: str = "cin_a") -> BlobUpload:
        return self.store.receive_blob(connection_id, [content], "text/plain", 1, 99)[0]

    def faults(self) -> list[BlobFault]:
        return list(self.checks.blobs(lambda _: None))


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Checked]:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a", "cin_b")
        write(store, "cin_a", NOTES)
        yield Checked(store, tmp_path)


def test_every_stream_with_records_is_named(checked: Checked) -> None:
    write(checked.store, "cin_b", [{"id": "f1"}], stream=FILES_STREAM)
    assert sorted(checked.checks.places()) == [PLACE, ("cin_b", "files")]


def test_a_sound_stream_has_no_fault(checked: Checked) -> None:
    write(checked.store, "cin_a", [note("n1", body="changed"), "n2"])
    found = checked.stream()
    assert found == StreamCheck(*PLACE, records=4)
    assert not found.can_be_made_anew
    none = checked.checks.stream("cin_a", "nothing", undeclared, lambda _: None)
    assert none == StreamCheck("cin_a", "nothing")


def test_progress_is_told_now_and_then(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_walk, "TOLD_EVERY", 2)
    told: list[int] = []
    checked.checks.stream(*PLACE, undeclared, told.append)
    assert told == [2, 4]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE h# SET data = replace(data, 'rain', 'gold') WHERE id = @", "damaged"),
        ("UPDATE h# SET data = '{' WHERE id = @", "damaged"),
        ("DELETE FROM h# WHERE id = @", "damaged"),
        ("UPDATE r# SET fc = '{' WHERE id = @", "damaged"),
        ("DELETE FROM changes WHERE key = 'n1'", "unexplained"),
    ],
)
def test_a_record_that_is_not_what_was_written_is_named(
    checked: Checked, statement: str, kind: str
) -> None:
    checked.change(statement)
    found = checked.stream()
    faulty: Faulty = getattr(found, kind)
    assert (faulty.count, faulty.keys, found.records) == (1, ["n1"], 5)
    others = {"damaged", "misnamed", "unexplained"} - {kind}
    assert [getattr(found, each).count for each in others] == [0, 0]


def test_of_many_faults_some_keys_are_named_and_all_counted(checked: Checked) -> None:
    found = checked.stream("title")
    assert (found.misnamed.count, len(found.misnamed.keys)) == (5, 3)
    assert set(found.misnamed.keys) < {each["id"] for each in NOTES}
    assert checked.checks.stream(*PLACE, undeclared, lambda _: None).misnamed.count == 0


@pytest.mark.parametrize(
    ("statement", "words", "values"),
    [
        ("UPDATE r# SET wc = x'00000009' WHERE id = @", False, True),
        ("INSERT INTO w#(rowid, words) VALUES (99, 'more')", True, False),
        ("DELETE FROM w# WHERE rowid = @", True, False),
    ],
)
def test_what_is_made_from_records_is_compared_and_made_anew(
    checked: Checked, statement: str, *, words: bool, values: bool
) -> None:
    checked.change(statement)
    found = checked.stream()
    assert (found.words_differ, found.values_differ) == (words, values)
    assert found.can_be_made_anew
    assert found.damaged.count == 0


def test_the_feed_is_in_order_and_ends_with_the_newest_change(checked: Checked) -> None:
    found = checked.checks.feed()
    assert (found.changes, found.disordered, found.newest_fits) == (5, 0, True)
    checked.change("UPDATE store SET value = value + 1 WHERE name = 'sequence'")
    assert not checked.checks.feed().newest_fits
    checked.change("UPDATE store SET value = value - 3 WHERE name = 'sequence'")
    assert not checked.checks.feed().newest_fits


def test_what_was_forgotten_or_erased_may_have_had_the_newest_number(checked: Checked) -> None:
    checked.store.prune_history(2**62)
    assert checked.checks.feed().newest_fits
    write(checked.store, "cin_b", [note("x")])
    checked.store.erase_connection("cin_b", 9)
    assert checked.checks.feed().newest_fits


def test_two_changes_with_one_number_are_disordered(checked: Checked) -> None:
    write(checked.store, "cin_b", [note("x")])
    with checked.database.write() as session:
        first = session.value("SELECT min(sequence) FROM changes")
        session.run(
            "UPDATE changes SET sequence = ? WHERE sequence = (SELECT max(sequence) FROM changes)",
            (first,),
        )
    assert checked.checks.feed().disordered == 1


def test_bytes_that_are_missing_or_others_are_named_with_who_refers_to_them(
    checked: Checked,
) -> None:
    sound, gone, changed = (checked.keep(each) for each in (b"one", b"two", b"three"))
    referred = {"blob_id": gone.blob_id, "mime_type": "text/plain", "size_bytes": 3}
    write(checked.store, "cin_a", [note("n9", blob_ref={**referred, "sha256": "0" * 64})])
    assert checked.faults() == []
    blob_path(checked.blobs, gone.blob_id).unlink()
    path = blob_path(checked.blobs, changed.blob_id)
    path.chmod(0o600)
    path.write_bytes(b"other")
    assert sorted(checked.faults(), key=lambda each: each.is_missing) == [
        BlobFault(changed.blob_id, False, None),
        BlobFault(gone.blob_id, True, PLACE),
    ]
    assert sound.blob_id not in {each.blob_id for each in checked.faults()}


def test_bytes_are_counted_once_whoever_holds_them(checked: Checked) -> None:
    for content, account in ((b"one", "cin_a"), (b"one", "cin_b"), (b"two", "cin_b")):
        checked.keep(content, account)
    told: list[int] = []
    walk = checked.checks.blobs(told.append)
    with pytest.raises(StopIteration) as ended:
        next(walk)
    assert (ended.value.value, told) == (2, [1, 2])


def test_files_that_nobody_holds_are_counted(checked: Checked) -> None:
    kept = checked.keep(b"one")
    path = blob_path(checked.blobs, kept.blob_id)
    stray = path.with_name("0" * 64)
    stray.write_bytes(b"x")
    assert checked.checks.strays(2**62) == 1
    assert checked.checks.strays(0) == 0


def test_a_word_index_that_cannot_be_read_differs(checked: Checked) -> None:
    checked.change("UPDATE w#_data SET block = x'00' WHERE id > 1")
    found = checked.stream()
    assert (found.words_differ, found.values_differ, found.damaged.count) == (True, False, 0)


@pytest.mark.parametrize("key", [("nothing",), ("id", "labels"), ("labels",)])
def test_a_key_that_cannot_be_made_is_no_record_s_own(checked: Checked, key: tuple[str]) -> None:
    write(checked.store, "cin_a", [note("n9", labels=[{"a": 1}])])
    found = checked.stream(*key)
    assert (found.misnamed.count, found.records) == (6, 6)


def test_bytes_that_were_erased_while_all_were_read_are_no_fault(checked: Checked) -> None:
    first, second = sorted(checked.keep(each).blob_id for each in (b"one", b"two"))
    for blob_id in (first, second):
        blob_path(checked.blobs, blob_id).unlink()
    walk = checked.checks.blobs(lambda _: None)
    assert next(walk) == BlobFault(first, True, None)
    with checked.database.write() as session:
        session.run("DELETE FROM blob_uploads")
    assert list(walk) == []


@pytest.mark.parametrize(("place", "is_made_anew"), [(PLACE, True), (("cin_b", "notes"), False)])
def test_only_what_is_there_is_made_anew(
    checked: Checked, place: tuple[str, str], *, is_made_anew: bool
) -> None:
    checked.change("DELETE FROM w# WHERE rowid = @")
    checked.checks.make_anew(*place)
    while checked.store.rebuild_slice():
        pass
    assert checked.stream().words_differ is not is_made_anew
