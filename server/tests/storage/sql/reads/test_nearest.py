"""The nearest passages: those of what is visible, whether signs lie in blocks or in lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import instant_ns
from pdpp_kernel.vectors import Passage
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.reads import nearest as nearest_module
from personal_server.storage.sql.records import sign_blocks
from personal_server.storage.sqlite.dialect import SqliteDialect
from server.tests.semantics.tiny import vector_of
from server.tests.storage.sql.agreement import Stores, stored_twice
from server.tests.storage.sql.watched_reads import seconds_given
from server.tests.storage.worlds import condition, note, scope, write

DAYS = [f"2026-03-{day:02}T00:00:00Z" for day in range(1, 21)]
BODIES = ("puppy", "rain and wind", "a bill", "the garden", "my puppy", "dog")
FIELDS = ("title", "body")


def embed(store: RecordStore, most: int = 1_000) -> None:
    """Some of what waits, each text in two passages: its first word and the rest."""
    while store.use_embedding_model("tiny"):
        pass
    for account in ("cin_a", "cin_b"):
        while most > 0 and (work := store.unembedded(account, "notes", FIELDS, 2)) is not None:
            made = {
                (record.id, field): [
                    Passage(0, end, vector_of(text[:end])),
                    Passage(end, len(text), vector_of(text[end:] or text)),
                ]
                for record in work.records
                for field, text in record.texts.items()
                if (end := (text + " ").index(" "))
            }
            store.put_passages(work, made)
            most -= 1


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Two accounts; some of a source lie in blocks, and some came later."""
    made = [
        note(f"n{n:02}", DAYS[n * 7 % 20], body=BODIES[n % 6], mood=("calm", "glad")[n % 2])
        | ({"title": "dog"} if n % 5 == 0 else {})
        for n in range(20)
    ]
    records: dict[str, list[dict[str, Any]]] = {"cin_a": [], "cin_b": made[13:]}
    with (
        stored_twice(tmp_path_factory.mktemp("both"), records) as opened,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sign_blocks, "FEWEST_PACKED", 2)
        patch.setattr(sign_blocks, "PACKED_TOGETHER", 6)
        for each in opened:
            for n, one in enumerate(made[:13]):
                write(each, "cin_a", [one], emitted=n * 11 % 13 * 1_000)
            embed(each)
        while opened[1].pack_passages():
            pass
        for each in opened:
            write(each, "cin_a", [note("m", DAYS[9], body="puppy"), {**made[1], "body": "dog"}])
            embed(each)
        yield opened


SHOWN: dict[str, dict[str, Any]] = {
    "everything": {},
    "a stretch of time": {
        "window": TimeConstraint("at", instant_ns(DAYS[2]), instant_ns(DAYS[15]))
    },
    "nothing": {"window": TimeConstraint("body", 1, None)},
    "a stretch of days": {"window": TimeConstraint("day", 1, None)},
    "some records": {"resources": frozenset({"n00", "n02", "n05", "m", "n15", "n99"})},
    "one mood": {"only": (condition("mood", "eq", "calm", caseless=True),)},
    "no title": {"fields": ("id", "at", "body")},
    "no body": {"fields": ("id", "at", "title")},
    "no time": {"fields": ("id", "title", "body")},
    "no text": {"fields": ("id", "at")},
}
GLAD = (condition("mood", "eq", "glad"),)


def both(**shown: Any) -> tuple[Scope, ...]:
    return tuple(scope(account, **shown) for account in ("cin_a", "cin_b"))


def plan_of(scopes: tuple[Scope, ...], text: str = "dog", **more: Any) -> MeaningPlan:
    return MeaningPlan(scopes, vector_of(text), "tiny", **more)


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("shown", SHOWN)
def test_what_is_nearest_is_that_of_every_passage(
    stores: Stores, shown: str, packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteDialect, "packs", packs)
    scopes = both(**SHOWN[shown])
    with stores[0].snapshot() as slow, stores[1].snapshot() as fast:
        for text, conditions in product(("dog", "wet wind"), ((), GLAD)):
            asked = {(each.connection_id, "notes"): conditions for each in scopes}
            for most in (200, 3):
                plan = plan_of(scopes, text, conditions=asked, most=most)
                assert fast.nearest(plan) == slow.nearest(plan)
            other = replace(plan_of(scopes, conditions=asked), model="other")
            assert fast.nearest(other) == slow.nearest(other)
        assert fast.count_unembedded(scopes) == slow.count_unembedded(scopes) == 0


