"""Searches by meaning work over visible passages only, and erased ones leave the file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pdpp_kernel.vectors import sign_distance, signs_of
from personal_server.enforcement.plans import MeaningPlan
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.care.integrity import IntegrityChecks
from personal_server.storage.sql.migrations import Step, known_steps
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.semantics.tiny import vector_of
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.test_passages import embed, keys, nearest, pack
from server.tests.storage.sqlite.test_search import ROW_STEPS, SCOPES, opened
from server.tests.storage.worlds import furnish, note, write
from tests.postgresql import schema, server


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("is_packed", [False, True], ids=["lines", "blocks"])
@pytest.mark.parametrize("name", SCOPES)
def test_the_nearest_cost_the_same_with_and_without_hidden_passages(
    tmp_path: Path, name: str, *, is_packed: bool
) -> None:
    """In the hidden world what is asked for is nearer than anything that is visible."""
    with opened(name, tmp_path) as worlds:
        for store in worlds.stores:
            embed(store)
            assert not is_packed or pack(store)
        plan = MeaningPlan((worlds.scope,), vector_of("zebra"), "tiny")
        without, other = worlds.work(lambda snapshot: snapshot.nearest(plan))
        assert abs(other.steps - without.steps) <= 3 * ROW_STEPS
        if name in ("fields", "resources", "resources in a window"):
            assert without == other


@pytest.mark.usefixtures("small_blocks")
def test_the_vectors_of_what_was_erased_leave_the_file(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a", "cin_b")
        texts = {f"n{number}": f"the secret number {number}" for number in range(40)}
        write(store, "cin_a", [note(key, body=text) for key, text in texts.items()])
        embed(store)
        assert pack(store)
        gone, stays = vector_of(texts["n7"]), vector_of(texts["n8"])
        assert held(tmp_path, gone) == held(tmp_path, stays) == (True, True)
        assert store.delete_record("cin_a", "notes", "n7", 3_000)
        store.finish_erasures()
        assert held(tmp_path, gone) == (False, False)
        assert held(tmp_path, stays) == (True, True)
        assert store.delete_stream("cin_a", "notes", 4_000) == 39
        store.finish_erasures()
        assert held(tmp_path, stays) == (False, False)


@pytest.mark.usefixtures("small_blocks")
def test_the_vectors_of_an_erased_account_leave_the_file(tmp_path: Path) -> None:
    texts = {"cin_a": "the secret number", "cin_b": "puppy"}
    with sqlite_store(tmp_path) as store:
        furnish(store, *texts)
        for connection_id, text in texts.items():
            write(store, connection_id, [note("n1", body=text)])
            assert embed(store, connection_id) == [text]
        gone, stays = (vector_of(text) for text in texts.values())
        assert held(tmp_path, gone) == held(tmp_path, stays) == (True, True)
        store.erase_connection("cin_a", 3_000)
        store.finish_erasures()
        assert held(tmp_path, gone) == (False, False)
        assert held(tmp_path, stays) == (True, True)


def held(folder: Path, vector: bytes) -> tuple[bool, bool]:
    """Whether the files hold a vector, and its signs."""
    files = b"".join(path.read_bytes() for path in (folder / "data").glob("records.db*"))
    return vector in files, signs_of(vector) in files


def test_passages_come_along_when_a_source_is_stored_another_way(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "records.db")
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnish(store, "cin_a", "cin_b")
    write(store, "cin_a", [note(f"n{number}", body="puppy") for number in range(300)])
    embed(store)
    IntegrityChecks(database, "owner", tmp_path).make_anew("cin_a", "notes")
    assert store.rebuild_slice()
    write(store, "cin_a", [note("n1", body="rain"), "n2"])
    while store.rebuild_slice():
        pass
    assert embed(store) == ["rain"]
    found = nearest(store, "dog", most=400)
    assert (len(found.records), found.pending) == (299, 0)
    assert keys(found)[-1] == "n1"
    assert "n2" not in keys(found)
    database.close()


def test_signs_of_an_older_layout_are_compared_as_before(tmp_path: Path) -> None:
    older = [step for step in known_steps() if step.name < "018"]
    one, other = vector_of("puppy"), vector_of("rain")
    with schema() as name:

        def in_file(steps: Sequence[Step]) -> SqliteDatabase:
            return SqliteDatabase(tmp_path / "records.db", steps=steps)

        def on_server(steps: Sequence[Step]) -> PostgresDatabase:
            return PostgresDatabase(server().url(), tmp_path, name, steps)

        for each in (in_file, on_server):
            with closing(each(older)) as database, database.write() as session:
                put = "INSERT INTO passage_signs VALUES (1, 'body', ?, 0, ?)"
                session.many(put, [(1, signs_of(one)), (2, signs_of(other))])
            with closing(each(known_steps())) as database, database.read() as session:
                apart = session.dialect.sign_distance("signs")
                asked = f"SELECT {apart} FROM passage_signs ORDER BY id"  # noqa: S608
                found = [value for (value,) in session.rows(asked, (signs_of(one),))]
                assert found == [0, sign_distance(signs_of(one), signs_of(other))]
