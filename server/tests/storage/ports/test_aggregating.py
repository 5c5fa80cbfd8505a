"""What every store does in aggregates."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.values import COMPARED_CODE_POINTS, ValueKind, instant_ns
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.plans_at_random import TIMES
from server.tests.storage.ports.asking import BOTH
from server.tests.storage.worlds import NOTES_STREAM, note, write

AT = Grouping("at", ValueKind.INSTANT)


def aggregate(store: RecordStore, metric: str, **more: Any) -> Any:
    field = more.pop("field", None)
    kind = NOTES_STREAM.properties[field].kind if field else None
    with store.snapshot() as snapshot:
        return snapshot.aggregate(AggregatePlan(BOTH, Metric(metric), field, kind, **more))


def test_sums_are_decimal(store: RecordStore) -> None:
    costs = [0.1, 0.2, 0.3, 1e-9, 12, -0.1, 1e15 + 0.5]
    write(store, "cin_a", [note(f"n{i}", cost=cost) for i, cost in enumerate(costs)])
    assert aggregate(store, "sum", field="cost").value == 1000000000000013.000000001
    assert aggregate(store, "sum", field="words").value == 0
    write(store, "cin_b", [note(f"n{i}", words=2**62) for i in range(3)])
    assert aggregate(store, "sum", field="words").value == float(3 * 2**62)


def test_extremes_are_the_stored_values(store: RecordStore) -> None:
    write(store, "cin_a", [note("n2", at="2026-01-01T01:00:00+01:00"), note("n3", at=TIMES[5])])
    write(store, "cin_b", [note("n1", at="2026-01-01T00:00:00.000Z")])
    assert aggregate(store, "min", field="at").value == "2026-01-01T00:00:00.000Z"
    assert aggregate(store, "max", field="at").value == TIMES[5]
    assert aggregate(store, "max", field="day").value is None


def test_groups_stand_by_count_then_key_the_null_group_last(store: RecordStore) -> None:
    moods = ["b", "b", "a", None, "c", None, "a"]
    write(store, "cin_a", [note(f"n{i}", mood=mood) for i, mood in enumerate(moods)])
    write(store, "cin_b", [note("n1", mood="c"), note("n2", mood="d")])
    found = aggregate(store, "count", groupings=(Grouping("mood", ValueKind.STRING),), limit=4)
    assert [(*g.keys, g.count) for g in found.groups] == [("a", 2), ("b", 2), ("c", 2), (None, 2)]
    assert (found.group_count, found.other_count, found.record_count) == (5, 1, 9)


def test_long_strings_that_begin_alike_are_several(store: RecordStore) -> None:
    beginning = "b" * COMPARED_CODE_POINTS
    moods = ["a", beginning, f"{beginning}1", f"{beginning}2", f"{beginning}2"]
    write(store, "cin_a", [note(f"n{i}", mood=mood) for i, mood in enumerate(moods)])
    write(store, "cin_b", [note("n1", mood=f"{beginning}1", words=3)])
    by_mood = (Grouping("mood", ValueKind.STRING),)
    found = aggregate(store, "count", groupings=by_mood)
    assert [(*g.keys, g.count) for g in found.groups] == [
        (f"{beginning}1", 2),
        (f"{beginning}2", 2),
        ("a", 1),
        (beginning, 1),
    ]
    summed = aggregate(store, "sum", field="words", groupings=by_mood)
    assert (f"{beginning}1", 3) in [(*g.keys, g.value) for g in summed.groups]
    assert aggregate(store, "count_distinct", field="mood").value == 4
    by_words = (Grouping("words", ValueKind.INTEGER),)
    distinct = aggregate(store, "count_distinct", field="mood", groupings=by_words)
    assert {group.keys[0]: group.value for group in distinct.groups} == {None: 4, 3: 1}
    numbers = aggregate(store, "count_distinct", field="words", groupings=by_mood)
    assert {group.keys[0]: group.value for group in numbers.groups}[f"{beginning}1"] == 1


def test_a_repeated_hour_is_two_buckets(store: RecordStore) -> None:
    instants = ["2026-10-25T00:10:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z"]
    write(store, "cin_a", [note(f"n{i}", at=at) for i, at in enumerate(instants)])
    by_hour = replace(AT, granularity=Granularity.HOUR, time_zone="Europe/Rome")
    found = aggregate(store, "count", groupings=(by_hour,))
    assert [(*g.keys, g.count) for g in found.groups] == [
        (instant_ns("2026-10-25T00:00:00Z"), 2),
        (instant_ns("2026-10-25T01:00:00Z"), 1),
    ]
    by_day = replace(AT, granularity=Granularity.DAY, time_zone="Europe/Rome")
    found = aggregate(store, "count", groupings=(by_day,))
    assert [(*g.keys, g.count) for g in found.groups] == [(instant_ns("2026-10-24T22:00:00Z"), 3)]


def test_the_newest_buckets_are_kept(store: RecordStore) -> None:
    write(
        store, "cin_a", [note(f"n{i}", at=f"2026-0{i}-02T00:00:00Z", words=i) for i in range(1, 7)]
    )
    by_month = replace(AT, granularity=Granularity.MONTH)
    found = aggregate(store, "sum", field="words", groupings=(by_month,), limit=2)
    assert [(*g.keys, g.value) for g in found.groups] == [
        (instant_ns("2026-05-01T00:00:00Z"), 5),
        (instant_ns("2026-06-01T00:00:00Z"), 6),
    ]
    assert (found.other_count, found.other_value, found.group_count) == (4, 10, 6)
