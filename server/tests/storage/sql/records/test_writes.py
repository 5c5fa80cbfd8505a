"""What a write leaves: changes and their neighbours, notes of what was erased, and no traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from pdpp_kernel.declaration import Semantics
from pdpp_kernel.errors import ConnectionBusy, ConnectionNotFound, ConnectionNotWritable
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import Batch, RecordWrite, Rejection, ThreadMark, WriteOutcome
from personal_server.enforcement.plans import RecordsPlan
from personal_server.storage.authorization_rows import CanaryRow
from personal_server.storage.feed_rows import FeedMailRow
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from personal_server.storage.sql.care.feeds import SqlFeeds
from personal_server.storage.sql.records import writes
from personal_server.storage.sql.records.blob_files import PREFIX
from personal_server.storage.sql.records.written_rows import Prepared
from personal_server.storage.sql.statements import insert, values_of
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.feeds.test_feed_states import a_feed
from server.tests.storage.conftest import database_of, sqlite_store
from server.tests.storage.ports.asking import content_of, receive, search
from server.tests.storage.worlds import NOTES_STREAM, furnish, note, scope, write

MARKER = "zyzzyvamarker"


def traces(directory: Path) -> list[str]:
    """Files that hold the marker."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files if MARKER.encode() in path.read_bytes()]


def test_an_erased_record_leaves_no_trace_in_the_files_when_that_is_finished(
    tmp_path: Path,
) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        kept = [note(f"n{i}", body="rain " * 40 + str(i)) for i in range(300)]
        write(store, "cin_a", [*kept, note("m", title=MARKER, body=f"{MARKER} rain", mood=MARKER)])
        write(store, "cin_a", [note("after", body="rain")])
        assert traces(tmp_path) != []
        assert store.delete_record("cin_a", "notes", "m", 9)
        assert search(store, MARKER).candidates == ()
        store.finish_erasures()
        assert traces(tmp_path) == []
        assert len(search(store, "rain").candidates) == 301


def test_an_erased_account_leaves_no_trace_in_what_its_feed_took(tmp_path: Path) -> None:
    """Keys of records and names of files are what notes and mails are called."""
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        database = database_of(store)
        SqlFeeds(database, "owner").add_feed(a_feed(connection_ids=("cin_a",)))
        mail = FeedMailRow(
            feed_id="fee_1", folder=MARKER, uid=1, copy_of=f"<{MARKER}>", record_key=MARKER
        )
        SqlFeedMails(database, "owner").keep_mails("fee_1", [mail])
        store.finish_erasures()
        assert traces(tmp_path) != []
        store.erase_connection("cin_a", 9)
        store.finish_erasures()
        assert traces(tmp_path) == []


def test_no_version_of_before_stays_of_an_erased_record(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        before = note("m", body=f"{MARKER} " * 30_000, mood=MARKER, title=MARKER)
        write(store, "cin_a", [before, note("n")])
        write(store, "cin_a", [note("m", body="rain")])
        assert store.delete_record("cin_a", "notes", "m", 9)
        store.finish_erasures()
        assert traces(tmp_path) == []


def test_what_was_erased_while_somebody_read_goes_when_he_is_done(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("m", body=MARKER)])
        with store.snapshot() as seen:
            assert seen.horizon
            store.erase_connection("cin_a", 9)
            store.finish_erasures()
            assert traces(tmp_path) != []
        store.finish_erasures()
        assert traces(tmp_path) == []


def test_bytes_that_a_killed_process_left_go_at_the_next_start(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        kept, erased = receive(store, b"kept"), receive(store, MARKER.encode())
        write(store, "cin_a", [note("m", blob_ref={"blob_id": erased})])
        [path] = tmp_path.rglob(erased.removeprefix(PREFIX))
        assert store.delete_record("cin_a", "notes", "m", 9)
        path.write_text(MARKER)  # as if the process had ended before it removed it
    with sqlite_store(tmp_path) as store:
        store.finish_erasures()
        assert traces(tmp_path) == []
        assert content_of(store, kept) == b"kept"


@pytest.mark.parametrize("whole", [True, False])
def test_an_erased_stream_or_connection_leaves_no_trace_at_once(
    tmp_path: Path, whole: bool
) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("m", body=f"{MARKER} " * 3_000, mood=MARKER), note("n")])
        assert traces(tmp_path) != []
        if whole:
            store.erase_connection("cin_a", 9)
        else:
            store.delete_stream("cin_a", "notes", 9)
        assert traces(tmp_path) == []


Rows = list[tuple[Any, ...]]


def rows(store: SqlRecordStore, statement: str) -> Rows:
    with database_of(store).read() as session:
        return [tuple(line) for line in session.rows(statement)]


