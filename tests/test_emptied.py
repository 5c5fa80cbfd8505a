"""A copy of an empty database that a test wrote to serves another one only as it was made."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.worlds import furnish, note, write
from tests.emptied import COPIED_SCHEMA, EmptySchema, looking_at
from tests.postgresql import empty_schema


def test_what_a_test_wrote_is_gone_and_its_tables_with_it(tmp_path: Path) -> None:
    with empty_schema() as (url, name):
        made = EmptySchema.of(url)
        database = PostgresDatabase(url, tmp_path, name)
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("n1", title="rain")])
        database.close()
        written = EmptySchema.of(url)
        assert (written.tables > made.tables, written.rows != made.rows) == (True, True)
        with looking_at(url) as session:
            assert made.restore(session)
        assert EmptySchema.of(url) == made


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {}.store ADD COLUMN more text",
        "ALTER TABLE {}.store DROP COLUMN value",
        "CREATE INDEX more ON {}.store (value)",
        "CREATE FUNCTION {}.more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP TABLE {}.store CASCADE",
        "CREATE SCHEMA beside_{}",
    ],
)
def test_what_was_altered_is_not_taken_again(change: str) -> None:
    with empty_schema() as (url, _):
        made = EmptySchema.of(url)
        with psycopg.connect(url) as session:
            session.execute(change.format(COPIED_SCHEMA).encode())
        with looking_at(url) as session:
            assert not made.restore(session)


def test_a_copy_that_was_emptied_is_used_again() -> None:
    with empty_schema() as (first, _):
        pass
    with empty_schema() as (second, _), empty_schema() as (third, _):
        assert second == first
        assert third != first
