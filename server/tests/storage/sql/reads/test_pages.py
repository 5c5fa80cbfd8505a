"""Days stand where they begin in a zone, and a page costs what it shows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from operator import methodcaller
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Order, WholeDays
from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import (
    ChildrenPlan,
    KeysPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
)
from personal_server.enforcement.rows import RowPage
from personal_server.storage.sql.compiler import Compiler, Statement
from personal_server.storage.sql.reads import pages
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.dialect import SqliteDialect
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.agreement import Stores, assert_same, stored_twice
from server.tests.storage.sqlite.work import counted_store, work_of
from server.tests.storage.worlds import (
    NOTES,
    condition,
    connection,
    declaration,
    note,
    order,
    scope,
    walk,
    write,
)

WEST = "America/Los_Angeles"


def dated() -> Any:
    """Notes of which some are whole days."""
    raw = copy.deepcopy(NOTES)
    raw["schema"]["properties"]["pinned"]["x_pdpp_role"] = "whole-days"
    return declaration(streams=[raw])


DATED = dated()
# the night before, a whole day as it is stored, and the hours in which that day begins and ends
AT = {
    "before": "2026-01-02T07:59:00Z",
    "day": "2026-01-02T00:00:00Z",
    "within": "2026-01-02T08:01:00Z",
    "evening": "2026-01-03T07:00:00Z",
    "next": "2026-01-03T00:00:00Z",
}
DAYS = ("day", "next")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path) as opened:
        opened.put_declaration(DATED, orjson.dumps(DATED.raw), 1)
        opened.add_connection(connection("cin_a"))
        notes = [note(key, at, pinned=key in DAYS) for key, at in AT.items()]
        write(opened, "cin_a", notes, stream=DATED.streams["notes"])
        yield opened


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (None, ["day", "before", "within", "next", "evening"]),
        (WholeDays("pinned", "UTC"), ["day", "before", "within", "next", "evening"]),
        (WholeDays("pinned", WEST), ["before", "day", "within", "evening", "next"]),
    ],
)
def test_whole_days_begin_in_the_zone(
    store: SqlRecordStore, days: WholeDays | None, expected: list[str], limit: int
) -> None:
    scopes = (scope(stream=DATED.streams["notes"]),)
    for descending in (False, True):
        by = Order("at", ValueKind.INSTANT, descending, days)
        found = [place.key for place in walk(store, RecordsPlan(scopes, by, limit))]
        assert found == (expected[::-1] if descending else expected)


DAWN = "2025-12-31T00:00:00Z"
CALM = condition("mood", "eq", "calm")
RARE = condition("words", "gte", 100)
COMMON = condition("words", "gte", 0)
BODY = condition("body", "eq", "same", caseless=True)


@pytest.mark.parametrize(
    ("conditions", "by"),
    [
        ((CALM,), "at"),  # few, which are sorted
        ((RARE,), "at"),
        ((COMMON, CALM), "at"),  # what narrows most
        ((RARE, BODY), "at"),
        ((BODY,), "at"),  # all of them, but in order
        ((COMMON, BODY), "at"),
        ((COMMON,), "at"),  # by the order, until the page is full
        ((COMMON,), "words"),
        ((), "at"),
    ],
    ids=lambda each: each if isinstance(each, str) else ",".join(c.field for c in each) or "none",
)
def test_a_page_of_a_larger_archive_costs_the_same(
    tmp_path: Path, conditions: tuple[Condition, ...], by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FEW", 10)
    plan = RecordsPlan((scope(),), order(by, down=True), 3, conditions)
    works: list[int] = []
    for others in (40, 400):
        with counted_store(tmp_path / str(others)) as (store, counters):
            rare = [note(f"a{n}", mood="calm", words=100 + n, body="same") for n in range(4)]
            rest = [
                note(f"b{n}", DAWN, mood="glad", words=n % 9, body="same") for n in range(others)
            ]
            write(store, "cin_a", [*rare, *rest])
            work, page = work_of(store, counters, lambda snapshot: snapshot.page(plan))
            assert len(page.rows) == 3  # type: ignore[attr-defined]
            works.append(work.steps)
    assert works[0] == works[1]


MANY = [f"2026-03-{day:02}T00:00:00Z" for day in (1, 2, 2, 3, 4, 4, 4, 5, 6, 7)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Two accounts with equal times, and values that some lack."""
    made = [
        note(f"n{n % 7}", at, words=(None, 3, 1, 3)[n % 4], cost=n / 2, day=at[:10], mood="calm")
        for n, at in enumerate(MANY)
    ]
    made = [{k: v for k, v in each.items() if v is not None} for each in made]
    for number, each in enumerate(made):
        if number % 3 == 0:
            del each["mood"], each["day"]
    with stored_twice(
        tmp_path_factory.mktemp("both"), {"cin_a": made[:7], "cin_b": made[3:]}
    ) as opened:
        yield opened


