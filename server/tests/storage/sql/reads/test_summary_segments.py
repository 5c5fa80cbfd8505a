"""Which reads are answered from rows of days and groups, and that these say what the lines say."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Condition, Grouping
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import AggregatePlan, RecordsPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.calendar import FINE_UNITS
from personal_server.storage.sql.reads.summary_segments import days_of
from server.tests.storage.plans_at_random import LONG, ZONES
from server.tests.storage.sql.agreement import Stores, assert_alike, stored_twice
from server.tests.storage.worlds import FILES, NOTES, condition, declaration, note, scope

COARSE = [each for each in Granularity if each not in FINE_UNITS]
MIDNIGHT = "2026-03-29T00:00:00Z"
NEXT = "2026-03-30T00:00:00Z"
# clocks change and months, quarters and years end at hours that are not those of UTC
TIMES = (
    "1969-12-30T23:59:59.999999999Z",
    "1969-12-31T00:00:00Z",
    "1969-12-31T23:59:59.999999999Z",
    "1970-01-01T00:00:00Z",
    "2025-12-31T22:59:59Z",
    "2025-12-31T23:00:00Z",
    "2026-01-01T04:59:59Z",
    "2026-03-28T23:59:59.999999999Z",
    MIDNIGHT,
    "2026-03-29T00:00:00.000000001Z",
    "2026-03-29T13:30:00Z",
    NEXT,
    "2026-03-31T21:59:59Z",
    "2026-03-31T22:00:00Z",
    "2026-04-01T03:00:00Z",
    "2026-10-25T00:30:00Z",
    "2026-10-31T13:00:00Z",
    "2027-02-28T12:00:00Z",
)
FAR = (
    "0001-01-01T00:00:00Z",
    "1677-09-21T00:12:43.145Z",
    "1677-09-21T00:12:43.145224192Z",
    "2026-03-29T13:30:00Z",
    "2262-04-11T23:47:16.854775807Z",
    "2262-04-11T23:47:16.855Z",
    "9999-12-31T23:59:59Z",
)


def declared() -> Any:
    """Notes with a second flag."""
    raw = copy.deepcopy(NOTES)
    raw["schema"]["properties"]["read"] = {"type": "boolean"}
    return declaration(streams=[raw, FILES])


DECLARED = declared()
STREAM = DECLARED.streams["notes"]
MOODS = (None, "calm", "glad", "calm", "")
TITLES = (None, "Calm", "Glad", "calm", "Calm")


def notes(times: tuple[str, ...], prefix: str) -> Iterator[dict[str, Any]]:
    """Of each time two, every third of them pinned, every third not."""
    for number, at in enumerate(time for time in times for _ in range(2)):
        made = note(f"{prefix}{number:02}", at, words=number - 9 if number % 4 else None)
        made |= {"mood": MOODS[number % 5], "title": TITLES[number % 5]}
        made |= {"place": "bot"} if number % 5 == 2 else {}
        made |= {"pinned": number % 3 == 1} if number % 3 else {}
        made |= {"read": number % 2 == 0, "cost": number / 4 + 0.01}
        yield made


def with_odd(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first has a number that is no whole ten-thousandth."""
    made[0]["cost"] = 12.34567
    return made


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    far = list(notes(FAR, "f"))
    far[0] |= {"mood": LONG + "x", "title": LONG}
    far[3] |= {"mood": LONG + "y", "title": "t" * 255}
    far[5] |= {"title": "ä" * 128}
    records = {"cin_a": with_odd(list(notes(TIMES, "n"))), "cin_b": far}
    with stored_twice(tmp_path_factory.mktemp("records"), records, DECLARED) as opened:
        yield opened


NEAR, FURTHER = scope(stream=STREAM), scope("cin_b", stream=STREAM)


def within(since: str | int | None, until: str | int | None, seen: Scope = NEAR) -> Scope:
    first, last = (instant_ns(end) if isinstance(end, str) else end for end in (since, until))
    if first is None and last is None:
        return seen
    return replace(seen, window=TimeConstraint("at", first, last))


def asked(field: str, operator: str, value: object, *further: object) -> Condition:
    return condition(field, operator, value, STREAM, further=further)


def timed(granularity: Granularity, zone: str = "UTC", field: str = "at") -> Grouping:
    kind = STREAM.properties[field].kind
    assert kind is not None
    return Grouping(field, kind, granularity, zone)


MOOD = Grouping("mood", ValueKind.STRING, label_field="title", mark_field="place")
BARE_MOOD = Grouping("mood", ValueKind.STRING)
PINNED, READ = (Grouping(name, ValueKind.BOOLEAN) for name in ("pinned", "read"))
BY_ACCOUNT = Grouping(None, ValueKind.STRING)
MONTHS = timed(Granularity.MONTH)
DAYS = timed(Granularity.DAY)
WORDS, COST = ("words", ValueKind.INTEGER), ("cost", ValueKind.NUMBER)


