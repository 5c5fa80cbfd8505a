"""Groups of time of records of which some are whole days: these are the day that they are."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping, GroupOrder, WholeDays
from pdpp_kernel.values import COMPARED_CODE_POINTS, ValueKind, instant_ns
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.calendar import FINE_UNITS
from personal_server.storage.sql.reads import segments
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.plans_at_random import LONG, ZONES
from server.tests.storage.sql.agreement import Stores, assert_alike, stored_twice
from server.tests.storage.sql.reads.test_pages import DATED, WEST
from server.tests.storage.worlds import condition, connection, furnish, note, scope, write

# In the west the night before 2 January, a whole 2 January, and its morning and evening.
AT = {
    "before": ("2026-01-02T07:59:00Z", False),
    "day": ("2026-01-02T00:00:00Z", True),
    "morning": ("2026-01-02T18:00:00Z", False),
    "evening": ("2026-01-03T07:00:00Z", False),
    "next": ("2026-01-03T00:00:00Z", True),
    "summer": ("2026-07-03T00:00:00Z", True),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path_factory.mktemp("records")) as opened:
        opened.put_declaration(DATED, orjson.dumps(DATED.raw), 1)
        opened.add_connection(connection("cin_a"))
        notes = [note(key, at, pinned=whole) for key, (at, whole) in AT.items()]
        write(opened, "cin_a", notes, stream=DATED.streams["notes"])
        yield opened


def grouped(
    store: SqlRecordStore, granularity: Granularity, days: WholeDays | None
) -> dict[object, int]:
    """How many records each group has, by its only key."""
    by_time = Grouping("at", ValueKind.INSTANT, granularity, WEST, days=days)
    scopes = (scope(stream=DATED.streams["notes"]),)
    plan = AggregatePlan(scopes, Metric.COUNT, groupings=(by_time,), limit=99)
    with store.snapshot() as snapshot:
        return {group.keys[0]: group.count for group in snapshot.aggregate(plan).groups}


def midnight(text: str) -> int:
    """Of a day in the west."""
    offset = "-07:00" if text[5:7] == "07" else "-08:00"
    return instant_ns(f"{text}T00:00:00{offset}") or 0


@pytest.mark.parametrize("crowded", [30, 0])
def test_a_whole_day_is_of_its_day_in_any_zone(
    store: SqlRecordStore, crowded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CROWDED", crowded)
    whole = WholeDays("pinned", WEST)
    first, second, third, summer = (
        midnight(f"2026-{day}") for day in ("01-01", "01-02", "01-03", "07-03")
    )
    by_day = {first: 1, second: 3, third: 1, summer: 1}
    assert grouped(store, Granularity.DAY, whole) == by_day
    plain = {first: 2, second: 3, midnight("2026-07-02"): 1}
    assert grouped(store, Granularity.DAY, None) == plain
    months = {midnight("2026-01-01"): 5, midnight("2026-07-01"): 1}
    assert grouped(store, Granularity.MONTH, whole) == months


def test_whole_days_have_a_weekday_and_no_hour(store: SqlRecordStore) -> None:
    whole = WholeDays("pinned", WEST)
    # the second is a Friday, and so is the third of July
    assert grouped(store, Granularity.WEEKDAY, whole) == {3: 1, 4: 4, 5: 1}
    hours = {None: 3, 23: 2, 10: 1}
    assert grouped(store, Granularity.HOUR_OF_DAY, whole) == hours


EDGES = (
    "0001-01-01T00:00:00Z",
    "1677-09-21T00:12:43.145224192Z",
    "1899-05-01T12:00:00.25Z",
    "1969-12-31T23:59:59.999999999Z",
    "1970-01-01T00:00:00Z",
    "2025-12-31T23:30:00Z",
    "2026-03-08T06:59:59.999999999Z",
    "2026-03-08T07:00:00Z",
    "2026-03-29T00:59:59.999999999Z",
    "2026-03-29T01:00:00Z",
    "2026-04-04T14:59:59Z",
    "2026-04-04T15:00:00Z",
    "2026-10-25T00:00:00Z",
    "2026-10-25T00:59:59Z",
    "2026-10-25T01:00:00Z",
    "2026-10-25T01:59:59Z",
    "2026-11-01T05:30:00Z",
    "2026-11-01T06:30:00Z",
    "2262-04-11T23:47:16.854775807Z",
    "2500-07-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)
# what rows of days do not tell, so that lines are grouped
BY_LINES = (condition("id", "exists", value=True),)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """At the edges of all units, where clocks change, and far away; with days, numbers, lists."""
    moods = (None, "", "calm", LONG + "x", LONG + "y", "Calm")
    numbers = (0, -1, 7, 0.1, 0.30000000000000004, 12.34567, 1e300, -2.5)
    made: dict[str, list[Any]] = {"cin_a": [], "cin_b": []}
    for number, at in enumerate((*EDGES, *EDGES)):
        one = note(f"n{number:02}", at, mood=moods[number % 6], cost=numbers[number % 8])
        one |= {"words": number % 7 - 3, "title": f"T{number % 3}"}
        one |= {"day": at[:10]} if number % 4 else {}
        one |= {"pinned": number % 5 == 0} if number % 3 else {}
        one |= {"labels": [["a", "b"], ["b", "b", "c"], [], ["a"]][number % 4]}
        one |= {"place": ("Ulm", "Rom", None)[number % 3]} if number % 3 < 2 else {}
        made["cin_a" if number % 3 else "cin_b"].append(one)
    made["cin_b"].append(note("bare"))
    with stored_twice(tmp_path_factory.mktemp("both"), made) as opened:
        yield opened


def counts(
    *groupings: Grouping,
    metric: Metric = Metric.COUNT,
    measured: tuple[str | None, ValueKind | None] = (None, None),
) -> AggregatePlan:
    scopes = (scope("cin_a"), scope("cin_b"))
    return AggregatePlan(scopes, metric, *measured, BY_LINES, groupings, 400)


@pytest.mark.parametrize(
    ("crowded", "zones"),
    [(-1, ("UTC", "Europe/Rome", "Australia/Lord_Howe")), (1 << 40, (*ZONES, "Africa/Casablanca"))],
    ids=["ranges", "arithmetic"],
)
def test_buckets_by_ranges_and_by_arithmetic_are_those_of_each_record(
    stores: Stores, crowded: int, zones: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "CROWDED", crowded)
    by_time = [
        Grouping(field, kind, granularity, zone)
        for field, kind in (("at", ValueKind.INSTANT), ("day", ValueKind.DATE))
        for granularity in Granularity
        if field == "at" or granularity not in FINE_UNITS
        for zone in zones
    ]
    assert_alike(stores, (counts(each) for each in by_time))
    both = [each for each in by_time if each.time_zone == "Australia/Lord_Howe"][::3]
    assert_alike(stores, (counts(MOOD, each) for each in both))


MOOD = Grouping("mood", ValueKind.STRING)
LABELS = Grouping("labels", ValueKind.STRING, is_list=True)
BY_ACCOUNT = Grouping(None, ValueKind.STRING)
MEASURED = (
    (Metric.COUNT, (None, None)),
    (Metric.COUNT_DISTINCT, ("mood", ValueKind.STRING)),
    (Metric.COUNT_DISTINCT, ("cost", ValueKind.NUMBER)),
    (Metric.MIN, ("at", ValueKind.INSTANT)),
    (Metric.MAX, ("day", ValueKind.DATE)),
    (Metric.MAX, ("cost", ValueKind.NUMBER)),
    (Metric.SUM, ("cost", ValueKind.NUMBER)),
    (Metric.AVG, ("words", ValueKind.INTEGER)),
    (Metric.MEDIAN, ("cost", ValueKind.NUMBER)),
    (Metric.P10, ("words", ValueKind.INTEGER)),
    (Metric.P95, ("words", ValueKind.INTEGER)),
)


@pytest.mark.parametrize(
    "groupings",
    [
        (),
        (MOOD,),
        (replace(MOOD, label_field="title", mark_field="place"),),
        (Grouping("place", ValueKind.STRING, label_field="mood"),),
        (LABELS,),
        (replace(LABELS, label_field="title"),),
        (LABELS, MOOD),
        (BY_ACCOUNT,),
        (BY_ACCOUNT, MOOD),
        (Grouping("at", ValueKind.INSTANT),),
        (Grouping("day", ValueKind.DATE), BY_ACCOUNT),
        (Grouping("pinned", ValueKind.BOOLEAN), LABELS),
        (Grouping("words", ValueKind.INTEGER, bin_width=Decimal(3)),),
        (Grouping("words", ValueKind.INTEGER, bin_width=Decimal(0)),),
        (Grouping("cost", ValueKind.NUMBER, bin_width=Decimal("0.3")),),
        (Grouping("title", ValueKind.STRING), Grouping("at", ValueKind.INSTANT, Granularity.YEAR)),
    ],
    ids=lambda each: " ".join(str(g.field) for g in each) or "all",
)
def test_every_figure_of_groups_is_that_of_their_records(
    stores: Stores, groupings: tuple[Grouping, ...]
) -> None:
    plans = [counts(*groupings, metric=m, measured=each) for m, each in MEASURED]
    assert_alike(stores, plans)
    if groupings:
        assert_alike(stores, [replace(plan, limit=2) for plan in plans[::3]])
        by = [replace(plans[n], sort=sort) for n in (0, 6) for sort in GroupOrder]
        assert_alike(stores, by)


@pytest.mark.parametrize(
    ("field", "granularity", "most"),
    [
        (field, granularity, most)
        for granularity, most in (
            (Granularity.DAY, 30 * 10),
            (Granularity.WEEK, 30 * 2),
            (Granularity.MONTH, 30),
            (Granularity.QUARTER, 30),
            (Granularity.YEAR, 30),
            (Granularity.HOUR, None),
            (Granularity.WEEKDAY, None),
        )
        for field in ("at", "day")
        if field == "at" or granularity not in FINE_UNITS
    ],
)
def test_crowded_buckets_are_ranges_of_the_index(
    granularity: Granularity, most: int | None, field: str, tmp_path: Path
) -> None:
    """Of ten days: how many records make a range for each bucket shorter."""
    with sqlite_store(tmp_path) as few:
        furnish(few, "cin_a")
        days = ("2026-05-04", "2026-05-12", "2026-05-13")  # a Monday, and the next week
        write(few, "cin_a", [note(day, f"{day}T12:00:00Z", day=day) for day in days])
        kind = ValueKind.INSTANT if field == "at" else ValueKind.DATE
        with few.snapshot() as snapshot:
            [scoped] = snapshot.places([scope()])
            where = scoped.visible()

            def parts(count: int) -> int:
                grouping = Grouping(field, kind, granularity)
                return len(list(segments.segments(snapshot, scoped, where, count, [grouping])))

            # one more is of what has no time
            assert parts(0) == parts(most or 0) == 2
            buckets = {Granularity.DAY: 3, Granularity.WEEK: 2}.get(granularity, 1)
            assert parts(most + 1 if most else 9999) == 1 + buckets


@pytest.mark.parametrize(
    ("field", "kind", "found", "asked"),
    [
        ("mood", ValueKind.STRING, ["m" * (COMPARED_CODE_POINTS - 1)], ["column"]),
        ("mood", ValueKind.STRING, ["a", "m" * COMPARED_CODE_POINTS], ["column", "whole"]),
        ("words", ValueKind.INTEGER, ["m" * COMPARED_CODE_POINTS], ["column"]),
        ("body", ValueKind.STRING, ["m" * COMPARED_CODE_POINTS], ["text"]),
        ("mood", ValueKind.INTEGER, [7], ["text"]),
    ],
)
def test_whole_strings_are_looked_for_where_a_column_cuts_one(
    stores: Stores, field: str, kind: ValueKind, found: list[Any], asked: list[str]
) -> None:
    with stores[1].snapshot() as snapshot:
        [scoped] = snapshot.places([scope()])
        compiler, statements = scoped.compiler, list[str]()

        def ask(sql: str) -> list[tuple[Any, ...]]:
            statements.append(sql)
            return [(value, 1) for value in found]

        assert segments.whole_lines(scoped, field, kind, ask) == [(value, 1) for value in found]
        column = compiler.layout.column(field)
        spelled = {compiler.in_text(field, kind): "text"}
        if column is not None:
            spelled |= {f"r.{column.name}": "column", compiler.whole_string(column): "whole"}
        assert [spelled[sql] for sql in statements] == asked