CHANGES = (
    "SELECT sequence, key, was, was_at, now, now_at, fields, emitted_at, written_at, prev, next"
    " FROM changes ORDER BY sequence"
)
DAWN, NOON = 1_767_225_600_000_000_000, 1_767_268_800_000_000_000


def test_each_change_says_what_was_and_is_and_what_stands_beside_it(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2")], emitted=10, now=20)
    noon = "2026-01-01T12:00:00Z"
    write(store, "cin_a", [note("n1", at=noon, words=1)], emitted=11, now=21)
    write(store, "cin_a", ["n1", "n1"], emitted=12, now=22)
    write(store, "cin_a", [note("n1")], emitted=13, now=23)
    assert rows(store, CHANGES) == [
        (1, "n1", 0, None, 1, DAWN, None, 10, 20, None, 3),
        (2, "n2", 0, None, 1, DAWN, None, 10, 20, None, None),
        (3, "n1", 1, DAWN, 1, NOON, '["at","words"]', 11, 21, 1, 4),
        (4, "n1", 1, NOON, 0, None, None, 12, 22, 3, 5),
        (5, "n1", 0, None, 1, DAWN, None, 13, 23, 4, None),
    ]
    assert rows(store, "SELECT * FROM gone") == []
    write(store, "cin_a", ["n2"])
    assert rows(store, "SELECT key, sequence FROM gone") == [("n2", 6)]
    assert rows(store, "SELECT records FROM sources") == [(1,)]


def test_a_deleted_stream_notes_the_end_of_each_record(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "FLUSHED_AT", 2)
    blob = receive(store, b"hello")
    made = [note(f"n{number}", blob_ref={"blob_id": blob}) for number in range(5)]
    write(store, "cin_a", made, emitted=10, now=20)
    write(store, "cin_a", [note("n4", words=1, blob_ref={"blob_id": blob})], emitted=10, now=20)
    store.leave_thread_marks("cin_a", "notes", [ThreadMark("m", 1, "t")])
    assert store.delete_stream("cin_a", "notes", 30) == 5
    assert rows(store, f"{CHANGES} LIMIT -1 OFFSET 6") == [
        (7 + number, f"n{number}", 1, DAWN, 0, None, None, 30, 30, (1, 2, 3, 4, 6)[number], None)
        for number in range(5)
    ]
    assert rows(store, "SELECT key, sequence FROM gone ORDER BY key") == [
        (f"n{number}", 7 + number) for number in range(5)
    ]
    left = "SELECT (SELECT count(*) FROM blob_references), (SELECT count(*) FROM thread_marks)"
    assert rows(store, left) == [(0, 0)]
    assert rows(store, "SELECT records FROM sources") == [(0,)]
    assert store.blob_upload("cin_a", blob) is None
    assert content_of(store, blob) is None
    write(store, "cin_a", [note("n3")])
    with store.snapshot() as snapshot:
        assert snapshot.count(RecordsPlan((scope(),))) == 1


def test_sets_of_any_size_write_the_same(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [note("n1"), note("n2"), note("n1", words=1), "n2", note("n2"), note("n3"), note("n1")]
    changed, same = WriteOutcome.CHANGED, WriteOutcome.UNCHANGED
    expected = (*[changed] * 7, same)
    assert write(store, "cin_a", [*made, note("n3")]) == expected
    monkeypatch.setattr(writes, "FLUSHED_AT", 2)
    assert write(store, "cin_b", [*made, note("n3")]) == expected
    numbers = [[(s - first, k) for s, k in told(store, c)] for c, first in (("a", 0), ("b", 7))]
    assert numbers[0] == numbers[1]


def told(store: SqlRecordStore, account: str) -> Rows:
    return rows(
        store,
        "SELECT sequence, key FROM changes JOIN sources USING (source)"  # noqa: S608
        f" WHERE connection_id = 'cin_{account}' ORDER BY sequence",
    )


def prepared(*records: tuple[str, int]) -> list[Prepared]:
    """Writes of these keys, whose texts are so long."""
    return [Prepared(key, 1, "x" * size) for key, size in records]


def test_a_set_ends_before_a_key_stands_twice_and_where_it_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writes, "FLUSHED_AT", 3)
    monkeypatch.setattr(writes, "FLUSHED_BYTES", 10)

    def sets(*records: tuple[str, int]) -> list[str]:
        found = cast(Any, writes)._sets(prepared(*records))
        return ["".join(each.key for each in some) for some in found]

    assert sets() == []
    assert sets(("a", 1), ("b", 1), ("a", 1), ("b", 1)) == ["ab", "ab"]
    assert sets(("a", 1), ("b", 1), ("c", 1), ("d", 1)) == ["abc", "d"]
    assert sets(("a", 5), ("b", 5), ("c", 1), ("d", 1)) == ["abc", "d"]
    assert sets(("a", 5), ("b", 6), ("c", 1), ("d", 9), ("e", 1)) == ["ab", "cde"]
    assert sets(("a", 11), ("b", 11), ("c", 1)) == ["a", "b", "c"]


ERASURES = "SELECT connection_id, stream, key_digest, at FROM erasures ORDER BY at"


def test_what_was_erased_is_noted_without_its_key(store: SqlRecordStore) -> None:
    for each in ("cin_a", "cin_b"):
        write(store, each, [note("n1"), note("n2")])
    assert [store.delete_record("cin_a", "notes", "n1", at) for at in (5, 6)] == [True, False]
    assert store.delete_record("cin_a", "files", "n1", 7) is False
    assert store.delete_stream("cin_a", "files", 7) == 0
    assert rows(store, "SELECT count(*) FROM erased") == [(1,)]
    assert store.delete_stream("cin_a", "notes", 8) == 1
    assert store.erase_connection("cin_a", 9) == 0
    assert store.erase_connection("cin_b", 10) == 2
    digest = hashlib.sha256(b"owner\0n1").hexdigest()
    assert rows(store, ERASURES) == [
        ("cin_a", "notes", digest, 5),
        ("cin_a", "notes", None, 8),
        ("cin_a", None, None, 9),
        ("cin_b", None, None, 10),
    ]
    ids = {name for (name,) in rows(store, "SELECT erasure_id FROM erasures")}
    assert {len(name) for name in ids} == {22}
    assert len(ids) == 4
    with pytest.raises(ConnectionNotFound):
        store.delete_stream("cin_a", "notes", 11)


@pytest.mark.parametrize("key", ["n1", None])
def test_a_bait_record_goes_with_what_it_is(store: SqlRecordStore, key: str | None) -> None:
    write(store, "cin_a", [note("n1"), note("n2")])
    baits = [("cin_a", "notes", "n1"), ("cin_a", "notes", "n2"), ("cin_a", "files", "n1")]
    with database_of(store).write() as session:
        for account, stream, named in baits:
            bait = CanaryRow(connection_id=account, stream=stream, key=named, planted_at_ns=1)
            session.run(insert(CanaryRow), ("owner", *values_of(bait)))
    if key is None:
        store.delete_stream("cin_a", "notes", 9)
    else:
        store.delete_record("cin_a", "notes", key, 9)
    left = rows(store, "SELECT connection_id, stream, key FROM canaries")
    assert sorted(left) == sorted(baits[2 if key is None else 1 :])


def test_an_account_is_not_erased_while_it_is_written_to(store: SqlRecordStore) -> None:
    refused: list[str] = []

    def writing(account: str) -> Iterator[RecordWrite]:
        for each in ("cin_a", "cin_b"):
            try:
                store.erase_connection(each, 9)
            except ConnectionBusy:
                refused.append(each)
        yield RecordWrite("n1", note("n1"), 1)

    store.commit(Batch("cin_a", NOTES_STREAM, writing("cin_a"), 1))
    assert refused == ["cin_a"]
    with store.snapshot() as snapshot:
        assert [each.connection_id for each in snapshot.connections()] == ["cin_a"]
    assert store.erase_connection("cin_a", 9) == 1


def test_a_batch_that_failed_keeps_no_account_busy(store: SqlRecordStore) -> None:
    def failing() -> Iterator[RecordWrite]:
        yield RecordWrite("n1", note("n1"), 1)
        raise LookupError

    with pytest.raises(LookupError):
        store.commit(Batch("cin_a", NOTES_STREAM, failing(), 1))
    assert store.erase_connection("cin_a", 9) == 0


def test_the_first_change_of_a_process_begins_an_era(tmp_path: Path) -> None:
    eras = "SELECT start FROM eras ORDER BY start"
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", ["n1"])
        assert rows(store, eras) == []
        write(store, "cin_a", [note("n1")])
        write(store, "cin_a", [note("n2")])
        assert rows(store, eras) == [(0,)]
    with sqlite_store(tmp_path) as store:
        write(store, "cin_a", [note("n1")])
        assert rows(store, eras) == [(0,)]
        write(store, "cin_a", [note("n3")])
        assert rows(store, eras) == [(0,), (2,)]
        assert len(rows(store, "SELECT DISTINCT era FROM eras")) == 2


def test_the_newest_receipts_of_an_account_are_kept(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "KEPT_REJECTIONS", 2)

    def refuse(account: str, *names: str) -> None:
        made = [Rejection(name, "notes", "invalid_record", "/a", "r", 1) for name in names]
        store.commit(Batch(account, NOTES_STREAM, [], 1, lambda _: made))

    refuse("cin_b", "rr_0")
    refuse("cin_a", "rr_1", "rr_2")
    refuse("cin_a", "rr_3")
    kept = [[r.receipt_id for _, r in store.rejections(f"cin_{c}", 9, None)] for c in "ab"]
    assert kept == [["rr_3", "rr_2"], ["rr_0"]]
    with store.snapshot() as snapshot:  # what was refused wakes nobody
        assert {each.status for each in snapshot.connections()} == {ConnectionStatus.DRAFT}


def test_an_account_that_is_blocked_meanwhile_takes_nothing(store: SqlRecordStore) -> None:
    def block() -> None:
        store.update_connection("cin_a", lambda c: replace(c, status=ConnectionStatus.REVOKED))

    def writing() -> Iterator[RecordWrite]:
        block()
        yield RecordWrite("n1", note("n1"), 1)

    def sending() -> Iterator[bytes]:
        block()
        yield b"bytes"

    with pytest.raises(ConnectionNotWritable):
        store.commit(Batch("cin_a", NOTES_STREAM, writing(), 1))
    store.update_connection("cin_a", lambda c: replace(c, status=ConnectionStatus.ACTIVE))
    with pytest.raises(ConnectionNotWritable):
        store.receive_blob("cin_a", sending(), "text/plain", 1, 99)
    assert rows(store, "SELECT key FROM changes") == []
    assert rows(store, "SELECT blob_id FROM blob_uploads") == []


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (False, ["unchanged", "changed", "unchanged", "changed", "changed", "changed"]),
        (True, ["conflict", "changed", "unchanged", "conflict", "conflict", "unchanged"]),
    ],
)
def test_each_write_is_told_what_came_of_it(
    store: SqlRecordStore, fixed: bool, expected: list[str]
) -> None:
    """Of nothing, a new record, the same, another, none, and the first again."""
    stream = NOTES_STREAM
    if fixed:
        stream = replace(stream, semantics=Semantics.APPEND_ONLY)
    first, other = note("n1", words=1), note("n1", words=2)
    told = [
        write(store, "cin_a", [each], stream=stream)[0]
        for each in ("n1", first, first, other, "n1", first)
    ]
    assert told == expected
    together = write(store, "cin_b", ["n1", first, first, other, "n1", first], stream=stream)
    assert list(together) == expected
    woken = {c.connection_id: c.status for c in connections(store)}
    assert woken == dict.fromkeys(("cin_a", "cin_b"), ConnectionStatus.ACTIVE)