def told(
    stores: Stores,
    seen: Scope = NEAR,
    conditions: tuple[Condition, ...] = (),
    groupings: tuple[Grouping, ...] = (),
    metric: Metric = Metric.COUNT,
    field: str | None = None,
) -> str:
    """What each segment is made of: rows of days (d), of groups (g), or lines (r); `-`: no rows."""
    with stores[1].snapshot() as snapshot:
        [scoped] = snapshot.places([seen])
        days = days_of(snapshot, scoped, conditions)
        if days is None:
            return "-"
        found = days.segments(groupings, metric, scoped.compiler.layout.column(field))
        return "-" if found is None else "".join(getattr(each, "letter", "r") for each in found)


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (NEAR, "d"),
        (replace(NEAR, resources=frozenset({"n00"})), "-"),
        (replace(NEAR, only=(asked("mood", "eq", "calm"),)), "-"),
        (replace(NEAR, window=TimeConstraint("day", 0, None)), "-"),
        (replace(NEAR, window=TimeConstraint("none", 0, None)), "-"),
        (within(MIDNIGHT, None), "d"),
        (within(None, MIDNIGHT), "d"),
        (within(MIDNIGHT, NEXT), "d"),
        (within("2026-03-29T13:30:00Z", None), "dr"),
        (within(None, "2026-03-29T13:30:00Z"), "dr"),
        (within("2026-03-28T13:30:00Z", "2026-03-30T13:30:00Z"), "drr"),
        (within("2026-03-28T13:30:00Z", "2026-03-29T13:30:00Z"), "-"),
        (within("2026-03-29T01:30:00Z", "2026-03-29T13:30:00Z"), "-"),
        (within("1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"), "d"),
        (within("1969-12-30T23:59:59Z", "1970-01-01T00:00:00Z"), "dr"),
        (within(LEAST, None), "dr"),
        (within(LEAST - 1, None), "-"),
        (within(None, MOST), "dr"),
        (within(None, MOST + 1), "-"),
    ],
)
def test_whole_days_come_from_rows_and_their_ends_from_lines(
    stores: Stores, seen: Scope, expected: str
) -> None:
    assert told(stores, seen) == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((asked("at", "gte", MIDNIGHT),), "d"),
        ((asked("at", "gt", MIDNIGHT),), "dr"),
        ((asked("at", "lt", MIDNIGHT),), "d"),
        ((asked("at", "lte", MIDNIGHT),), "dr"),
        ((asked("at", "lte", "2026-03-28T23:59:59.999999999Z"),), "d"),
        ((asked("at", "gt", "2026-03-28T23:59:59.999999999Z"),), "d"),
        ((asked("at", "eq", MIDNIGHT),), "-"),
        ((asked("at", "exists", True),), "-"),
        ((asked("at", "gte", MIDNIGHT), asked("at", "gte", NEXT)), "d"),
        ((asked("at", "gte", "2026-03-29T13:30:00Z"), asked("at", "gte", NEXT)), "d"),
        ((asked("at", "lt", "2026-03-30T13:30:00Z"), asked("at", "lt", NEXT)), "d"),
        ((asked("at", "gte", NEXT), asked("at", "lt", NEXT)), "-"),
        ((asked("day", "gte", "2026-03-29"),), "-"),
        ((asked("pinned", "eq", True),), "d"),
        ((asked("pinned", "in", True, False),), "d"),
        ((asked("pinned", "ne", True),), "-"),
        ((asked("pinned", "exists", True),), "-"),
        ((asked("pinned", "eq", True), asked("pinned", "eq", False)), "d"),
        ((asked("pinned", "eq", True), asked("read", "eq", False)), "-"),
        ((asked("read", "eq", True), asked("at", "gte", MIDNIGHT)), "d"),
        ((asked("mood", "eq", "calm"),), "-"),
        ((asked("words", "gte", 1),), "-"),
    ],
)
def test_rows_are_limited_by_time_and_one_flag(
    stores: Stores, conditions: tuple[Condition, ...], expected: str
) -> None:
    assert told(stores, NEAR, conditions) == expected
    with stores[0].snapshot() as slow, stores[1].snapshot() as fast:
        for seen in (NEAR, FURTHER):
            plan = RecordsPlan((seen,), conditions=conditions)
            assert fast.count(plan) == slow.count(plan)
            [scoped] = fast.places([seen])
            days = days_of(fast, scoped, conditions)
            assert days is None or days.count() == slow.count(plan)


