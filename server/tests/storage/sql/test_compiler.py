"""Conditions become statements: what each finds, and by which index lines are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.compiler import (
    KEYS,
    MAX_ID,
    NOTHING,
    Compiler,
    Statement,
    Where,
    with_key,
)
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.layout import held_digest
from personal_server.storage.sql.record_ids import FIRST_IN_TIME, WIDEST_PROBE
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.dialect import SqliteDialect
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sqlite.work import Work, counted_store, work_of
from server.tests.storage.worlds import (
    NOTES_STREAM,
    condition,
    furnish,
    note,
    order,
    scope,
    walk,
    write,
)

COMPILER = Compiler(layout_of(NOTES_STREAM), 7, SqliteDialect())
LONG = "a" * 256
SINCE, UNTIL = 1_000_000, 2_000_000


def column_of(field: str) -> str:
    return f"r.{COMPILER.layout.by_field[field].name}"


def test_conditions_hold_together_and_keys_lead() -> None:
    one, other = Where(("a = ?",), (1,)), Where(("b = ?",), (2,), "c1")
    assert one & other == Where(("a = ?", "b = ?"), (1, 2), "c1")
    assert (other & with_key("k")).index == (with_key("k") & other).index == KEYS
    assert other.free == Where(("b = ?",), (2,))
    assert with_key("k").free == with_key("k")
    assert ((one & other).sql, Where().sql) == (" WHERE a = ? AND b = ?", "")


def test_bounds_of_a_column_yield_to_further_ones() -> None:
    bounds = Where(("r.c1 >= ?", "r.c1 < ?", "r.c1 = ?", "r.c10 > ?"), (1, 2, 3, 4), "c1")
    dialect = COMPILER.dialect
    further = bounds.yielding(dialect, "r.c1")
    assert further.parts == ("+r.c1 >= ?", "+r.c1 < ?", "r.c1 = ?", "r.c10 > ?")
    assert further.params == bounds.params
    assert bounds.yielding(dialect, "r.c1", ">").parts[:2] == ("+r.c1 >= ?", "r.c1 < ?")
    assert bounds.yielding(dialect, "r.c1", "=").parts[2] == "+r.c1 = ?"


def windowed(since: int | None, until: int | None, field: str = "at", **more: Any) -> Scope:
    return scope(window=TimeConstraint(field, since, until), **more)


def test_between_sure_ids_everything_is_visible() -> None:
    first, end = (SINCE // 1_000 << 5) + WIDEST_PROBE, UNTIL // 1_000 << 5
    assert COMPILER.sure(scope()) == (-MAX_ID, MAX_ID)
    assert COMPILER.sure(windowed(SINCE, None)) == (first, MAX_ID)
    assert COMPILER.sure(windowed(SINCE, UNTIL)) == (first, end)
    assert COMPILER.sure(windowed(None, UNTIL)) == (FIRST_IN_TIME, end)


@pytest.mark.parametrize(
    ("seen", "is_stretch"),
    [
        (scope(), True),
        (windowed(SINCE, None), True),
        (windowed(SINCE, None, "day"), False),
        (scope(resources=frozenset({"n1"})), False),
        (scope(only=(condition("mood", "eq", "calm"),)), False),
        (windowed(SINCE, None, resources=frozenset({"n1"})), False),
    ],
)
def test_what_is_picked_is_no_stretch_of_time(seen: Scope, is_stretch: bool) -> None:
    assert COMPILER.is_stretch(seen) is is_stretch
    has_window = seen.window is not None
    assert (COMPILER.seen_stretch(seen, "b.id") is not None) == (is_stretch and has_window)
    if not has_window or seen.window.field != "at":  # type: ignore[union-attr]
        assert COMPILER.stretch(seen) == Where()


def test_a_window_bounds_what_is_visible() -> None:
    at, day = column_of("at"), column_of("day")
    assert COMPILER.visible(windowed(SINCE, UNTIL)) == Where(
        (f"{at} >= ?", f"{at} < ?"), (SINCE, UNTIL)
    )
    assert COMPILER.visible(windowed(None, 0)) == Where((f"{at} < ?",), (0,))
    # a day begins at its midnight: one of which a part is left out is left out
    assert COMPILER.visible(windowed(DAY_NANOSECONDS, 2 * DAY_NANOSECONDS + 1, "day")) == Where(
        (f"{day} >= ?", f"{day} < ?"), (1, 3)
    )
    assert COMPILER.visible(windowed(1, None, "day")).params == (1,)
    for field in ("title", "body", "none", "words"):
        assert COMPILER.visible(windowed(SINCE, None, field)) == NOTHING


def test_a_limit_of_a_grant_is_read_by_its_own_index() -> None:
    def index(*only: Condition) -> str | None:
        return COMPILER.visible(scope(only=only)).index

    layout = COMPILER.layout
    assert index(condition("mood", "eq", "calm")) == layout.by_field["mood"].name
    assert index(condition("mood", "eq", "calm", caseless=True)) == "f1"
    assert index(condition("mood", "in", "calm", further=("glad",))) is not None
    assert index(condition("mood", "eq", LONG)) is not None
    assert index(condition("mood", "in", "calm", further=(LONG,))) is None
    assert index(condition("place", "eq", "Ulm")) is None  # it has no index
    assert COMPILER.visible(scope(resources=frozenset({"b", "a"}))).params == ('["a","b"]',)


def test_what_is_asked_of_an_indexed_column_is_told() -> None:
    words, mood = (COMPILER.layout.by_field[name] for name in ("words", "mood"))
    asked = (
        condition("words", "gte", 2),
        condition("words", "lt", 9),
        condition("mood", "in", "calm", further=("glad",)),
        condition("mood", "exists", True),
        condition("place", "eq", "Ulm"),
        condition("id", "eq", "n1"),
    )
    found = COMPILER.bounds(scope(), asked)
    assert list(found) == [words, mood]
    assert (found[words].params, found[mood].params) == ((2, 9), ("calm", "glad"))
    bounded = COMPILER.bounds(windowed(SINCE, UNTIL), asked[:1])
    assert [(c.field, where.params) for c, where in bounded.items()] == [
        ("words", (2,)),
        ("at", (SINCE, UNTIL)),
    ]
    assert list(COMPILER.bounds(windowed(SINCE, None, "none"), ())) == []


def test_an_index_keeps_the_order_of_what_stands_behind_its_value() -> None:
    layout = COMPILER.layout
    mood, words = layout.by_field["mood"], layout.by_field["words"]
    kept = {
        (column.field, field): COMPILER.keeps_order(column, order(field))
        for column in (mood, words, layout.by_field["place"])
        for field in ("at", None, "words")
    }
    assert [asked for asked, is_kept in kept.items() if is_kept] == [
        ("mood", "at"),
        ("words", None),
    ]
    # a column of another kind is none
    assert not COMPILER.keeps_order(mood, Order("at", ValueKind.DATE, descending=False))
    assert COMPILER.keeps_order(words, Order("at", ValueKind.DATE, descending=False))


def test_a_limit_knows_what_a_record_held() -> None:
    two = condition("mood", "in", "Calm", further=("glad",))
    assert COMPILER.held_digests(two) == {held_digest("Calm"), held_digest("glad")}
    assert COMPILER.held_digests(replace(two, caseless=True)) == {
        held_digest("calm"),
        held_digest("glad"),
    }
    assert COMPILER.held_digests(condition("pinned", "eq", True)) == {held_digest(1)}
    assert COMPILER.held_digests(condition("mood", "eq", LONG + "b")) == {held_digest(LONG)}


MOODS = {
    "n1": "calm",
    "n2": "Calm",
    "n3": None,
    "n4": LONG,
    "n5": LONG + "b",
    "n6": LONG + "c",
    "n7": "calmer",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path_factory.mktemp("records")) as opened:
        furnish(opened, "cin_a", "cin_b")
        for account in ("cin_a", "cin_b"):
            notes = [
                note(key, f"2026-01-0{key[1]}T00:00:00Z", mood=mood, body=mood or "", place=mood)
                for key, mood in MOODS.items()
            ]
            write(opened, account, notes)
        yield opened


@pytest.mark.parametrize("field", ["mood", "body", "place"])
@pytest.mark.parametrize(
    ("operator", "value", "more", "expected"),
    [
        ("eq", "calm", {}, "1"),
        ("eq", "CALM", {"caseless": True}, "12"),
        ("eq", LONG, {}, "4"),
        ("eq", LONG + "b", {}, "5"),
        ("eq", LONG + "d", {}, ""),
        ("eq", (LONG + "B").upper(), {"caseless": True}, "5"),
        ("in", "calm", {"further": (LONG + "c", "none")}, "16"),
        ("in", "CALM", {"further": ("Calmer",), "caseless": True}, "127"),
        ("ne", "calm", {}, "24567"),
        ("ne", LONG + "b", {}, "12467"),
        ("contains", "ALM", {}, "127"),
        ("starts_with", "calm", {}, "127"),
        ("starts_with", "alm", {}, ""),
        ("contains", "ab", {}, "5"),
    ],
)
def test_each_condition_finds_its_records(
    store: SqlRecordStore, field: str, operator: str, value: str, more: Any, expected: str
) -> None:
    met = condition(field, operator, value, **more)
    plan = RecordsPlan((scope(),), order("at"), 9, (met,))
    with store.snapshot() as snapshot:
        found = [placed.row.key for placed in snapshot.page(plan).rows]
        assert snapshot.count(plan) == len(found)
    extra = {"n3"} if field == "body" and operator == "ne" else set[str]()
    assert set(found) == {f"n{number}" for number in expected} | extra
    assert found == sorted(found)


@pytest.mark.parametrize("whole", [False, True])
def test_a_page_is_its_walks_in_one_statement(*, whole: bool) -> None:
    """For a database that waits for each statement."""
    where, place = Where(("a = ?",), (1,)), ("cin_a", "notes")

    def page(after: Position | None, by: Order = order("at")) -> Statement:  # noqa: B008
        return COMPILER.page(where, by, after, place, 3, whole=whole)

    at, more = column_of("at"), ", r.cs, r.ce, r.fc, h.sum" if whole else " FROM"
    first = page(None)
    assert first.sql.count(" UNION ALL ") == 1
    assert first.sql.removeprefix("SELECT * FROM (").startswith(f"(SELECT {at}, r.k, r.id{more}")
    assert first.sql.endswith(" LIMIT 3)) AS page LIMIT 3")
    assert f"(SELECT NULL, r.k, r.id{more}" in first.sql
    assert first.params == (1, 1)
    assert ("LEFT JOIN h7 h" in first.sql) is whole
    # behind the values only what has none is left, and without a column all is
    behind = page(Position(None, "n1", *place))
    assert behind.sql.removeprefix("SELECT * FROM (").startswith(f"(SELECT NULL, r.k, r.id{more}")
    assert behind.params == (1, "n1")
    assert page(None, Order(None, None, descending=True)).params == (1,)
    assert page(Position(5, "n1", *place)).params == (1, 5, "n1", 1)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 20])
@pytest.mark.parametrize("field", ["at", "day", None])
def test_pages_of_two_accounts_are_one_list(
    store: SqlRecordStore, field: str | None, limit: int, down: bool
) -> None:
    plan = RecordsPlan((scope("cin_a"), scope("cin_b")), order(field, down=down), limit)
    found: list[Position] = walk(store, plan)
    expected = [(key, account) for key in MOODS for account in ("cin_a", "cin_b")]
    assert [(at.key, at.connection_id) for at in found] == (expected[::-1] if down else expected)


def test_a_column_has_a_lowest_and_a_highest_value(store: SqlRecordStore) -> None:
    with store.snapshot() as snapshot:
        [scoped] = snapshot.places([scope()])
        at, words = (scoped.compiler.layout.by_field[name] for name in ("at", "words"))
        ends = [
            snapshot.extreme(scoped, at, scoped.visible(), highest=highest)
            for highest in (False, True)
        ]
        assert ends == [instant_ns("2026-01-01T00:00:00Z"), instant_ns("2026-01-07T00:00:00Z")]
        assert snapshot.extreme(scoped, words, scoped.visible(), highest=True) is None
        mood = scoped.compiler.layout.by_field["mood"]
        where = scoped.compiler.equal(mood, LONG + "b")
        probed = [scoped.compiler.probe(mood, where, limit) for limit in (1, 9)]
        assert [snapshot.value(statement) for statement in probed] == [1, 1]
        calm = scoped.matching([condition("mood", "starts_with", "calm")])
        assert [snapshot.value(scoped.compiler.probe(at, calm, n)) for n in (2, 9)] == [2, 3]


@pytest.mark.parametrize("field", ["mood", "body"])
@pytest.mark.parametrize("operator", ["eq", "in"])
def test_what_ignores_case_costs_the_same_in_a_larger_archive(
    tmp_path: Path, field: str, operator: str
) -> None:
    met = (condition(field, operator, "CALM", caseless=True),)
    plan = RecordsPlan((scope(),), order("at"), conditions=met)
    works: list[Work] = []
    for others in (5, 500):
        with counted_store(tmp_path / str(others)) as (store, counters):
            asked = [note(f"a{n}", **{field: "Calm"}) for n in range(4)]
            rest = [note(f"b{n}", **{field: f"Other {n}"}) for n in range(others)]
            write(store, "cin_a", [*asked, *rest])
            work, found = work_of(store, counters, lambda snapshot: snapshot.count(plan))
            assert found == 4
            works.append(work)
    assert works[0].steps == works[1].steps


def test_a_whole_text_is_looked_for_by_its_words(tmp_path: Path) -> None:
    met = (condition("body", "eq", "Calm sea"),)
    plan = RecordsPlan((scope(),), order("at"), conditions=met)
    works: list[Work] = []
    for others in (5, 500):
        with counted_store(tmp_path / str(others)) as (store, counters):
            rest = [note(f"b{n}", body=f"Other {n}") for n in range(others)]
            write(store, "cin_a", [note("a", body="Calm sea"), *rest])
            work, found = work_of(store, counters, lambda snapshot: snapshot.count(plan))
            assert found == 1
            works.append(work)
    assert works[0].steps == works[1].steps
