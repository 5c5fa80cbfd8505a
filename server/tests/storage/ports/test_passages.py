"""What every store does with passages: how they are made, kept, found and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pdpp_kernel.values import instant_ns
from pdpp_kernel.vectors import Passage
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.rows import Nearest
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.semantics.tiny import vector_of
from server.tests.storage.ports.asking import BOTH
from server.tests.storage.worlds import condition, note, scope, write

FIELDS = ("title", "body")


def embed(store: RecordStore, connection_id: str = "cin_a", model: str = "tiny") -> list[str]:
    """Embed all that waits, and say what that was."""
    while store.use_embedding_model(model):
        pass
    texts: list[str] = []
    while (work := store.unembedded(connection_id, "notes", FIELDS, 2)) is not None:
        made = {
            (record.id, field): [Passage(0, len(text), vector_of(text))]
            for record in work.records
            for field, text in record.texts.items()
        }
        texts += [text for record in work.records for text in record.texts.values()]
        store.put_passages(work, made)
    return texts


def nearest(store: RecordStore, text: str, scopes: Sequence[Scope] = BOTH, **more: Any) -> Nearest:
    conditions = more.pop("conditions", ())
    asked = {(each.connection_id, each.stream.name): conditions for each in scopes}
    model = more.pop("model", "tiny")
    with store.snapshot() as snapshot:
        return snapshot.nearest(MeaningPlan(tuple(scopes), vector_of(text), model, asked, **more))


def keys(found: Nearest) -> list[str]:
    return [each.candidate.key for each in found.records]


def test_what_means_the_same_is_nearest(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="my puppy"), note("n2", body="a bill"), note("n3")])
    write(store, "cin_b", [note("n4", title="dog", body="the garden")])
    assert nearest(store, "dog").pending == 4
    assert sorted(embed(store)) == ["a bill", "my puppy"]
    assert sorted(embed(store, "cin_b")) == ["dog", "the garden"]
    found = nearest(store, "dog")
    assert (keys(found)[:2], found.pending) == (["n4", "n1"], 0)
    best = found.records[0]
    assert (best.field, best.start_chars, best.end_chars) == ("title", 0, 3)
    assert best.distance < 0.01


def test_a_field_that_is_not_granted_is_not_compared(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", title="bills", body="my puppy"), note("n2", title="rain")])
    embed(store)
    blind = (scope("cin_a", fields=("id", "at", "title")),)
    found = nearest(store, "puppy", blind)
    assert {each.field for each in found.records} == {"title"}
    assert all(each.distance > 0.5 for each in found.records)


def test_only_visible_records_are_compared(store: RecordStore) -> None:
    days = [f"2026-03-{day:02}T00:00:00Z" for day in (1, 5, 9)]
    write(store, "cin_a", [note(f"n{n}", at=at, body="puppy") for n, at in enumerate(days)])
    embed(store)
    since, until = (instant_ns(days[0]), instant_ns(days[2]))
    assert since is not None
    window = TimeConstraint("at", since + 1, until)
    assert keys(nearest(store, "dog", (scope("cin_a", window=window),))) == ["n1"]
    title = condition("title", "eq", "kept")
    write(store, "cin_a", [note("n3", at=days[1], body="puppy", title="kept")])
    embed(store)
    for seen in (scope("cin_a", window=window), scope("cin_a")):
        assert keys(nearest(store, "dog", (seen,), conditions=(title,))) == ["n3"]
    few = (scope("cin_a", resources=frozenset({"n2", "n0", "n7"})),)
    assert sorted(keys(nearest(store, "dog", few))) == ["n0", "n2"]


def test_what_changed_is_embedded_again_and_what_went_is_forgotten(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", title="one", body="puppy"), note("n2", body="puppy")])
    embed(store)
    write(store, "cin_a", [note("n1", title="one", body="rain"), "n2"])
    assert nearest(store, "dog").pending == 1
    assert "n2" not in keys(nearest(store, "dog"))
    assert embed(store) == ["rain"]
    assert nearest(store, "wet").records[0].distance < 0.01
    assert nearest(store, "dog").records[0].distance > 0.5


def test_another_model_begins_anew(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="puppy")])
    embed(store)
    assert nearest(store, "dog", model="other") == Nearest((), 1)
    assert embed(store, model="other") == ["puppy"]
    assert store.embedding_model() == "other"
    assert nearest(store, "dog").records == ()
    assert keys(nearest(store, "dog", model="other")) == ["n1"]
    while store.use_embedding_model(None):
        pass
    assert nearest(store, "dog", model="other") == Nearest((), 1)


def test_equal_distances_stand_with_the_newest_first(store: RecordStore) -> None:
    days = [f"2026-03-{day:02}T00:00:00Z" for day in range(1, 10)]
    write(store, "cin_a", [note(f"n{n}", at=at, body="puppy") for n, at in enumerate(days)])
    embed(store)
    assert keys(nearest(store, "dog", most=3)) == ["n8", "n7", "n6"]


def pack(store: RecordStore) -> int:
    """Whatever is enough for blocks; how many were made."""
    return sum(iter(store.pack_passages, False))


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_signs_are_what_their_passages_are(store: RecordStore) -> None:
    """While they are made, and when something in the middle of one changed, came or went."""
    bodies = ("puppy", "rain", "a bill", "the garden", "weather", "a postcard")
    days = [f"2026-03-{day:02}T00:00:00Z" for day in range(1, 25)]
    write(store, "cin_a", [note(f"n{n}", at, body=bodies[n % 6]) for n, at in enumerate(days)])
    since, until = instant_ns(days[5]), instant_ns(days[20])
    assert since is not None
    window = TimeConstraint("at", since, until)
    scopes = [
        scope("cin_a"),
        scope("cin_a", window=window),
        scope("cin_a", window=TimeConstraint("at", since)),
        scope("cin_a", resources=frozenset({"n1", "n9"})),
    ]

    def found() -> list[Nearest]:
        return [nearest(store, text, (each,)) for each in scopes for text in ("dog", "wet rain")]

    embed(store)
    before = found()
    made = pack(store)
    assert found() == before
    changed = [note("n7", days[7], body="dog"), note("m", days[9], body="puppy"), "n12"]
    write(store, "cin_a", changed)
    embed(store)
    after = found()
    assert after != before
    assert {"m", "n7"} <= set(keys(nearest(store, "dog", scopes[:1]))[:7])
    assert pack(store) <= made
    assert found() == after
