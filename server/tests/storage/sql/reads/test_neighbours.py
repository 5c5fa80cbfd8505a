"""What stands right before and right after a record that it shares a value with."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import BesidePlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.worlds import note, scope, write

DAYS = [f"2026-03-0{day}T00:00:00Z" for day in range(1, 8)]
PLAN = BesidePlan(
    scope(), ("place", ValueKind.STRING), ("at", ValueKind.INSTANT), tuple("abcdexyz")
)
LONGEST = "x" * 255


def told(found: dict[str, tuple[str | None, str | None, object]]) -> list[str]:
    return [f"{k}: {before or '-'} {after or '-'}" for k, (before, after, _) in found.items()]


@pytest.fixture
def store(store: SqlRecordStore) -> SqlRecordStore:
    written = [
        note("a", DAYS[1], place="Ulm"),
        note("c", DAYS[2], place="Ulm"),
        note("b", DAYS[2], place="Ulm"),  # of one instant: by key
        note("d", DAYS[4], place="Ulm"),
        note("e", DAYS[3], place="Rom"),
        note("x", DAYS[3]),  # shares nothing
        note("y", DAYS[3], place=LONGEST),
        note("z", DAYS[3], place=LONGEST + "x"),  # is cut: of it nothing is told
    ]
    write(store, "cin_a", written)
    write(store, "cin_b", [note("h", DAYS[2], place="Ulm")])
    return store


def beside(store: SqlRecordStore, plan: BesidePlan = PLAN, **more: Any) -> list[str]:
    with store.snapshot() as snapshot:
        found = snapshot.beside(replace(plan, **more))
    return sorted(told(dict(found)))


def test_the_next_ones_by_time_and_key_are_told(store: SqlRecordStore) -> None:
    assert beside(store) == ["a: - b", "b: a c", "c: b d", "d: c -", "e: - -", "y: - -"]
    assert beside(store, keys=("b", "none")) == ["b: a c"]
    assert beside(store, keys=()) == []
    with store.snapshot() as snapshot:
        shared = {key: value for key, (_, _, value) in snapshot.beside(PLAN).items()}
    assert shared == dict.fromkeys("abcd", "Ulm") | {"e": "Rom", "y": LONGEST}


def test_hidden_ones_stand_beside_nothing(store: SqlRecordStore) -> None:
    window = TimeConstraint("at", instant_ns(DAYS[2]), instant_ns(DAYS[4]))
    seen: list[Scope] = [scope(window=window), scope(resources=frozenset("bcez"))]
    for each in seen:
        assert beside(store, scope=each, keys=tuple("abcde")) == ["b: - c", "c: b -", "e: - -"]
    assert beside(store, scope=scope("cin_b"), keys=("h", "a")) == ["h: - -"]
    assert beside(store, scope=scope("cin_none")) == []


def test_numbers_are_compared_as_numbers(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note(k, words=7, cost=n) for k, n in (("a", 10), ("b", 9), ("c", 8.5))])
    by_words = BesidePlan(
        scope(), ("words", ValueKind.INTEGER), ("cost", ValueKind.NUMBER), tuple("abcd")
    )
    assert beside(store, by_words) == ["a: b -", "b: c a", "c: - b"]
    assert beside(store, by_words, ordered=("place", ValueKind.STRING)) == []
    assert beside(store, by_words, ordered=("cost", ValueKind.STRING)) == []
    assert beside(store, by_words, shared=("labels", ValueKind.STRING)) == []
