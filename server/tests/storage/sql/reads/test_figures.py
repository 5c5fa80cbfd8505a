"""Figures of what is visible, which are remembered for whole sources until something is written."""

from __future__ import annotations

from itertools import product
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.reads import figures
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.agreement import assert_same, stored_twice
from server.tests.storage.sqlite.work import counted_store, work_of
from server.tests.storage.worlds import condition, furnish, note, scope, write

BOTH = (scope("cin_a"), scope("cin_b"))
DAYS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 8)]


@pytest.fixture
def store(store: SqlRecordStore) -> SqlRecordStore:
    for account, days in (("cin_a", DAYS[2:5]), ("cin_b", DAYS[3:6])):
        write(store, account, [note(f"n{number}", at) for number, at in enumerate(days)])
    return store


def span(store: SqlRecordStore, *scopes: Scope, **more: Any) -> tuple[int, object, object]:
    with store.snapshot() as snapshot:
        found = snapshot.span(RecordsPlan(scopes or BOTH, span_field="at", **more))
    return found.total, found.earliest, found.latest


def test_a_span_is_of_what_is_asked_now(store: SqlRecordStore) -> None:
    for _ in range(2):  # made, and remembered
        assert span(store) == (6, DAYS[2], DAYS[5])
        assert span(store, BOTH[0]) == (3, DAYS[2], DAYS[4])
    few = condition("at", "lt", DAYS[4])
    assert span(store, conditions=(few,)) == (3, DAYS[2], DAYS[3])
    picked = scope("cin_b", resources=frozenset({"n1"}))
    for seen in (picked, BOTH[1], picked):  # what is remembered of the whole is not told of a part
        assert span(store, seen) == (
            (1, DAYS[4], DAYS[4]) if seen is picked else (3, DAYS[3], DAYS[5])
        )
    write(store, "cin_b", [note("n9", DAYS[0])])
    assert span(store) == (7, DAYS[0], DAYS[5])
    with store.snapshot() as snapshot:
        found = snapshot.span(RecordsPlan(BOTH))
    assert (found.total, found.earliest, found.latest) == (7, None, None)


def test_the_span_of_whole_sources_is_looked_up_once(tmp_path: Path) -> None:
    with counted_store(tmp_path) as (store, counters):
        write(store, "cin_a", [note(f"n{number}", at) for number, at in enumerate(DAYS)])

        def steps(*scopes: Scope) -> int:
            plan = RecordsPlan(scopes, span_field="at")
            work, found = work_of(store, counters, lambda snapshot: snapshot.span(plan))
            assert (found.earliest, found.latest) == (DAYS[0], DAYS[6])  # type: ignore[attr-defined]
            return work.steps

        assert steps(scope()) == 0 < steps(scope(resources=frozenset(f"n{n}" for n in range(7))))


@pytest.mark.parametrize("most", [None, 0, 2, 4, 9])
def test_no_more_are_counted_than_are_asked_for(store: SqlRecordStore, most: int | None) -> None:
    few = (condition("words", "exists", False),)
    for conditions in ((), few, (condition("at", "gte", DAYS[0]),)):
        with store.snapshot() as snapshot:
            found = snapshot.count(RecordsPlan(BOTH, conditions=conditions, most=most))
        assert found == (6 if most is None else min(6, most))


@pytest.mark.parametrize("at_once", [1, 2, 3, 200])
def test_the_newest_date_is_that_of_a_granted_change(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "WALKED_AT_ONCE", at_once)
    blind = scope(fields=("id", "at"))
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        with store.snapshot() as snapshot:
            assert snapshot.summary(scope()).last_emitted_at_ns is None
        for number in range(6):
            write(store, "cin_a", [note(f"n{number}")], emitted=number)
        for number in range(3):  # a later change that is hidden, of an early record
            write(store, "cin_a", [note(f"n{number}", words=1)], emitted=10 + number)
        with store.snapshot() as snapshot:
            assert snapshot.summary(scope()).last_emitted_at_ns == 12
            assert snapshot.summary(blind).last_emitted_at_ns == 5
            empty = snapshot.summary(scope(resources=frozenset({"none"})))
            assert (empty.record_count, empty.last_emitted_at_ns) == (0, None)


@pytest.mark.parametrize(
    ("point", "kind", "value"),
    [
        (20_454, ValueKind.DATE, "2026-01-01"),
        (1_767_225_600_000_000_000, ValueKind.INSTANT, "2026-01-01T00:00:00Z"),
        (2.5e20, ValueKind.INSTANT, None),
        (-2.5e20, ValueKind.INSTANT, None),
        (1, ValueKind.BOOLEAN, True),
        (3, ValueKind.INTEGER, 3),
        ("calm", ValueKind.STRING, "calm"),
    ],
)
def test_a_point_without_a_stored_value_is_written_out(
    point: Any, kind: ValueKind, value: object
) -> None:
    found = figures.plain_point(point, kind)
    assert (found, type(found)) == (value, type(value))


def test_counts_spans_and_summaries_are_those_of_the_records(tmp_path: Path) -> None:
    """Of stored texts the first by key and account, where several are one instant."""
    times = ("2026-01-02T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.0Z", DAYS[0])
    made = [
        note(f"n{n % 5}", at, day=at[:10], words=n) for n, at in enumerate((*times, *times[::-1]))
    ]
    shown: list[dict[str, Any]] = [
        {},
        {"window": TimeConstraint("at", None, instant_ns(times[0]))},
        {"resources": frozenset({"n1", "n3", "n9"})},
        {"fields": ("id", "at"), "only": (condition("words", "gte", 2),)},
        {"resources": frozenset({"none"})},
    ]
    limits = ((), (condition("words", "gte", 3),), (condition("words", "gte", 99),))
    with stored_twice(tmp_path, {"cin_a": made[3:], "cin_b": made[:5]}) as stores:
        for each in stores:
            write(each, "cin_a", [{**made[6], "title": "later"}], emitted=9_000)
        for more, conditions, field, most in product(shown, limits, ("at", "day", None), (None, 2)):
            scopes = tuple(scope(account, **more) for account in ("cin_a", "cin_b"))
            plan = RecordsPlan(scopes, conditions=conditions, span_field=field, most=most)
            assert_same(stores, [methodcaller("count", plan), methodcaller("span", plan)])
        for account, more in product(("cin_a", "cin_b", "cin_c"), shown):
            assert_same(stores, [methodcaller("summary", scope(account, **more))])