@pytest.fixture
def as_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that waits for each statement and picks its indexes itself (`Dialect`)."""

    page = Compiler.page

    def readable(compiler: Compiler, *walked: Any, whole: bool) -> Statement:
        """SQLite has no statements in brackets."""
        told = page(compiler, *walked, whole=whole)
        walks = told.sql.replace("((SELECT", "(SELECT * FROM (SELECT", 1)
        return Statement(walks.replace(") UNION ALL (", ") UNION ALL SELECT * FROM ("), told.params)

    monkeypatch.setattr(SqliteDialect, "waits", True)
    monkeypatch.setattr(SqliteDialect, "steers", False)
    monkeypatch.setattr(Compiler, "page", readable)


SEEN: dict[str, dict[str, Any]] = {
    "everything": {},
    "a window": {"window": TimeConstraint("at", instant_ns(MANY[1]), instant_ns(MANY[8]))},
    "some": {"resources": frozenset({"n0", "n2", "n3", "n5", "n9"})},
    "one mood": {"only": (CALM,)},
}
ASKED = ((), (condition("words", "gte", 2),), (condition("mood", "eq", "calm"), COMMON))


def assert_lists_alike(stores: Stores, seen: dict[str, Any]) -> None:
    """All pages of all lists, and what one in the middle says of the rest."""
    of_one, of_both = (("cin_a",), ("cin_a", "cin_b"))
    for accounts, name, down, asked in (
        *product((of_both,), ("at", "day", "words", None), (False, True), ASKED),
        *product((of_one,), ("at", "cost"), (True,), ASKED),
    ):
        scopes = tuple(scope(account, **seen) for account in accounts)
        plan = RecordsPlan(scopes, order(name, down=down), 2, asked)
        slow, fast = (walk(store, plan) for store in stores)
        assert fast == slow, plan
        told: list[RowPage] = []
        for store in stores:
            with store.snapshot() as snapshot:
                told.append(snapshot.page(replace(plan, after=slow[len(slow) // 3])))
        assert told[1] == told[0], plan


@pytest.mark.parametrize("seen", SEEN)
def test_lists_are_those_of_the_oracle(
    stores: Stores, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FEW", 2)
    assert_lists_alike(stores, SEEN[seen])


@pytest.mark.parametrize("seen", SEEN)
def test_single_records_and_what_stands_beside_them_are_those_of_the_oracle(
    stores: Stores, seen: str, request: pytest.FixtureRequest
) -> None:
    scopes = tuple(scope(account, **SEEN[seen]) for account in ("cin_a", "cin_b"))
    keys = ("n0", "n2", "n3", "n6", "n9")
    asks = [methodcaller("record", RecordPlan(scopes, key)) for key in keys]
    asks.append(methodcaller("records", [KeysPlan(each, keys) for each in scopes]))
    for field, limit in product(("mood", "words", "title", None), (1, 2)):
        parents = ("calm", "3", "1", "none", "n2")
        for each, by in product(scopes, ("at", None)):
            plan = ChildrenPlan(each, field, parents, order(by), limit)
            asks.append(methodcaller("children", plan))
    with stores[0].snapshot() as snapshot:
        placed = snapshot.page(RecordsPlan((scope(),), order("at"), 50)).rows
    for each, row in product(scopes, placed):
        plan = NeighboursPlan(each, CALM, order("at"), row.position)
        asks.append(methodcaller("neighbours", plan))
    assert_same(stores, asks)
    request.getfixturevalue("as_elsewhere")
    assert_same(stores, asks)


@pytest.mark.usefixtures("as_elsewhere")
@pytest.mark.parametrize("seen", SEEN)
def test_lists_are_the_same_where_a_statement_costs_more_than_lines(
    stores: Stores, seen: str
) -> None:
    assert_lists_alike(stores, SEEN[seen])
