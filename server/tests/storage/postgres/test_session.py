"""How often a read or a write waits for the database."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from personal_server.domain.search_words import parse_words
from personal_server.enforcement.plans import FieldWindowPlan, RecordPlan, RecordsPlan, SearchPlan
from personal_server.granting.reading_alarms import ReadingWatch
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.ports.test_disclosure_stores import FIRST, SECOND
from server.tests.storage.postgres.wire import Wire, wire
from server.tests.storage.worlds import condition, furnish, note, order, scope, write
from tests.postgresql import schema

A = scope("cin_a")
Store = tuple[SqlRecordStore, Wire]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened_store(tmp_path) as found:
        yield found


@contextmanager
def opened_store(tmp_path: Path) -> Generator[Store, None, None]:
    with opened_database(tmp_path) as (database, found):
        yield furnished(database, tmp_path), found


@contextmanager
def opened_database(tmp_path: Path) -> Generator[tuple[PostgresDatabase, Wire], None, None]:
    with (
        schema() as name,
        wire() as found,
        closing(PostgresDatabase(found.url, tmp_path, name)) as database,
    ):
        yield database, found


def furnished(database: PostgresDatabase, tmp_path: Path) -> SqlRecordStore:
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnish(store, "cin_a")
    write(store, "cin_a", [note("first")])
    return store


def _turns(store: Store, count: int, title: str) -> int:
    records, found = store
    found.taken()
    write(records, "cin_a", [note(f"n{number}", title=title) for number in range(count)])
    return len(found.taken())


@pytest.mark.parametrize("titles", [("rain",), ("rain", "sun")], ids=["new", "changed"])
def test_a_batch_waits_as_often_as_one_record(store: Store, titles: tuple[str, ...]) -> None:
    for title in titles[:-1]:
        _turns(store, 500, title)
    # further ones are looks for free places in time
    assert _turns(store, 500, titles[-1]) <= _turns(store, 1, "snow") + 15


Read = Callable[[SqlSnapshot], object]
LONG = (condition("words", "gte", 1),)
READS: dict[str, Read] = {
    "page": lambda s: s.page(RecordsPlan((A,), order("at"), 10)),
    "filter": lambda s: s.page(RecordsPlan((A,), order("at"), 1, LONG)),
    "record": lambda s: s.record(RecordPlan((A,), "first")),
    "window": lambda s: s.field_window(FieldWindowPlan((A,), "first", "body", 10)),
    "count": lambda s: s.count(RecordsPlan((A,), order(None), 10, LONG)),
    "span": lambda s: s.span(RecordsPlan((A,), span_field="at")),
    "word": lambda s: s.search(SearchPlan((A,), parse_words("first"), seconds_each=5.0)),
    "catalog": lambda s: (s.declarations(), s.connections(), s.stored_streams()),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_waits_twice_and_says_its_end(store: Store, name: str) -> None:
    (records, found), read = store, READS[name]
    with records.snapshot() as snapshot:
        known = read(snapshot)
    found.taken()
    with records.snapshot() as snapshot:
        assert read(snapshot) == known
    turns = found.taken()
    assert len(turns) <= 3
    assert b"READ ONLY" in turns[0]
    assert turns[-1].endswith(b"COMMIT\0")


def test_what_is_known_of_a_state_is_known_until_somebody_writes(store: Store) -> None:
    records, found = store
    with records.snapshot() as snapshot:
        assert snapshot.horizon == 1
    found.taken()
    with records.snapshot() as snapshot:
        assert snapshot.horizon == 1
    assert len(found.taken()) == 2
    write(records, "cin_a", [note("second")])
    with records.snapshot() as snapshot:
        assert snapshot.horizon == 2


def test_what_is_known_of_a_state_stays_known_when_a_read_is_logged(tmp_path: Path) -> None:
    with opened_database(tmp_path) as (database, found):
        records, log = furnished(database, tmp_path), SqlDisclosures(database, "owner")
        watch = ReadingWatch(SqlAuthorizationStore(database, "owner"), bytes)
        with records.snapshot() as snapshot:
            assert snapshot.horizon == 1
        for entry in (FIRST, SECOND):
            log.append_disclosures([entry])
            watch([entry])
        found.taken()
        with records.snapshot() as snapshot:
            assert snapshot.horizon == 1
        assert len(found.taken()) == 2
        assert [entry.disclosure_id for _, entry in log.disclosures(DisclosureQuery(9))] == [
            SECOND.disclosure_id,
            FIRST.disclosure_id,
        ]


@pytest.mark.parametrize("is_pooled", [False, True])
def test_statements_stay_prepared_unless_a_pooler_stands_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_pooled: bool
) -> None:
    if is_pooled:  # sessions with a pooler have other numbers than the server's
        monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda _: 1))
    with opened_store(tmp_path) as (records, found):
        found.taken()
        for _ in range(5):
            with records.snapshot() as snapshot:
                snapshot.record(RecordPlan((A,), "first"))
        is_prepared = any(b"_pg3_" in turn for turn in found.taken())
    assert is_prepared is not is_pooled