@pytest.mark.parametrize(
    ("groupings", "expected"),
    [
        ((PINNED,), "d"),
        ((BY_ACCOUNT,), "d"),
        ((PINNED, BY_ACCOUNT), "d"),
        ((PINNED, READ), "-"),
        ((PINNED, DAYS), "dd"),  # what has no time stands apart
        ((READ, PINNED, DAYS), "-"),
        ((replace(PINNED, label_field="title"),), "-"),
        ((DAYS,), "dd"),
        ((MONTHS,), "dd"),
        ((timed(Granularity.WEEKDAY),), "dd"),
        # weeks that end within a day that has records: three Sundays
        ((timed(Granularity.WEEK, "Asia/Tokyo"),), "ddrrrrrr"),
        ((timed(Granularity.YEAR, "Europe/Rome"),), "ddrrrr"),  # two years likewise
        ((timed(Granularity.DAY, "Europe/Rome"),), "-"),
        ((timed(Granularity.WEEKDAY, "Europe/Rome"),), "-"),
        ((timed(Granularity.HOUR),), "-"),
        ((timed(Granularity.HOUR_OF_DAY),), "-"),
        ((timed(Granularity.DAY, "UTC", "day"),), "-"),
        ((BARE_MOOD,), "-"),
        ((MOOD,), "g"),
        ((MOOD, BY_ACCOUNT), "g"),
        ((BY_ACCOUNT, MOOD), "g"),
        ((MOOD, PINNED), "-"),
        ((replace(MOOD, mark_field=None),), "-"),
        ((replace(MOOD, field="place"),), "-"),
        ((Grouping("words", ValueKind.INTEGER),), "-"),
    ],
)
def test_rows_tell_groups_of_days_of_flags_and_of_strings_that_are_kept(
    stores: Stores, groupings: tuple[Grouping, ...], expected: str
) -> None:
    assert told(stores, groupings=groupings) == expected


def test_groups_of_strings_are_told_of_everything_alone(stores: Stores) -> None:
    assert told(stores, within(MIDNIGHT, None), groupings=(MOOD,)) == "-"
    assert told(stores, NEAR, (asked("pinned", "eq", True),), (MOOD,)) == "-"
    assert told(stores, NEAR, (asked("pinned", "eq", True),), (PINNED,)) == "d"
    assert told(stores, NEAR, (asked("pinned", "eq", True),), (READ,)) == "-"
    assert told(stores, within(MIDNIGHT, None), groupings=(MONTHS,)) == "d"
    assert told(stores, within(None, MIDNIGHT), groupings=(PINNED, DAYS)) == "d"


def test_days_that_rows_do_not_tell_are_left_to_lines(stores: Stores) -> None:
    """Of far instants no day is known."""
    assert told(stores, FURTHER) == "d"
    assert told(stores, FURTHER, groupings=(PINNED,)) == "d"
    assert told(stores, FURTHER, groupings=(DAYS,)) == "-"
    bounds = ("1700-01-01T00:00:00Z", "2200-01-01T00:00:00Z")
    assert told(stores, within(*bounds, FURTHER), groupings=(DAYS,)) == "d"
    assert told(stores, within(bounds[0], None, FURTHER), groupings=(MONTHS,)) == "-"
    assert told(stores, within(None, bounds[1], FURTHER), groupings=(MONTHS,)) == "-"


@pytest.mark.parametrize(
    ("metric", "field", "expected"),
    [
        (Metric.SUM, "words", "d"),
        (Metric.AVG, "words", "d"),
        (Metric.SUM, "none", "-"),
        (Metric.SUM, "day", "-"),  # it has a column, and no sum
        (Metric.MIN, "words", "-"),
        (Metric.MEDIAN, "words", "-"),
        (Metric.COUNT_DISTINCT, "mood", "-"),
        (Metric.SUM, "cost", "-"),  # one is no whole ten-thousandth
    ],
)
def test_rows_tell_counts_and_sums_that_are_exact(
    stores: Stores, metric: Metric, field: str, expected: str
) -> None:
    assert told(stores, metric=metric, field=field) == expected
    since = within("1969-12-31T00:00:00Z", None)
    later = "d" if field == "cost" else expected
    assert told(stores, since, metric=metric, field=field) == later


