"""What an aggregate costs depends on what it sees."""

from __future__ import annotations

from pathlib import Path

from personal_server.domain.criteria import Grouping, Metric
from personal_server.domain.grant import TimeConstraint
from personal_server.domain.values import COMPARED_CODE_POINTS, ValueKind, instant_ns
from personal_server.enforcement.plans import AggregatePlan
from tests.storage.sqlite.work import Work, counted_store, work_of
from tests.storage.worlds import note, scope, write


def test_a_hidden_string_that_is_long_costs_nothing(tmp_path: Path) -> None:
    since = TimeConstraint("at", instant_ns("2026-01-01T00:00:00Z"))
    by_mood = (Grouping("mood", ValueKind.STRING),)
    plan = AggregatePlan((scope(window=since),), Metric.COUNT, None, None, groupings=by_mood)
    works: list[Work] = []
    for length in (1, COMPARED_CODE_POINTS):
        with counted_store(tmp_path / str(length)) as (store, counters):
            hidden = [note(f"h{n}", "2025-12-01T00:00:00Z", mood="m" * length) for n in range(3)]
            write(store, "cin_a", [*hidden, note("n1", mood="a"), note("n2", mood="b")])
            work, found = work_of(store, counters, lambda snapshot: snapshot.aggregate(plan))
            assert [group.count for group in found.groups] == [1, 1]  # type: ignore[attr-defined]
            works.append(work)
    assert works[0].steps == works[1].steps
