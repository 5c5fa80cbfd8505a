"""A time line of records that hold words, in pages: they are the list, cut where a page ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from operator import methodcaller
from typing import Any

import pytest

from pdpp_kernel.criteria import Condition, Term, WordQuery
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import TimelinePlan
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope, TimedScope
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.agreement import Stores, assert_same, stored_twice
from server.tests.storage.worlds import condition, furnish, note, order, scope, write

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# Many of one instant, whose ids stand behind each other, and some minutes and hours later.
SECONDS = [*[0] * 6, 1, 1, 30, 60, 90, 3_600, *[3_600] * 4, 7_200, 86_400]
AT = {
    f"n{(number * 7) % 18:02}": (BEGIN + timedelta(seconds=seconds)).isoformat()
    for number, seconds in enumerate(SECONDS)
}
HELD = {key: at for key, at in AT.items() if key not in ("n03", "n10")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path_factory.mktemp("records")) as opened:
        furnish(opened, "cin_a")
        notes = [
            note(key, at, body="Heavy rain" if key in HELD else "wind", words=int(key[1:]))
            for key, at in AT.items()
        ]
        write(opened, "cin_a", notes)
        yield opened


def walked(store: SqlRecordStore, timed: TimedScope, limit: int, *words: str) -> list[str]:
    """All pages, laid end to end; none is longer than it may be."""
    found: list[str] = []
    after: Position | None = None
    query = WordQuery(tuple(Term((word,)) for word in words))
    down = timed.order.descending
    while True:
        with store.snapshot() as snapshot:
            page = snapshot.timeline(TimelinePlan((timed,), down, limit, after, query))
        assert len(page.rows) <= limit
        found += [placed.row.key for placed in page.rows]
        if not page.more:
            return found
        assert len(page.rows) == limit
        after = page.rows[-1].position


def expected(keys: dict[str, str], *, down: bool) -> list[str]:
    return sorted(keys, key=lambda key: (instant_ns(keys[key]) or 0, key), reverse=down)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7, 40])
@pytest.mark.parametrize("words", [("rain",), ("heavy", "rain")])
def test_pages_of_what_holds_words_are_the_list(
    store: SqlRecordStore, down: bool, limit: int, words: tuple[str, ...]
) -> None:
    timed = TimedScope(scope(), order("at", down=down), ())
    assert walked(store, timed, limit, *words) == expected(HELD, down=down)


BOUNDS = [
    (Operator.GTE, "2026-01-01T01:00:00Z", ">="),
    (Operator.LT, "2026-01-01T01:00:00Z", "<"),
    (Operator.GTE, "2026-01-01T00:00:01Z", ">="),
    (Operator.LT, "2026-01-01T00:00:01Z", "<"),
]


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(("operator", "at", "sign"), BOUNDS)
def test_bounds_of_a_time_line_are_kept(
    store: SqlRecordStore, down: bool, operator: Operator, at: str, sign: str
) -> None:
    bound = instant_ns(at) or 0
    met = {k: v for k, v in HELD.items() if ((instant_ns(v) or 0) >= bound) == (sign == ">=")}
    timed = TimedScope(scope(), order("at", down=down), (condition("at", operator, at),))
    assert walked(store, timed, 2, "rain") == expected(met, down=down)
    window = TimeConstraint("at", *((bound, None) if sign == ">=" else (None, bound)))
    shown = TimedScope(scope(window=window), order("at", down=down), ())
    assert walked(store, shown, 2, "rain") == expected(met, down=down)


@pytest.mark.parametrize(
    ("granted", "bounds"),
    [
        (scope(fields=("id", "at", "title", "body")), ()),
        (scope(fields=("id", "at", "body")), ()),
        (scope(resources=frozenset(AT)), ()),
        (scope(), (condition("words", Operator.GTE, 0),)),
    ],
    ids=["all searched", "one searched", "picked", "another bound"],
)
def test_what_else_is_asked_changes_no_page(
    store: SqlRecordStore, granted: Scope, bounds: tuple[Condition, ...]
) -> None:
    for down in (False, True):
        timed = TimedScope(granted, order("at", down=down), bounds)
        assert walked(store, timed, 3, "rain") == expected(HELD, down=down)
    hidden = TimedScope(scope(fields=("id", "at", "title")), order("at"), ())
    assert walked(store, hidden, 3, "rain") == []


# days and instants of two accounts, some alike, some far from today
TIMES = (
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000001Z",
    "2026-01-01T12:00:00Z",
    "2026-01-02T00:00:00Z",
    "9999-12-31T23:59:59Z",
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    made = [
        note(f"n{n}", at, body="rain" if n % 3 else "wind", mood=("calm", "glad")[n % 2])
        | ({"day": at[:10]} if n % 4 else {})
        for n, at in enumerate((*TIMES, *TIMES[1:5]))
    ]
    records = {"cin_a": made, "cin_b": made[2:9]}
    with stored_twice(tmp_path_factory.mktemp("both"), records) as opened:
        yield opened


SEEN: dict[str, dict[str, Any]] = {
    "everything": {},
    "a stretch of time": {
        "window": TimeConstraint("at", instant_ns(TIMES[2]), instant_ns(TIMES[5]))
    },
    "some records": {"resources": frozenset({"n1", "n2", "n4", "n6", "n9"})},
    "one mood": {"only": (condition("mood", "eq", "calm", caseless=True),)},
}
RAIN = WordQuery((Term(("rain",)),))


@pytest.mark.parametrize("seen", SEEN)
def test_a_time_line_of_days_and_instants_is_that_of_each_record(stores: Stores, seen: str) -> None:
    for names, down, words, bound in product(
        (("at", "at"), ("at", "day"), ("day", "day")),
        (False, True),
        (None, RAIN),
        (None, "gte", "lt"),
    ):
        timed = [
            TimedScope(
                scope(account, **SEEN[seen]),
                order(name, down=down),
                ()
                if bound is None
                else (condition(name, bound, TIMES[4] if name == "at" else "2026-01-01"),),
            )
            for account, name in zip(("cin_a", "cin_b"), names, strict=True)
        ]
        after: Position | None = None
        for limit in (1, 2, 50):
            plan = TimelinePlan(tuple(timed), down, limit, after, words)
            assert_same(stores, [methodcaller("timeline", plan)])
            with stores[0].snapshot() as snapshot:
                page = snapshot.timeline(plan).rows
            after = page[-1].position if page else None