def connections(store: SqlRecordStore) -> Sequence[Connection]:
    with store.snapshot() as snapshot:
        return snapshot.connections()


def test_what_only_conflicts_wakes_no_account(store: SqlRecordStore) -> None:
    write(store, "cin_a", ["n1"], stream=replace(NOTES_STREAM, semantics=Semantics.APPEND_ONLY))
    assert {each.status for each in connections(store)} == {ConnectionStatus.DRAFT}
    write(store, "cin_a", ["n1"])
    assert [each.status for each in connections(store)] == [
        ConnectionStatus.ACTIVE,
        ConnectionStatus.DRAFT,
    ]


@pytest.mark.parametrize("way", ["replaced", "deleted", "erased", "whole stream"])
def test_a_file_goes_with_the_last_record_that_refers_to_it(tmp_path: Path, way: str) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a", "cin_b")
        blobs = [receive(store, each) for each in (b"alone", b"shared")]
        receive(store, b"shared", "cin_b")
        write(store, "cin_a", [note(f"n{n}", blob_ref={"blob_id": b}) for n, b in enumerate(blobs)])

        def files() -> list[str]:
            names = [blob.removeprefix(PREFIX) for blob in blobs]
            return [path.read_text() for name in names for path in tmp_path.rglob(name)]

        assert files() == ["alone", "shared"]
        for key in ("n0", "n1"):
            match way:
                case "replaced":
                    write(store, "cin_a", [note(key)])
                case "deleted":
                    write(store, "cin_a", [key])
                case "erased":
                    store.delete_record("cin_a", "notes", key, 9)
                case _:
                    store.delete_stream("cin_a", "notes", 9)
        assert files() == ["shared"]


def test_files_that_nobody_holds_are_looked_for_once_in_a_process(
    store: SqlRecordStore, tmp_path: Path
) -> None:
    held = receive(store, b"kept")
    paths: list[Path] = []
    for number, is_left in ((1, False), (2, True)):
        paths.append(tmp_path / "data" / "blobs" / "00" / f"{number:064}")
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text("nobody's")
        store.finish_erasures()
        assert paths[-1].exists() is is_left
    assert content_of(store, held) == b"kept"
