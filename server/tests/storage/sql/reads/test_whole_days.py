"""Whole days stand where those of a zone begin, beside instants and beside nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pdpp_kernel.criteria import Order, WholeDays
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, instant_ns
from personal_server.enforcement.rows import Position
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.reads.whole_days import (
    Spot,
    days_after,
    start_of_day,
    with_whole_days,
)
from personal_server.storage.sql.source_tables import ScopedSource
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish, note, scope, write

WEST = WholeDays("pinned", "America/Los_Angeles")
DAY = 20_522  # 10 March 2026; the west is 7 hours behind


def at(text: str) -> int:
    found = instant_ns(text)
    assert found is not None
    return found


def test_a_day_begins_in_its_zone() -> None:
    assert start_of_day(DAY, None) == at("2026-03-10T00:00:00Z")
    assert start_of_day(DAY, WEST) == at("2026-03-10T07:00:00Z")


@pytest.mark.parametrize(
    ("instant", "days", "expected"),
    [
        ("2026-03-10T00:00:00Z", None, (DAY, "k")),
        ("2026-03-10T00:00:01Z", None, (DAY + 1, "")),
        ("2026-03-10T23:59:59Z", None, (DAY + 1, "")),
        ("2026-03-10T07:00:00Z", WEST, (DAY, "k")),
        ("2026-03-10T06:59:59Z", WEST, (DAY, "")),
        ("2026-03-10T07:00:01Z", WEST, (DAY + 1, "")),
    ],
)
def test_behind_an_instant_comes_the_next_day(
    instant: str, days: WholeDays | None, expected: tuple[int, str]
) -> None:
    after = Position(at(instant), "k", "cin_a", "notes")
    assert days_after(after, days) == Position(*expected, "cin_a", "notes")
    in_ns = Position(expected[0] * DAY_NANOSECONDS, expected[1], "cin_a", "notes")
    assert days_after(after, days, DAY_NANOSECONDS) == in_ns
    nothing = Position(None, "k", "cin_a", "notes")
    assert days_after(nothing, days) is nothing


TIMED: list[Spot] = [(at("2026-03-10T07:00:00Z"), "m", 1), (at("2026-03-10T08:00:00Z"), "a", 2)]
WHOLE: list[Spot] = [(DAY * DAY_NANOSECONDS, "b", 3), (DAY * DAY_NANOSECONDS, "n", 4)]
WITHOUT: list[Spot] = [(None, "c", 5)]


@pytest.mark.parametrize("down", [False, True])
def test_both_are_walked_alone_and_merged(tmp_path: Path, down: bool) -> None:
    asked: list[tuple[tuple[Value, ...], Order, Position | None]] = []

    def walk(where: Where, order: Order, after: Position | None) -> list[Spot]:
        asked.append((where.params, order, after))
        return [*TIMED, *WITHOUT] if len(asked) == 1 else WHOLE

    order = Order("at", ValueKind.INSTANT, down, WEST)
    after = Position(at("2026-03-10T08:00:00Z"), "a", "cin_a", "notes")
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("n1")])
        with store.snapshot() as snapshot:
            [scoped] = snapshot.places([scope()])
            found = with_whole_days(scoped, Where(), order, after, walk)
    expected = ["b", "m", "n", "a"]
    assert [key for _, key, _ in found] == [*(reversed(expected) if down else expected), "c"]
    # what stands at the same instant goes by its key
    assert [value for value, key, _ in found if key in "bmn"] == [at("2026-03-10T07:00:00Z")] * 3
    plain = Order("at", ValueKind.INSTANT, down)
    midnight = Position((DAY + 1) * DAY_NANOSECONDS, "", "cin_a", "notes")
    assert [(by, spot) for _, by, spot in asked] == [(plain, after), (plain, midnight)]
    assert asked[0][0] != asked[1][0]


def test_without_whole_days_there_is_one_walk() -> None:
    plain = Order("at", ValueKind.INSTANT, descending=False)
    asked: list[tuple[Where, Order, Position | None]] = []

    def walk(*told: Any) -> list[Spot]:
        asked.append(told)
        return TIMED

    nowhere = cast("ScopedSource", None)
    assert with_whole_days(nowhere, Where(), plain, None, walk) is TIMED
    assert asked == [(Where(), plain, None)]
