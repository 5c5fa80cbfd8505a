"""What a state of the store says of itself, and of lines that were found damaged."""

from __future__ import annotations

import pytest

from personal_server.storage.damage import DamagedLine
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import database_of
from server.tests.storage.worlds import FILES_STREAM, note, write

NEVER = 2**63 - 1


def run(store: SqlRecordStore, *statements: str) -> None:
    with database_of(store).write() as session:
        for statement in statements:
            session.run(statement)


def tables(store: SqlRecordStore, stream: str = "notes") -> int:
    with database_of(store).read() as session:
        return int(session.value("SELECT tables FROM sources WHERE stream = ?", (stream,)))


def test_what_has_no_records_exports_none(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    with store.snapshot(None) as snapshot:
        assert [row.key for row in snapshot.export("cin_a", "notes")] == ["n1"]
        for place in (("cin_a", "files"), ("cin_b", "notes"), ("cin_c", "notes")):
            assert list(snapshot.export(*place)) == []


def test_a_state_knows_its_model(store: SqlRecordStore) -> None:
    for model in ("tiny", None, "other"):
        while store.use_embedding_model(model):
            pass
        with store.snapshot() as snapshot:
            assert snapshot.embedding_model() == model


def test_streams_with_changes_behind_a_number_are_named_in_order(store: SqlRecordStore) -> None:
    write(store, "cin_b", [note("n1")])
    write(store, "cin_a", [{"id": "f1", "note_id": "n1"}], stream=FILES_STREAM)
    write(store, "cin_a", [note("n1")])
    every = [("cin_a", "files"), ("cin_a", "notes"), ("cin_b", "notes")]
    with store.snapshot() as snapshot:
        found = [list(snapshot.changed_after(number)) for number in range(4)]
        assert snapshot.horizon == 3
        counts = [(each.stream, each.record_count) for each in snapshot.stored_streams()]
    assert found == [every, every[:2], every[1:2], []]
    assert counts == [("files", 1), ("notes", 1), ("notes", 1)]


def test_history_that_an_earlier_version_cut_has_no_time(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note("n1")], now=10)
    write(store, "cin_a", ["n1"], now=20)

    def cut() -> tuple[int, int]:
        with store.snapshot() as snapshot:
            return snapshot.retained_from, snapshot.forgotten_until_ns

    assert cut() == (0, 0)
    store.prune_history(15)
    assert cut() == (1, 15)
    run(store, "DELETE FROM store WHERE name = 'forgotten_until'")
    assert cut() == (1, NEVER)
    store.prune_history(25)
    assert cut() == (2, 25)


def test_eras_are_of_the_changes_that_were_written_in_them(store: SqlRecordStore) -> None:
    run(store, "DELETE FROM eras", "INSERT INTO eras VALUES (2, 'one'), (5, 'other')")
    with store.snapshot() as snapshot:
        found = [snapshot.era(number) for number in (0, 2, 3, 5, 6)]
    assert found == ["", "", "one", "one", "other"]


LOST = "DELETE FROM h# WHERE id = (SELECT id FROM r# WHERE k = 'n1')"
NO_KEY = "UPDATE r# SET k = CAST(CAST(k AS BLOB) || x'ff' AS TEXT) WHERE k = 'n1'"


@pytest.mark.parametrize(
    ("statement", "named", "unnamed"),
    [(None, False, False), (LOST, True, False), (NO_KEY, False, True)],
)
def test_a_line_that_was_noted_is_damaged_until_it_is_healed(
    store: SqlRecordStore, statement: str | None, *, named: bool, unnamed: bool
) -> None:
    write(store, "cin_a", [note("n1"), note("n2")])
    number = tables(store)
    with database_of(store).read() as session:
        line = session.value("SELECT id FROM r# WHERE k = 'n1'".replace("#", str(number)))
    if statement is not None:
        run(store, statement.replace("#", str(number)))
    with store.snapshot() as snapshot:
        assert isinstance(snapshot, SqlSnapshot)
        assert snapshot.is_damaged(DamagedLine(number, line)) is named
        assert snapshot.is_damaged(DamagedLine(number, None)) is unnamed
        assert not snapshot.is_damaged(DamagedLine(number + 9, line))
