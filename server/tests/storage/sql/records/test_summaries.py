"""What summaries say is what their lines say, and is read in their place where that is exact."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.care.integrity import IntegrityChecks
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.records import copy_slices, rebuilds, writes
from personal_server.storage.sql.records.summaries import summaries_are_sound
from personal_server.storage.sql.source_tables import all_sources
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.conftest import BY_DATABASE, Opened
from server.tests.storage.plans_at_random import CONNECTIONS, ZONES
from server.tests.storage.released.directory import NOTEBOOK, released_names, unpack
from server.tests.storage.sql.test_store import A_THIRD, AT_RANDOM, plain, write_at_random
from server.tests.storage.sqlite.work import Work, counted_store, work_of
from server.tests.storage.worlds import (
    FILES,
    NOTES,
    NOTES_STREAM,
    condition,
    connection,
    declaration,
    furnish,
    note,
    scope,
    write,
)
from tests.oracle.memory import MemoryStore

MONTHS = Grouping("at", ValueKind.INSTANT, Granularity.MONTH)
PINNED = Grouping("pinned", ValueKind.BOOLEAN)
MOODS = Grouping("mood", ValueKind.STRING, label_field="title", mark_field="place")
BARE_MOODS = Grouping("mood", ValueKind.STRING)
BY_CONNECTION = Grouping(None, ValueKind.STRING)


def are_sound(store: SqlRecordStore) -> bool:
    with store.snapshot() as snapshot:
        return all(
            summaries_are_sound(snapshot.session, source.layout, source.tables)
            for source in all_sources(snapshot.session, "owner")
        )


def rows(store: SqlRecordStore) -> list[Any]:
    with store.snapshot() as snapshot:
        [source] = all_sources(snapshot.session, "owner")
        table = f"d{source.tables}"
        return snapshot.session.rows(f"SELECT day, value, n FROM {table} ORDER BY 1, 2, 3")  # noqa: S608


@BY_DATABASE
@settings(AT_RANDOM, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_summaries_follow_every_write(seed: int, opened: Opened) -> None:
    random = Random(seed)
    with (
        tempfile.TemporaryDirectory() as directory,
        opened(Path(directory)) as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(writes, "FLUSHED_AT", random.choice((1, 2, 100)))
        stores: list[RecordStore] = [MemoryStore(), store]
        for each in stores:
            furnish(each, *CONNECTIONS)
        for clock in range(1, 12):
            write_at_random(random, stores, clock * 1_000)
            while store.rebuild_slice():
                pass
            assert are_sound(store)


def crowded(random: Random) -> list[dict[str, Any]]:
    """Notes at any minute of a year, more of them where clocks change and years end."""
    turns = [datetime.fromisoformat(f"{day}T00:00Z") for day in ("2026-03-29", "2026-10-25")]
    turns.append(datetime(2025, 12, 31, tzinfo=UTC))
    found: list[dict[str, Any]] = []
    for number in range(60):
        start, minutes = random.choice(turns), 4_000 if random.random() < 0.7 else 500_000
        at = start + timedelta(minutes=random.randrange(minutes))
        made = note(f"n{number}", f"{at:%Y-%m-%dT%H:%M:%SZ}", words=random.choice((None, 3, -2)))
        if random.random() < 0.8:
            made["pinned"] = random.random() < 0.5
        made["mood"] = random.choice((None, "", "=", "calm", "glad", ">", "=="))
        made["title"] = random.choice((None, "", "Calm", "Glad " * random.choice((1, 90))))
        made["place"] = random.choice(("bot", "bot", "person"))
        made["cost"] = random.choice((1.5, 0.1, 12.34567 if random.random() < 0.1 else 2))
        found.append(made)
    return found


def plan_at_random(random: Random) -> AggregatePlan:
    instants = sorted(
        instant_ns(f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}T{clock}Z") or 0
        for clock in (random.choice(("00:00:00", "13:30:00")), "22:15:00.5")
    )
    window = None if random.random() < 0.4 else TimeConstraint("at", instants[0], instants[1])
    coarse = [each for each in Granularity if each.value not in ("minute", "hour", "hour_of_day")]
    timed = replace(MONTHS, granularity=random.choice(coarse), time_zone=random.choice(ZONES))
    sides = ((), (timed,), (PINNED,), (PINNED, timed), (MOODS,), (BARE_MOODS,))
    groupings = random.choice((*sides, (MOODS, BY_CONNECTION), (MOODS, PINNED)))
    metric = random.choice((Metric.COUNT, Metric.SUM, Metric.AVG))
    field, kind = random.choice((("words", ValueKind.INTEGER), ("cost", ValueKind.NUMBER)))
    asked = random.choice(
        (
            (),
            (condition("pinned", "eq", random.random() < 0.5),),
            (condition("at", random.choice(("gte", "gt", "lt", "lte")), "2026-03-29T01:30:00Z"),),
        )
    )
    measured = (None, None) if metric is Metric.COUNT else (field, kind)
    scopes = (scope(window=window),)
    return AggregatePlan(scopes, metric, *measured, asked, groupings, random.choice((3, 400)))


@BY_DATABASE
@A_THIRD  # six examples, and twelve with `long`: they are other plans over the same year
@settings(AT_RANDOM, max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_figures_of_summaries_are_those_of_records(seed: int, third: int, opened: Opened) -> None:
    del third
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as store:
        oracle, notes = MemoryStore(), crowded(random)
        for each in (oracle, store):
            furnish(each, "cin_a")
            write(each, "cin_a", notes)
        with oracle.snapshot() as slow, store.snapshot() as fast:
            for _ in range(25):
                plan = plan_at_random(random)
                assert plain(fast.aggregate(plan)) == plain(slow.aggregate(plan)), plan


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase(tmp_path / "records.db")) as found:
        yield found


@pytest.fixture
def spread(database: SqliteDatabase, tmp_path: Path) -> SqlRecordStore:
    """Three notes, of two months."""
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnish(store, "cin_a")
    notes = [
        note("a", "2026-01-05T10:00:00Z", pinned=True, words=4, mood="calm", title="Calm"),
        note("b", "2026-01-05T11:00:00Z", pinned=False, words=5, mood="glad", place="bot"),
        note("c", "2026-02-01T00:00:00Z", words=6),
    ]
    write(store, "cin_a", notes)
    return store


@pytest.mark.parametrize(
    "plan",
    [
        AggregatePlan((scope(),), Metric.COUNT, groupings=(MONTHS,)),
        AggregatePlan((scope(),), Metric.SUM, "words", ValueKind.INTEGER),
        AggregatePlan((scope(),), Metric.AVG, "words", ValueKind.INTEGER, groupings=(MONTHS,)),
        AggregatePlan((scope(),), Metric.COUNT, groupings=(PINNED,)),
        AggregatePlan((scope(),), Metric.COUNT, groupings=(MOODS,)),
        AggregatePlan((scope(),), Metric.COUNT, groupings=(MOODS, BY_CONNECTION)),
        AggregatePlan((scope(),), Metric.AVG, "words", ValueKind.INTEGER, groupings=(MOODS,)),
        AggregatePlan((scope(),), Metric.COUNT, conditions=(condition("pinned", "eq", True),)),
        AggregatePlan((scope(window=TimeConstraint("at", 0, 2**62)),), Metric.COUNT),
    ],
)
def test_where_summaries_can_tell_no_line_is_read(
    plan: AggregatePlan, spread: SqlRecordStore, database: SqliteDatabase
) -> None:
    with spread.snapshot() as snapshot:
        told = snapshot.aggregate(plan)
    with database.write() as session:
        [source] = all_sources(session, "owner")
        session.run(f"DELETE FROM r{source.tables}")  # noqa: S608
    with spread.snapshot() as snapshot:
        assert snapshot.aggregate(plan) == told


def test_nothing_stays_of_the_day_of_a_record_that_is_gone(spread: SqlRecordStore) -> None:
    january, february = 20_458, 20_485
    assert rows(spread)[:3] == [(january, 0, 1), (january, 0, 2), (january, 1, 1)]
    write(spread, "cin_a", ["a", "b"])
    assert rows(spread) == [(february, -1, 1), (february, 0, 1)]
    assert spread.delete_record("cin_a", "notes", "c", 5_000)
    assert rows(spread) == []


def test_nothing_stays_of_the_group_of_a_record_that_is_gone(spread: SqlRecordStore) -> None:
    def groups() -> list[Any]:
        with spread.snapshot() as snapshot:
            [source] = all_sources(snapshot.session, "owner")
            columns = "value, label, mark, n"
            return snapshot.session.rows(f"SELECT {columns} FROM g{source.tables} ORDER BY 1")  # noqa: S608

    assert groups() == [("", "", "", 1), ("=calm", "=Calm", "", 1), ("=glad", "", "=bot", 1)]
    write(spread, "cin_a", [note("b", mood="calm", title="Calm"), "c"])
    assert groups() == [("=calm", "=Calm", "", 2)]


def test_a_record_whose_line_is_damaged_is_removed(
    spread: SqlRecordStore, database: SqliteDatabase
) -> None:
    mood = layout_of(NOTES_STREAM).by_field["mood"].name
    with database.write() as session:
        [source] = all_sources(session, "owner")
        no_text = "CAST(x'ff' AS TEXT)"
        session.run(f"UPDATE r{source.tables} SET {mood} = {no_text} WHERE k = 'a'")  # noqa: S608
    assert not are_sound(spread)
    assert spread.delete_record("cin_a", "notes", "a", 5_000)
    write(spread, "cin_a", ["b", "c"])
    with spread.snapshot() as snapshot:
        left = snapshot.session.rows(f"SELECT value, n FROM g{source.tables}")  # noqa: S608
    # what it held before is not known any more
    assert left == [("=calm", 1)]


def test_groups_whose_label_is_hidden_are_read_by_their_lines(tmp_path: Path) -> None:
    plan = AggregatePlan((scope(),), Metric.COUNT, groupings=(BARE_MOODS,))
    works: list[Work] = []
    for titles in (1, 30):
        with counted_store(tmp_path / str(titles)) as (store, counters):
            notes = [note(f"n{n:02}", mood="calm", title=f"t{n % titles:02}") for n in range(30)]
            write(store, "cin_a", notes)
            works.append(work_of(store, counters, lambda snapshot: snapshot.aggregate(plan))[0])
    assert works[0].steps == works[1].steps


@pytest.mark.parametrize(
    ("table", "where"), [("d", "day = 20458"), ("g", "value = '=calm'")], ids=["days", "groups"]
)
def test_summaries_that_differ_from_their_lines_are_found_and_made_anew(
    spread: SqlRecordStore, database: SqliteDatabase, tmp_path: Path, table: str, where: str
) -> None:
    checks = IntegrityChecks(database, "owner", tmp_path / "blobs")

    def differ() -> bool:
        found = checks.stream("cin_a", "notes", lambda _, __: None, lambda _: None)
        return found.values_differ

    assert not differ()
    with database.write() as session:
        [source] = all_sources(session, "owner")
        session.run(f"UPDATE {table}{source.tables} SET n = n + 1 WHERE {where}")  # noqa: S608
    assert differ()
    checks.make_anew("cin_a", "notes")
    while spread.rebuild_slice():
        pass
    assert not differ()


@BY_DATABASE
def test_a_stream_without_a_column_is_counted(opened: Opened, tmp_path: Path) -> None:
    words = {
        "name": "words",
        "semantics": "append_only",
        "display": {"label": "Words"},
        "primary_key": ["id"],
        "selection": {"fields": True, "resources": True},
        "schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "query": {"search": {"lexical_fields": ["id"]}},
    }
    declared = declaration("2", (NOTES, FILES, words))
    with opened(tmp_path) as store:
        store.put_declaration(declared, orjson.dumps(declared.raw), 1)
        store.add_connection(connection("cin_a"))
        write(store, "cin_a", [{"id": "rain"}], stream=declared.streams["words"])
        assert rows(store) == [(NO_DAY, 0, 1)]
        assert are_sound(store)


@pytest.mark.parametrize("name", released_names())
def test_a_file_of_before_is_answered_from_summaries_once_it_is_copied(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", -1)
    monkeypatch.setattr(copy_slices, "LINES_AT_ONCE", 2)
    monkeypatch.setattr(rebuilds, "SLICE_SECONDS", 0)
    plan = AggregatePlan((scope(NOTEBOOK),), Metric.COUNT, groupings=(MONTHS,), limit=100)
    with closing(SqliteDatabase(unpack(name, tmp_path) / "personal-server.sqlite3")) as database:
        with database.read() as session:
            [(subject_id,)] = session.rows("SELECT DISTINCT subject_id FROM sources")
            forms = {each.layout.form for each in all_sources(session, subject_id)}
        store = SqlRecordStore(database, subject_id, tmp_path / "data" / "blobs")
        store.plan_rebuilds()
        told = [counted(store, plan)]
        while store.rebuild_slice():
            told.append(counted(store, plan))
        assert (len(told) > 5) is (forms != {FORM})  # what is laid out as today is not copied
        assert told == [told[0]] * len(told)
        with store.snapshot() as snapshot:
            for source in all_sources(snapshot.session, subject_id):
                assert source.layout.by_day
                assert summaries_are_sound(snapshot.session, source.layout, source.tables)


def counted(store: SqlRecordStore, plan: AggregatePlan) -> Any:
    with store.snapshot() as snapshot:
        return snapshot.aggregate(plan)


# where records stand that have no day, in the tables of files that there are
NO_DAY, FAR_PAST, FAR_FUTURE = -(2**40), -(2**39), 2**39
FIRST_NS, LAST_NS = "1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z"


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T23:59:59.999999999Z", 0),
        ("1970-01-02T00:00:00Z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1969-12-31T00:00:00Z", -1),
        ("1969-12-30T23:59:59.999999999Z", -2),
        (FIRST_NS, -106_752),
        ("1677-09-21T00:12:43.145Z", FAR_PAST),
        ("0001-01-01T00:00:00Z", FAR_PAST),
        (LAST_NS, 106_751),
        ("2262-04-11T23:47:17Z", FAR_FUTURE),
        ("9999-12-31T23:59:59Z", FAR_FUTURE),
    ],
)
def test_a_record_is_counted_at_its_day(store: SqlRecordStore, at: str, day: int) -> None:
    write(store, "cin_a", [note("a", at, pinned=True), note("b", at, pinned=False)])
    assert rows(store) == [(day, 0, 1), (day, 0, 2), (day, 1, 1)]
    write(store, "cin_a", [note("a", at)])
    assert rows(store) == [(day, -1, 1), (day, 0, 1), (day, 0, 2)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("", "", "")),
        ({"mood": ""}, ("=", "", "")),
        ({"mood": "=", "title": "", "place": ">"}, ("==", "=", "=>")),
        ({"mood": "calm", "title": "t" * 255}, ("=calm", "=" + "t" * 255, "")),
        ({"mood": "calm", "title": "t" * 256}, ("=calm", ">", "")),
        ({"mood": "calm", "title": "ä" * 128}, ("=calm", ">", "")),
        ({"mood": "calm", "place": "ä" * 127}, ("=calm", "", "=" + "ä" * 127)),
        ({"mood": "m" * 300}, ("=" + "m" * 256, "", "")),
    ],
)
def test_a_group_is_told_by_what_labels_and_marks_it(
    store: SqlRecordStore, fields: dict[str, str], expected: tuple[str, ...]
) -> None:
    write(store, "cin_a", [note("a", **fields), note("b", **fields)])
    with store.snapshot() as snapshot:
        [source] = all_sources(snapshot.session, "owner")
        found = snapshot.session.rows(f"SELECT value, label, mark, n FROM g{source.tables}")  # noqa: S608
    assert found == [(*expected, 2)]
    assert are_sound(store)
