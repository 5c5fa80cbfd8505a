"""A record whose stored bytes changed is never read as if it were true, and a write heals it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.record import DamagedRow
from personal_server.domain.stored import WriteOutcome
from personal_server.enforcement.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    FieldWindowPlan,
    RecordPlan,
    RecordsPlan,
)
from personal_server.enforcement.rows import Position
from personal_server.storage.sql.records import rebuilds
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.ports.asking import search
from server.tests.storage.worlds import condition, furnish, note, order, scope, write

KEYS = [f"n{i}" for i in range(8)]
HURT = "n3"
# `#` is the number of the tables, `@` the line of the record
BY_TIME = order("at", down=True)
LETTERS = "UPDATE h# SET data = replace(data, 'rain', 'gold') WHERE id = @"
NO_TEXT = "UPDATE h# SET data = CAST(x'7b2261223aff7d' AS TEXT) WHERE id = @"
NO_JSON = "UPDATE h# SET data = '{\"id\":' WHERE id = @"
NO_LINE = "DELETE FROM h# WHERE id = @"
ANOTHERS = (
    "UPDATE h# SET (sum, data) = (SELECT sum, data FROM h# JOIN r# USING (id) WHERE k = 'n4')"
    " WHERE id = @"
)
DATES = "UPDATE r# SET fc = '{' WHERE k = ?"
NO_DATES = "UPDATE r# SET fc = CAST(x'ff' AS TEXT) WHERE k = ?"
KEY = "UPDATE r# SET k = 'n3x' WHERE k = ?"
NO_KEY = "UPDATE r# SET k = CAST(CAST(k AS BLOB) || x'ff' AS TEXT) WHERE k = ?"
NAMED = [LETTERS, NO_TEXT, NO_JSON, NO_LINE]
UNNAMED = [ANOTHERS, DATES, NO_DATES, KEY, NO_KEY]
KEY_IS_SOUND = [*NAMED, ANOTHERS, DATES, NO_DATES]


class Hurt:
    """A store with notes, one of which can be damaged in its file."""

    def __init__(self, database: SqliteDatabase, store: SqlRecordStore) -> None:
        self.store = store
        self._database = database

    def damage(self, statement: str, key: str = HURT) -> None:
        with closing(apsw.Connection(str(self._database.path))) as driver:
            file: Any = driver  # the driver's own stub names a type that Python 3.11 lacks
            number = file.execute("SELECT tables FROM sources WHERE stream = 'notes'").get
            line = "(SELECT id FROM r# WHERE k = ?)"
            file.execute(statement.replace("@", line).replace("#", str(number)), (key,))

    def page(self, limit: int = 25, after: Position | None = None, **more: Any) -> Any:
        plan = RecordsPlan((scope(),), BY_TIME, limit, after=after, **more)
        with self.store.snapshot() as snapshot:
            return snapshot.page(plan), snapshot.damaged

    @property
    def is_noted(self) -> bool:
        self.store.look_at_damage()
        return self._database.damage.since_ns is not None


@pytest.fixture
def hurt(tmp_path: Path) -> Iterator[Hurt]:
    with closing(SqliteDatabase(tmp_path / "data" / "records.db")) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "data" / "blobs")
        furnish(store, "cin_a")
        upload, _ = store.receive_blob("cin_a", [b"a picture"], "image/png", 1, 100)
        reference = {"blob_id": upload.blob_id}
        notes = [
            note(
                key, f"2026-01-0{n + 1}T00:00:00Z", body=f"rain {key}", words=n, blob_ref=reference
            )
            for n, key in enumerate(KEYS)
        ]
        write(store, "cin_a", notes)
        write(store, "cin_a", [{**each, "mood": "calm"} for each in notes], now=3_000)
        yield Hurt(database, store)


def keys_of(page: Any) -> list[str]:
    return [placed.row.key for placed in page.rows]


OTHERS = [key for key in reversed(KEYS) if key != HURT]


@pytest.mark.parametrize("statement", [*NAMED, *UNNAMED])
def test_the_page_goes_on_without_it_and_says_so(hurt: Hurt, statement: str) -> None:
    hurt.damage(statement)
    page, damaged = hurt.page()
    assert keys_of(page) == OTHERS
    named = HURT if statement in NAMED else None
    assert damaged == (DamagedRow("cin_a", "notes", named),)
    assert hurt.is_noted


@pytest.mark.parametrize("statement", [NO_JSON, DATES])
def test_each_damaged_record_is_told_once(hurt: Hurt, statement: str) -> None:
    for key in (HURT, "n5"):
        hurt.damage(statement, key)
    plan = RecordsPlan((scope(),), BY_TIME, 25)
    with hurt.store.snapshot() as snapshot:
        for _ in range(2):
            assert len(snapshot.page(plan).rows) == len(KEYS) - 2
        assert len(snapshot.damaged) == 2


@pytest.mark.parametrize("statement", [*NAMED, *UNNAMED])
def test_pages_laid_end_to_end_are_the_list(hurt: Hurt, statement: str) -> None:
    hurt.damage(statement)
    for limit in (1, 2, 3):
        page, _ = hurt.page(limit)
        found = keys_of(page)
        while page.more:
            page, _ = hurt.page(limit, page.end or page.rows[-1].position)
            found += keys_of(page)
        assert found == OTHERS


@pytest.mark.parametrize("statement", KEY_IS_SOUND)
def test_every_other_read_goes_on(hurt: Hurt, statement: str) -> None:
    hurt.damage(statement)
    scopes = (scope(),)
    few = (scope(resources=frozenset(KEYS)),)
    at = scope().stream.properties["at"].kind
    assert at is not None
    with hurt.store.snapshot() as snapshot:
        assert snapshot.record(RecordPlan(scopes, HURT)) == ()
        assert snapshot.damaged
        assert snapshot.field_window(FieldWindowPlan(scopes, HURT, "body", 10)) == ()
    changed = ChangesPlan(scopes, None, 99, 0, 50)
    since = ChangesPlan(scopes, 8, 99, 8, 50)
    for plan in (changed, since):
        with hurt.store.snapshot() as snapshot:
            feed = snapshot.changes(plan)
            assert sorted(change.item.key for change in feed.items) == sorted(OTHERS)
            assert snapshot.damaged
    for asked in (scopes, few):
        matches = search(hurt.store, "rain", scopes=asked)
        assert set(OTHERS) <= {each.key for each in matches.candidates}
    exact = (condition("body", "eq", "rain n5"),)
    assert keys_of(hurt.page(conditions=exact)[0]) == ["n5"]
    with hurt.store.snapshot() as snapshot:
        by_time = Grouping("at", at)
        months = Grouping("at", at, Granularity.MONTH)
        for grouping in (by_time, months):
            plan = AggregatePlan(scopes, Metric.MIN, "at", at, groupings=(grouping,), limit=100)
            assert snapshot.aggregate(plan).record_count == 8
        assert snapshot.span(RecordsPlan(scopes, span_field="at")).total == 8
        assert [row.key for row in snapshot.export("cin_a", "notes")] == sorted(OTHERS)
        reference: Any = snapshot.record(RecordPlan(scopes, "n1"))[0].data["blob_ref"]
        assert {each.key for each in snapshot.blob(BlobPlan(scopes, reference["blob_id"]))} == set(
            OTHERS
        )


@pytest.mark.parametrize("statement", [LETTERS, NO_TEXT, NO_KEY])
def test_the_first_and_the_last_may_be_damaged_too(hurt: Hurt, statement: str) -> None:
    for key in ("n0", "n7"):
        hurt.damage(statement.replace("n3", key), key)
    with hurt.store.snapshot() as snapshot:
        found = snapshot.span(RecordsPlan((scope(),), span_field="at"))
    assert found.total == 8
    assert (str(found.earliest)[:10], str(found.latest)[:10]) == ("2026-01-01", "2026-01-08")


def test_a_figure_says_what_is_known_of_what_it_counts(hurt: Hurt) -> None:
    hurt.damage(LETTERS)
    whole, early = (
        RecordsPlan((scope(),)),
        RecordsPlan((scope(),), conditions=(condition("words", "lt", 2),)),
    )
    with hurt.store.snapshot() as snapshot:
        assert (snapshot.count(whole), snapshot.damaged) == (8, ())
    hurt.page()
    with hurt.store.snapshot() as snapshot:
        assert (snapshot.count(early), snapshot.damaged) == (2, ())
        assert snapshot.count(whole) == 8
        assert snapshot.damaged == (DamagedRow("cin_a", "notes", HURT),)


@pytest.mark.parametrize(
    ("statement", "same"), [(LETTERS, True), *((each, False) for each in KEY_IS_SOUND)]
)
def test_a_write_heals_it_and_followers_get_it(hurt: Hurt, statement: str, same: bool) -> None:
    with hurt.store.snapshot() as snapshot:
        before = snapshot.horizon
        record = snapshot.record(RecordPlan((scope(),), HURT))[0].data
    hurt.damage(statement)
    hurt.page()
    data = dict(record) if same else {**record, "body": "sun"}
    assert write(hurt.store, "cin_a", [data]) == (WriteOutcome.CHANGED,)
    page, damaged = hurt.page()
    assert (keys_of(page), damaged) == (list(reversed(KEYS)), ())
    with hurt.store.snapshot() as snapshot:
        plan = ChangesPlan((scope(),), before, snapshot.horizon, before, 50)
        (change,) = snapshot.changes(plan).items
        assert change.item.data == data  # type: ignore[union-attr]
    assert not hurt.is_noted
    assert write(hurt.store, "cin_a", [data]) == (WriteOutcome.UNCHANGED,)


@pytest.mark.parametrize("statement", KEY_IS_SOUND)
def test_it_can_be_deleted(hurt: Hurt, statement: str) -> None:
    with hurt.store.snapshot() as snapshot:
        before = snapshot.horizon
    hurt.damage(statement)
    assert hurt.store.delete_record("cin_a", "notes", HURT, 9)
    page, damaged = hurt.page()
    assert (keys_of(page), damaged) == (OTHERS, ())
    with hurt.store.snapshot() as snapshot:
        plan = ChangesPlan((scope(),), before, snapshot.horizon, before, 50)
        assert [change.item.key for change in snapshot.changes(plan).items] == [HURT]


@pytest.mark.parametrize("statement", [*NAMED, *UNNAMED])
def test_its_stream_can_be_erased_and_its_history_forgotten(hurt: Hurt, statement: str) -> None:
    hurt.damage(statement)
    hurt.store.prune_history(10**18)
    assert hurt.store.delete_stream("cin_a", "notes", 9) == 8
    assert keys_of(hurt.page()[0]) == []


@pytest.mark.parametrize("statement", [*NAMED, *UNNAMED])
def test_a_rebuild_neither_stops_at_it_nor_makes_it_true(
    hurt: Hurt, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", -1)
    monkeypatch.setattr("personal_server.storage.sql.declared_layouts.MOST_MEASURED", 0)
    hurt.damage(statement)
    hurt.store.plan_rebuilds()
    while hurt.store.rebuild_slice():
        pass
    page, damaged = hurt.page()
    assert (keys_of(page), len(damaged)) == (OTHERS, 1)
    assert len(search(hurt.store, "rain").candidates) == 7