def test_blocks_are_read_where_all_of_a_stretch_is_visible_and_asked_for(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of: list[tuple[str, tuple[int, int]]] = []

    def read(*block: Any) -> tuple[list[tuple[int, int]], list[sign_blocks.Stretch]]:
        asked_of.append((block[2], block[3]))
        return sign_blocks.nearest_in_blocks(*block)

    monkeypatch.setattr(nearest_module, "nearest_in_blocks", read)
    whole = ("everything", "no title", "no body", "no time", "a stretch of time")
    with stores[1].snapshot() as snapshot:
        for shown, more in SHOWN.items():
            asked_of.clear()
            [scoped] = snapshot.places([scope(**more)])
            snapshot.nearest(plan_of((scoped.scope,)))
            fields = [each for each in FIELDS if each in scoped.scope.fields]
            between = scoped.compiler.sure(scoped.scope)
            expected = [(field, between) for field in fields] if shown in whole else []
            assert asked_of == expected, shown
        asked_of.clear()
        snapshot.nearest(plan_of((scope(),), conditions={("cin_a", "notes"): GLAD}))
        assert asked_of == []


def test_only_the_vectors_of_the_nearest_signs_are_compared(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all fields and sources together, the newest first of those that are as near."""
    with stores[1].snapshot() as snapshot:
        whole = snapshot.nearest(plan_of(both())).records
        for most in (1, 2, 5):
            monkeypatch.setattr(nearest_module, "COMPARED_PASSAGES", most)
            found = snapshot.nearest(plan_of(both())).records
            assert 1 <= len(found) <= most
            assert found[0].distance == whole[0].distance == 0
            assert {each.candidate for each in found} <= {each.candidate for each in whole}


def test_a_source_that_takes_too_long_is_lost_whole(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stores[1].snapshot() as snapshot:
        given = seconds_given(monkeypatch, snapshot.session, [True, False])
        found = snapshot.nearest(plan_of(both(), seconds_each=3.0))
    assert given == [3.0, 3.0]
    assert found.lost == {("cin_b", "notes")}
    assert {each.candidate.connection_id for each in found.records} == {"cin_a"}


def test_what_waits_is_counted_as_far_as_it_is_visible(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Before anything is embedded, between two steps of the walk, and when something changed."""
    made = [note(f"n{n}", DAYS[n], body=f"text {n}") for n in range(6)]
    window = TimeConstraint("at", instant_ns(DAYS[1]), instant_ns(DAYS[5]))
    seen = (both(), both(window=window), both(resources=frozenset({"n0", "n5", "n9"})))
    records = {"cin_a": made, "cin_b": made[:1]}
    with stored_twice(tmp_path_factory.mktemp("waiting"), records) as stores:
        steps: list[Callable[[RecordStore], object]] = [
            lambda store: store.use_embedding_model("tiny"),
            lambda store: embed(store, 1),
            lambda store: write(store, "cin_a", [note("n9", DAYS[0], body="new")]),
            lambda store: write(store, "cin_a", [note("n5", DAYS[5], body="changed"), "n4"]),
            lambda store: embed(store, 1),
            lambda store: write(store, "cin_b", [note("n2", DAYS[2], body="more")]),
            embed,
        ]
        counts: list[list[int]] = []
        for step in steps:
            step(stores[1])
            with stores[1].snapshot() as snapshot:
                counts.append([snapshot.count_unembedded(each) for each in seen])
                pending = snapshot.nearest(plan_of(both())).pending
                assert pending == counts[-1][0]
    assert counts == [
        [7, 4, 3],
        [5, 3, 2],
        [6, 3, 3],
        [7, 3, 4],
        [6, 3, 3],  # the walk comes to the new one again
        [7, 4, 3],
        [0, 0, 0],
    ]
