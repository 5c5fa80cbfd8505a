"""What every store does: places, pages, counts, keys, relations, windows."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.stored import (
    ThreadMark,
    WriteOutcome,
)
from personal_server.enforcement.plans import (
    ChildrenPlan,
    FieldWindowPlan,
    KeysPlan,
    RecordPlan,
    RecordsPlan,
)
from personal_server.enforcement.rows import WindowOutcome
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.worlds import (
    FILES_STREAM,
    condition,
    keys,
    note,
    order,
    scope,
    walk,
    write,
)

A = scope("cin_a")
BOTH = (A, scope("cin_b"))


def test_a_record_is_read_back_as_it_was_written(store: RecordStore) -> None:
    data = note("n1", words=3, labels=["a", {"b": None}], cost=1.50, title="Crème 😀")
    assert write(store, "cin_a", [data]) == (WriteOutcome.CHANGED,)
    with store.snapshot() as snapshot:
        (row,) = snapshot.record(RecordPlan(BOTH, "n1"))
    assert (row.connection_id, row.stream, row.key, row.data) == ("cin_a", "notes", "n1", data)
    assert list(row.data) == list(data)
    assert (row.created.sequence, row.created.emitted_at_ns, row.field_changes) == (1, 1_000, {})


def test_the_same_data_again_has_no_number(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", words=3)])
    outcome = write(store, "cin_a", [note("n1", words=3)], emitted=5_000)
    assert outcome == (WriteOutcome.UNCHANGED,)
    with store.snapshot() as snapshot:
        assert snapshot.horizon == 1


def test_a_changed_field_is_dated_and_the_others_are_not(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", words=3, mood="calm")])
    write(store, "cin_a", [note("n1", words=4, mood="calm")], emitted=5_000)
    with store.snapshot() as snapshot:
        (row,) = snapshot.record(RecordPlan((A,), "n1"))
    assert {n: c.emitted_at_ns for n, c in row.field_changes.items()} == {"words": 5_000}
    assert row.field_changes["words"].sequence == 2
    assert row.created.sequence == 1


def test_the_first_record_wakes_a_draft_connection(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    with store.snapshot() as snapshot:
        found = {c.connection_id: c.status for c in snapshot.connections()}
    assert found == {"cin_a": ConnectionStatus.ACTIVE, "cin_b": ConnectionStatus.DRAFT}


def test_append_only_records_do_not_change(store: RecordStore) -> None:
    one = {"id": "f1", "note_id": "n1"}
    assert write(store, "cin_a", [one], stream=FILES_STREAM) == (WriteOutcome.CHANGED,)
    again = [one, {**one, "number": 2}, "f1", "unknown"]
    conflict = WriteOutcome.CONFLICT
    outcomes = write(store, "cin_a", again, stream=FILES_STREAM)
    assert outcomes == (WriteOutcome.UNCHANGED, conflict, conflict, conflict)


def test_null_values_are_last_in_both_directions(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", words=2), note("n2"), note("n3", words=1), note("n4")])
    up = RecordsPlan((A,), order("words"), 10)
    assert keys(store, up) == ["n3", "n1", "n2", "n4"]
    down = RecordsPlan((A,), order("words", down=True), 10)
    assert keys(store, down) == ["n1", "n3", "n4", "n2"]


@pytest.mark.parametrize("seed", range(8))
def test_writes_between_pages_neither_hide_nor_repeat_the_others(
    store: RecordStore, seed: int
) -> None:
    random = Random(seed)
    field = random.choice([None, "at", "words"])
    plan = RecordsPlan(BOTH, order(field, down=seed % 2 == 0), 3)
    kept = [note(f"k{i}", words=random.choice([None, 1, 2])) for i in range(12)]
    write(store, "cin_a", kept)
    found: list[str] = []
    while True:
        with store.snapshot() as snapshot:
            page = snapshot.page(plan)
        found += [placed.row.key for placed in page.rows]
        if not page.more:
            break
        passing = [note(f"p{random.randint(0, 9)}", words=random.randint(0, 3)) for _ in range(3)]
        write(store, random.choice(["cin_a", "cin_b"]), [*passing, f"p{random.randint(0, 9)}"])
        plan = replace(plan, after=page.rows[-1].position)
    assert sorted(key for key in found if key.startswith("k")) == sorted(n["id"] for n in kept)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("field", [None, "words", "at", "day"])
def test_pages_laid_end_to_end_are_the_list(
    store: RecordStore, field: str | None, down: bool
) -> None:
    for each in ("cin_a", "cin_b"):
        records = [note(f"n{i}", words=i % 3 or None) for i in range(12)]
        write(store, each, records)
    whole = walk(store, RecordsPlan(BOTH, order(field, down=down), 100))
    assert walk(store, RecordsPlan(BOTH, order(field, down=down), 5)) == whole
    assert len({(p.key, p.connection_id) for p in whole}) == 24


def test_conditions_compare_instants_days_and_whole_strings(store: RecordStore) -> None:
    long = "x" * 300
    write(
        store,
        "cin_a",
        [
            note("n1", at="2026-01-01T01:00:00+01:00", day="2026-01-05", mood=long + "a"),
            note("n2", at="2026-01-02T00:00:00Z", day="2026-01-06", mood=long + "b"),
            note("n3", at="2026-01-03T00:00:00Z", place="Ulm"),
        ],
    )

    def found(field: str, operator: str, value: object) -> list[str]:
        plan = RecordsPlan((A,), order(None), 10, (condition(field, operator, value),))
        return keys(store, plan)

    assert found("at", "eq", "2026-01-01T00:00:00Z") == ["n1"]
    assert found("at", "gt", "2026-01-01T00:00:00Z") == ["n2", "n3"]
    assert found("day", "gte", "2026-01-06") == ["n2"]
    assert found("mood", "eq", long + "a") == ["n1"]
    assert found("mood", "eq", long) == []
    assert found("place", "eq", "Ulm") == ["n3"]


def test_only_the_window_and_the_resources_exist(store: RecordStore) -> None:
    records = [note(f"n{i}", at=f"2026-01-0{i}T00:00:00Z") for i in range(1, 6)]
    write(store, "cin_a", records)
    since, until = instant_ns("2026-01-02T00:00:00Z"), instant_ns("2026-01-04T00:00:00Z")
    window = scope("cin_a", window=TimeConstraint("at", since, until))
    named = scope("cin_a", resources=frozenset({"n1", "n5", "none"}))
    with store.snapshot() as snapshot:
        assert snapshot.count(RecordsPlan((window,))) == 2
        assert snapshot.count(RecordsPlan((named,))) == 2
        assert snapshot.record(RecordPlan((window,), "n4")) == ()
        assert len(snapshot.record(RecordPlan((named,), "n5"))) == 1
        assert snapshot.records([KeysPlan(window, ("n1", "n4"))]) == {}
        assert list(snapshot.records([KeysPlan(named, ("n5", "n2"))])) == [("cin_a", "notes", "n5")]
    assert keys(store, RecordsPlan((window,), order("at", down=True), 10)) == ["n3", "n2"]
    assert keys(store, RecordsPlan((named,), order("at", down=True), 10)) == ["n5", "n1"]


def test_a_span_has_the_stored_extremes(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [note("n1", at="2026-01-01T01:00:00+02:00"), note("n2", at="2026-01-01T00:00:00Z")],
    )
    with store.snapshot() as snapshot:
        span = snapshot.span(RecordsPlan(BOTH, span_field="at"))
        empty = snapshot.span(RecordsPlan((scope("cin_b"),), span_field="at"))
    assert (span.total, span.earliest, span.latest) == (
        2,
        "2026-01-01T01:00:00+02:00",
        "2026-01-01T00:00:00Z",
    )
    assert (empty.total, empty.earliest, empty.latest) == (0, None, None)


def test_a_summary_knows_only_granted_changes(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", words=1), note("n2")], emitted=1_000)
    write(store, "cin_a", [note("n1", words=2)], emitted=9_000)
    with store.snapshot() as snapshot:
        seen = snapshot.summary(A)
        blind = snapshot.summary(scope("cin_a", fields=("id", "at")))
    assert (seen.record_count, seen.last_emitted_at_ns) == (2, 9_000)
    assert (blind.record_count, blind.last_emitted_at_ns) == (2, 1_000)


def test_children_come_in_order_and_say_whether_more_follow(store: RecordStore) -> None:
    files = [{"id": f"f{i}", "note_id": f"n{i % 2}", "number": i} for i in range(5)]
    write(store, "cin_a", files, stream=FILES_STREAM)
    plan = ChildrenPlan(scope("cin_a", FILES_STREAM), "note_id", ("n0", "n1", "n9"), order(None), 2)
    with store.snapshot() as snapshot:
        found = snapshot.children(plan)
    assert {parent: [row.key for row in c.rows] for parent, c in found.items()} == {
        "n0": ["f0", "f2"],
        "n1": ["f1", "f3"],
    }
    assert [found["n0"].more, found["n1"].more] == [True, False]


def test_children_on_self_are_read_by_key(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2")])
    plan = ChildrenPlan(A, None, ("n2", "n7"), order(None), 1)
    with store.snapshot() as snapshot:
        assert [row.key for row in snapshot.children(plan)["n2"].rows] == ["n2"]


def test_windows_laid_end_to_end_are_the_field(store: RecordStore) -> None:
    text = "walked 😀 home\u0301 " * 40
    write(store, "cin_a", [note("n1", body=text)])
    found, offset = "", 0
    with store.snapshot() as snapshot:
        while offset < len(text):
            (window,) = snapshot.field_window(FieldWindowPlan(BOTH, "n1", "body", 7, offset))
            assert (window.start_chars, window.total_chars) == (offset, len(text))
            assert window.digest == hashlib.sha256(text.encode()).hexdigest()
            found += window.text
            offset += len(window.text)
    assert found == text


def test_a_window_is_found_by_folded_text(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="aaa İSTANBUL ÄRA 😀 end")])
    with store.snapshot() as snapshot:
        (window,) = snapshot.field_window(
            FieldWindowPlan((A,), "n1", "body", 6, match="ära 😀", before_chars=2)
        )
        (missing,) = snapshot.field_window(FieldWindowPlan((A,), "n1", "body", 6, match="none"))
    assert (window.text, window.start_chars) == ("L ÄRA ", 11)
    assert (window.match_start_chars, window.match_end_chars) == (13, 18)
    assert missing.outcome is WindowOutcome.NO_MATCH


def test_a_window_needs_a_text(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", words=4, title=None)])
    with store.snapshot() as snapshot:
        outcomes = [
            snapshot.field_window(FieldWindowPlan((A,), "n1", field, 5))[0].outcome
            for field in ("words", "title", "body")
        ]
        assert snapshot.field_window(FieldWindowPlan((A,), "none", "body", 5)) == ()
    no_value = WindowOutcome.NO_VALUE
    assert outcomes == [WindowOutcome.NOT_TEXT, no_value, no_value]


def test_a_deleted_stream_is_empty_and_numbers_go_on(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2")])
    assert store.delete_stream("cin_a", "notes", 9_000) == 2
    assert store.delete_stream("cin_a", "notes", 9_000) == 0
    with store.snapshot() as snapshot:
        assert snapshot.horizon == 4
        assert snapshot.count(RecordsPlan((A,))) == 0
    write(store, "cin_a", [note("n1")])
    assert store.delete_record("cin_a", "notes", "n1", 9_000) is True
    assert store.delete_record("cin_a", "notes", "n1", 9_000) is False


def test_an_erased_connection_is_gone_and_numbers_go_on(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2")])
    write(store, "cin_b", [note("n1")])
    assert store.erase_connection("cin_a", 9) == 2
    with store.snapshot() as snapshot:
        assert [c.connection_id for c in snapshot.connections()] == ["cin_b"]
        assert snapshot.count(RecordsPlan(BOTH)) == 1
        assert snapshot.horizon == 3


def test_stored_records_are_found_by_key_and_by_a_field_that_is_grouped_by(
    store: RecordStore,
) -> None:
    moods = {"n1": "calm", "n2": "sad", "n3": "calm", "n4": "calm"}
    write(store, "cin_a", [note(key, mood=mood) for key, mood in moods.items()])
    write(store, "cin_b", [note("n9", mood="calm")])

    def calm(after: str, limit: int) -> list[str]:
        found = store.records_holding("cin_a", "notes", "mood", "calm", after, limit)
        return [row.key for row in found]

    assert (calm("", 2), calm("n3", 2), calm("n4", 2)) == (["n1", "n3"], ["n4"], [])
    named = store.records_named("cin_a", "notes", ["n2", "n9", "n1"])
    assert {row.key: row.data["mood"] for row in named} == {"n1": "calm", "n2": "sad"}
    assert store.records_named("cin_a", "files", ["n1"]) == []


def test_thread_marks_are_found_where_they_were_left_and_go_with_their_stream(
    store: RecordStore,
) -> None:
    early, late = ThreadMark("m1", 5, "t1"), ThreadMark("m1", 9, "t2")
    store.leave_thread_marks("cin_a", "notes", [early])
    assert store.thread_marks("cin_a", "notes", [("m1", 0, 9)]) == []
    write(store, "cin_a", [note("n1")])
    store.leave_thread_marks("cin_a", "notes", [early, late, early])
    assert store.thread_marks("cin_a", "notes", [("m1", 5, 8), ("m2", 0, 9)]) == [early]
    assert store.thread_marks("cin_a", "notes", [("m1", 6, 9)]) == [late]
    assert store.thread_marks("cin_b", "notes", [("m1", 0, 9)]) == []
    store.delete_stream("cin_a", "notes", 9)
    assert store.thread_marks("cin_a", "notes", [("m1", 0, 9)]) == []


def test_an_export_has_every_row_by_key(store: RecordStore) -> None:
    write(store, "cin_a", [note("n2"), note("n1")])
    with store.snapshot(None) as snapshot:
        assert [row.key for row in snapshot.export("cin_a", "notes")] == ["n1", "n2"]
        found = [(s.connection_id, s.stream, s.record_count) for s in snapshot.stored_streams()]
    assert found == [("cin_a", "notes", 2)]


def test_a_snapshot_does_not_move(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    with store.snapshot() as snapshot:
        assert snapshot.count(RecordsPlan((A,))) == 1
        write(store, "cin_a", [note("n2")])
        assert snapshot.count(RecordsPlan((A,))) == 1
        assert keys(store, RecordsPlan((A,), order(None), 10)) == ["n1", "n2"]
