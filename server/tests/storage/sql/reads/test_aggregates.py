"""What an aggregate costs depends on what it sees."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.values import COMPARED_CODE_POINTS, ValueKind, instant_ns
from personal_server.domain.grant import TimeConstraint
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.sql.source_tables import all_sources
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.watched_reads import statements_read
from server.tests.storage.sqlite.work import Work, counted_store, work_of
from server.tests.storage.worlds import furnish, note, scope, write


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


def test_hidden_records_of_a_group_cost_nothing(tmp_path: Path) -> None:
    since = TimeConstraint("at", instant_ns("2026-01-01T00:00:00Z"))
    seen = Grouping("mood", ValueKind.STRING, label_field="title", mark_field="place")
    plan = AggregatePlan((scope(window=since),), Metric.COUNT, groupings=(seen,))
    works: list[Work] = []
    for mood in ("a", "z"):
        with counted_store(tmp_path / mood) as (store, counters):
            hidden = [note(f"h{n}", "2025-12-01T00:00:00Z", mood=mood) for n in range(30)]
            shown = [note("n1", mood="a", title="A"), note("n2", mood="b", title="B")]
            write(store, "cin_a", [*hidden, *shown])
            work, found = work_of(store, counters, lambda snapshot: snapshot.aggregate(plan))
            assert [group.labels for group in found.groups] == [("A",), ("B",)]  # type: ignore[attr-defined]
            works.append(work)
    assert works[0].steps == works[1].steps


def test_no_text_is_read_for_how_people_see_a_group(tmp_path: Path) -> None:
    seen = Grouping("mood", ValueKind.STRING, label_field="title", mark_field="place")
    window = TimeConstraint("at", instant_ns("2026-01-01T00:00:00Z"))
    plan = AggregatePlan((scope(window=window),), Metric.COUNT, groupings=(seen,))
    with closing(SqliteDatabase(tmp_path / "records.db")) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(
            store, "cin_a", [note("a", mood="m", title="Merry", place="bot"), note("b", mood="o")]
        )
        with database.write() as session:
            [source] = all_sources(session, "owner")
            session.run(f"DELETE FROM h{source.tables}")  # noqa: S608
        with store.snapshot() as snapshot:
            groups = snapshot.aggregate(plan).groups
    assert [group.labels for group in groups] == [("Merry (bot)",), (None,)]


def test_pairs_of_two_long_lists_end_in_time_and_one_list_may_be_as_long(tmp_path: Path) -> None:
    long = [str(number) for number in range(1_500)]
    labels, people = (Grouping(n, ValueKind.STRING, is_list=True) for n in ("labels", "people"))
    with closing(SqliteDatabase(tmp_path / "records.db")) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("a", labels=long, people=long)])
        alone = AggregatePlan((scope(),), Metric.COUNT, groupings=(labels,), limit=1)
        both = AggregatePlan((scope(),), Metric.COUNT, groupings=(labels, people), limit=1)
        with store.snapshot() as snapshot:
            assert snapshot.aggregate(alone).group_count == 1_500
            with pytest.raises(QueryTimeout) as refused:
                snapshot.aggregate(both)
    assert refused.value.members == {"retry_after_seconds": 1}


def test_labels_are_looked_for_of_the_groups_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of strings among these alone; of other values among all."""
    by_mood = Grouping("mood", ValueKind.STRING, label_field="title")
    by_words = Grouping("words", ValueKind.INTEGER, label_field="title")
    asked = statements_read(monkeypatch)
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        moods = ("calm", "calm", "glad", "dull")
        notes = [note(f"n{n}", mood=mood, words=n, title="T") for n, mood in enumerate(moods)]
        write(store, "cin_a", notes)
        for grouping, shown in ((by_mood, ('["calm"]',)), (by_words, ())):
            asked.clear()
            plan = AggregatePlan((scope(),), Metric.COUNT, groupings=(grouping,), limit=1)
            with store.snapshot() as snapshot:
                [group] = snapshot.aggregate(plan).groups
            assert group.labels == ("T",)
            assert asked[-1].params == shown
