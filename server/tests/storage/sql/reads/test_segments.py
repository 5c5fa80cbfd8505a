"""Groups of time of records of which some are whole days: these are the day that they are."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping, WholeDays
from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.sql.reads import segments
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.reads.test_pages import DATED, WEST
from server.tests.storage.worlds import connection, note, scope, write

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
