"""What collectors leave beside records is found by what it was left under."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import ConnectionNotFound
from personal_server.domain.stored import CollectionRun, RunStatus, StreamState, ThreadMark
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.worlds import note, write

PLACE = ("cin_a", "notes")


def test_bookmarks_are_put_and_forgotten_by_stream(store: SqlRecordStore) -> None:
    assert store.state("cin_a") == StreamState({}, None)
    put = store.put_state("cin_a", {"notes": {"at": 1}, "files": 0, "none": None}, 5)
    assert put == store.state("cin_a") == StreamState({"notes": {"at": 1}, "files": 0}, 5)
    changed = store.put_state("cin_a", {"notes": None, "more": False}, 6)
    assert changed == StreamState({"files": 0, "more": False}, 6)
    assert store.put_state("cin_a", {"files": [2]}, 7).state == {"files": [2], "more": False}
    assert store.state("cin_b") == StreamState({}, None)
    with pytest.raises(ConnectionNotFound):
        store.state("cin_none")
    with pytest.raises(ConnectionNotFound):
        store.put_state("cin_none", {}, 1)


def test_the_end_of_the_last_success_stays(store: SqlRecordStore) -> None:
    def noted(name: str, status: RunStatus, at_ns: int) -> tuple[object, object]:
        store.record_run("cin_a", CollectionRun(name, status, at_ns))
        with store.snapshot() as snapshot:
            found = snapshot.collections()["cin_a"]
        return found.last_run, found.last_succeeded_at_ns

    first = CollectionRun("r1", RunStatus.RUNNING, 1)
    assert noted("r1", RunStatus.RUNNING, 1) == (first, None)
    assert noted("r1", RunStatus.SUCCEEDED, 5)[1] == 5
    assert noted("r2", RunStatus.FAILED, 7) == (CollectionRun("r2", RunStatus.FAILED, 7), 5)
    assert noted("r0", RunStatus.SUCCEEDED, 3)[1] == 5
    assert noted("r3", RunStatus.SUCCEEDED, 9)[1] == 9
    with pytest.raises(ConnectionNotFound):
        store.record_run("cin_none", first)


def test_marks_of_threads_are_found_by_mark_and_second(store: SqlRecordStore) -> None:
    marks = [ThreadMark("m", at, f"t{at}") for at in (10, 20, 30)]
    store.leave_thread_marks(*PLACE, marks)  # a source that is not there keeps none
    assert store.thread_marks(*PLACE, [("m", 0, 99)]) == []
    write(store, "cin_a", [note("n1")])
    store.leave_thread_marks(*PLACE, marks)
    store.leave_thread_marks(*PLACE, marks[:1])  # is there already
    store.leave_thread_marks(*PLACE, [ThreadMark("o", 10, "other")])
    assert store.thread_marks(*PLACE, [("m", 10, 20)]) == marks[:2]
    assert store.thread_marks(*PLACE, [("m", 11, 19), ("m", 21, 30)]) == marks[2:]
    assert store.thread_marks(*PLACE, [("o", 0, 99)]) == [ThreadMark("o", 10, "other")]
    assert store.thread_marks("cin_a", "files", [("m", 0, 99)]) == []


def test_records_are_found_by_what_they_hold_and_by_name(store: SqlRecordStore) -> None:
    assert store.records_holding(*PLACE, "mood", "calm", "", 9) == []
    moods = ["calm", "glad", "calm", "calm", None]
    write(store, "cin_a", [note(f"n{n}", mood=mood) for n, mood in enumerate(moods)])

    def holding(value: str, after: str, limit: int) -> list[str]:
        return [r.key for r in store.records_holding(*PLACE, "mood", value, after, limit)]

    assert holding("calm", "", 9) == ["n0", "n2", "n3"]
    assert holding("calm", "", 2) == ["n0", "n2"]
    assert holding("calm", "n0", 9) == ["n2", "n3"]
    assert holding("none", "", 9) == []
    named = store.records_named(*PLACE, ["n3", "n0", "none"])
    assert sorted(r.key for r in named) == ["n0", "n3"]
    assert store.records_named("cin_b", "notes", ["n3"]) == []
