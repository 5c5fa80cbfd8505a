"""Who embeds is told what waits, a few records at a time, and how much is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pdpp_kernel.vectors import Passage
from personal_server.domain.stored import Unembedded
from personal_server.storage.sql.records import passage_making, passages
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.semantics.tiny import vector_of
from server.tests.storage.ports.asking import BOTH
from server.tests.storage.ports.test_passages import FIELDS, embed, nearest
from server.tests.storage.worlds import note, scope, write

DAYS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 6)]


@pytest.fixture
def store(store: SqlRecordStore) -> SqlRecordStore:
    write(store, "cin_a", [note(f"n{n}", at, body=f"text {n}") for n, at in enumerate(DAYS)])
    store.use_embedding_model("tiny")
    return store


def waiting(
    store: SqlRecordStore, limit: int = 2, fields: Sequence[str] = FIELDS
) -> Unembedded | None:
    return store.unembedded("cin_a", "notes", fields, limit)


def texts(work: Unembedded | None) -> list[str]:
    assert work is not None
    return [text for record in work.records for text in record.texts.values()]


def put(store: SqlRecordStore, work: Unembedded | None) -> None:
    assert work is not None
    made = {
        (record.id, field): [Passage(0, len(text), vector_of(text))]
        for record in work.records
        for field, text in record.texts.items()
    }
    store.put_passages(work, made)


def left(store: SqlRecordStore) -> list[tuple[int, int]]:
    return [(each.records, each.waiting) for each in store.embedding_progress()]


def pending(store: SqlRecordStore) -> int:
    return nearest(store, "dog", BOTH).pending


def test_the_newest_come_first_and_then_what_changed(store: SqlRecordStore) -> None:
    assert (left(store), pending(store)) == ([], 5)
    work = waiting(store)
    assert texts(work) == ["text 4", "text 3"]
    assert (left(store), pending(store)) == ([(5, 5)], 5)
    assert texts(waiting(store)) == ["text 4", "text 3"]  # until they are put
    put(store, work)
    assert (left(store), pending(store)) == ([(5, 3)], 3)
    write(store, "cin_a", [note("n4", DAYS[4], body="changed"), note("n9", body="new")])
    assert (left(store), pending(store)) == ([(6, 6)], 5)
    work = waiting(store)
    assert sorted(texts(work)) == ["changed", "new"]
    put(store, work)
    # the walk comes to the new one again, and passes over it
    assert (texts(waiting(store)), pending(store)) == (["text 2", "text 1"], 4)
    put(store, waiting(store))
    put(store, waiting(store))
    assert (left(store), pending(store)) == ([(6, 0)], 0)
    assert waiting(store) is None


def test_what_has_no_text_waits_for_nothing(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note("n8", body=" \n"), note("n9", title="", words=1)])
    made = [each for _ in range(9) if (work := waiting(store)) for each in texts(work)]
    assert set(made) == {"text 4", "text 3"}
    assert embed(store) == [f"text {number}" for number in (4, 3, 2, 1, 0)]
    write(store, "cin_a", [note("n9", title="now", words=1)])
    assert texts(waiting(store)) == ["now"]


def test_what_changed_since_it_was_read_is_passed_over(store: SqlRecordStore) -> None:
    work = waiting(store)
    write(store, "cin_a", [note("n4", body="changed"), "n3"])
    put(store, work)
    assert embed(store) == ["changed", "text 2", "text 1", "text 0"]
    assert nearest(store, "changed").records[0].distance < 0.01


def test_nothing_is_put_into_a_stream_that_was_erased(store: SqlRecordStore) -> None:
    work = waiting(store)
    store.delete_stream("cin_a", "notes", 9)
    put(store, work)
    assert nearest(store, "text 4").records == ()
    assert store.unembedded("cin_a", "files", FIELDS, 2) is None
    assert store.unembedded("cin_b", "notes", FIELDS, 2) is None


def test_other_fields_begin_anew_and_keep_what_serves_again(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note("n9", "2026-02-01T00:00:00Z", title="head", body="text 9")])
    assert len(embed(store)) == 7
    assert texts(waiting(store, 9, ("body",))) == []
    assert [each.fields for each in store.embedding_progress()] == [("body",)]
    assert nearest(store, "head").records[0].field == "body"
    work = waiting(store, 9)
    assert texts(work) == ["head"]
    put(store, work)
    found = nearest(store, "head")
    assert (found.records[0].field, found.pending) == ("title", 0)
    assert waiting(store, 9, ("body", "title")) is None  # the same in another order


def test_a_look_ends_after_so_many_records(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_making, "LOOKED_AT_ONCE", 2)
    write(store, "cin_a", [note(f"m{n}", f"2026-02-0{n}T00:00:00Z") for n in range(1, 6)])
    while (work := waiting(store, 1)) and not work.records:
        store.put_passages(work, {})
    assert texts(work) == ["text 4"]
    assert left(store) == [(10, 6)]


def test_passages_of_another_model_go_a_few_at_a_time(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(store)
    assert store.use_embedding_model("tiny") is False
    monkeypatch.setattr(passage_making, "FORGOTTEN_AT_ONCE", 2)
    monkeypatch.setattr(passages, "FORGOTTEN_AT_ONCE", 2)
    steps = 0
    while store.use_embedding_model("other"):
        assert (store.embedding_model(), left(store)) == (None, [])
        steps += 1
    assert steps >= 3
    assert store.embedding_model() == "other"
    assert store.use_embedding_model("other") is False
    assert pending(store) == 5
    assert nearest(store, "text 4", (scope(),), model="other").records == ()
    assert len(embed(store, model="other")) == 5
    while store.use_embedding_model(None):
        pass
    assert (store.embedding_model(), store.use_embedding_model(None)) == (None, False)