WINDOWS = (
    (None, None),
    (MIDNIGHT, NEXT),
    ("2026-03-28T13:30:00Z", "2026-03-31T22:00:00Z"),
    (None, "1969-12-31T12:00:00Z"),
    ("1969-12-30T23:59:59.999999999Z", None),
    ("2026-03-29T00:00:00.000000001Z", None),
    ("1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z"),
)
LIMITS = (
    (),
    (asked("pinned", "eq", True),),
    (asked("pinned", "in", True, False),),
    (asked("pinned", "eq", True), asked("pinned", "eq", False)),
    (asked("at", "gt", MIDNIGHT),),
    (asked("at", "lte", MIDNIGHT), asked("read", "eq", True)),
)
SIDES = (
    (),
    (PINNED,),
    (DAYS,),
    (timed(Granularity.MONTH, "Europe/Rome"),),
    (BY_ACCOUNT, timed(Granularity.WEEKDAY)),
    (PINNED, timed(Granularity.WEEK, "America/New_York")),
)


def plan_of(
    groupings: tuple[Grouping, ...],
    seen: tuple[Scope, ...] = (NEAR, FURTHER),
    conditions: tuple[Condition, ...] = (),
    metric: Metric = Metric.COUNT,
    measured: tuple[str | None, ValueKind | None] = (None, None),
) -> AggregatePlan:
    return AggregatePlan(seen, metric, *measured, conditions, groupings, 400)


def test_limited_figures_are_those_of_the_records(stores: Stores) -> None:
    shown = [(within(*ends), within(*ends, FURTHER)) for ends in WINDOWS]
    limited = list(product(shown, LIMITS))
    for number, (seen, met) in enumerate(limited):
        sides = (SIDES[number % 6], SIDES[(number + number // 6) % 6])
        assert_alike(stores, (plan_of(each, seen, met) for each in dict.fromkeys(sides)))


def test_figures_of_each_bucket_are_those_of_the_records(stores: Stores) -> None:
    for granularity, zone in product(COARSE, ZONES):
        by_time = timed(granularity, zone)
        assert_alike(
            stores,
            [
                plan_of((by_time,), (NEAR,)),
                plan_of((by_time,), (within(*WINDOWS[-1], FURTHER),), (), Metric.SUM, WORDS),
                plan_of((PINNED, by_time), (within(MIDNIGHT, None),), (), Metric.AVG, COST),
            ],
        )


def test_groups_and_how_people_see_them_are_those_of_the_records(stores: Stores) -> None:
    bare = [(BARE_MOOD,), (replace(MOOD, mark_field=None),), (MOOD, PINNED), (MOOD, DAYS)]
    for groupings in ((MOOD,), (MOOD, BY_ACCOUNT), *bare):
        for seen in ((NEAR,), (FURTHER,), (NEAR, FURTHER)):
            assert_alike(
                stores,
                [
                    plan_of(groupings, seen),
                    plan_of(groupings, seen, (), Metric.SUM, WORDS),
                    plan_of(groupings, seen, (), Metric.AVG, COST),
                ],
            )


def test_a_stretch_of_days_is_in_the_units_of_its_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Records whose time is a day, not an instant, and that have no flag."""
    raw = copy.deepcopy(NOTES)
    raw["consent_time_field"] = "day"
    del raw["schema"]["properties"]["pinned"]
    raw["query"]["aggregations"]["group_by"].remove("pinned")
    dated = declaration(streams=[raw, FILES])
    stream = dated.streams["notes"]
    days = ("1969-12-30", "1969-12-31", "1970-01-01", "2026-03-29", "2026-03-30", "2026-04-01")
    made = [note(f"n{n}{m}", day=day, words=n) for n, day in enumerate(days) for m in range(2)]
    made.append(note("none", words=9))
    seen = scope(stream=stream)
    met = [
        (),
        *((condition("day", op, "2026-03-30", stream),) for op in ("gte", "gt", "lt", "lte", "eq")),
    ]
    windows = [None, TimeConstraint("day", 1, None), TimeConstraint("day", None, 2)]
    windows += [TimeConstraint("day", -DAY_NANOSECONDS, DAY_NANOSECONDS)]
    windows += [TimeConstraint("day", -DAY_NANOSECONDS - 1, DAY_NANOSECONDS + 1)]
    with stored_twice(tmp_path_factory.mktemp("days"), {"cin_a": made}, dated) as stores:
        for limits, window in product(met, windows):
            limited = replace(seen, window=window)
            if window is None:
                is_exact = bool(limits) and limits[0].operator is Operator.EQ
                assert told(stores, limited, limits) == ("-" if is_exact else "d")
            for zone in ("UTC", "America/New_York"):
                by_day = [replace(timed(g, zone), field="day", kind=ValueKind.DATE) for g in COARSE]
                assert_alike(stores, (plan_of((by,), (limited,), limits) for by in by_day))
        for by in (timed(Granularity.DAY, zone, "day") for zone in ZONES):
            assert told(stores, seen, (), (by,)) == "dd"
