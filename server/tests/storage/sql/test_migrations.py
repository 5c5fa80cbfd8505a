"""A database of every released version opens, and its tables become those of the row classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from personal_server.domain.disclosure import SERVED
from personal_server.settings import Settings
from personal_server.storage import authorization_rows as authorization
from personal_server.storage.feed_rows import FEED_ROWS
from personal_server.storage.notice_rows import NOTICE_ROWS
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from personal_server.storage.sql import fixed_tables
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.logs.disclosure_rows import DisclosureRow, DisclosureShareRow
from personal_server.storage.sql.migrations import (
    DatabaseTooNew,
    DatabaseTooOld,
    Step,
    tables_of,
)
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.storage.tables import StoredRow, StoredTable
from server.tests.app.whole import reopened
from server.tests.storage.released.directory import answers_of, asked, released_names, unpack
from tests.new_files import new_file


class Shape(NamedTuple):
    """What matters of a table: columns (name, type, nullable), its key, what is unique."""

    columns: frozenset[tuple[str, str, bool]]
    key: tuple[str, ...]
    unique: frozenset[tuple[str, ...]]


def row_classes() -> list[type[StoredRow]]:
    """Every row class that names a table."""
    records = [each for each in vars(fixed_tables).values() if _is_row(each)]
    kept_beside = [*FEED_ROWS, *NOTICE_ROWS, DisclosureRow, DisclosureShareRow]
    return [*records, *authorization.ROW_TYPES, *kept_beside]


def _is_row(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, StoredRow) and hasattr(found, "table")


def declared(table: StoredTable, session: Session) -> Shape:
    """The table that a row class says."""
    led = ["subject_id"] if table.by_subject else []
    columns = {("subject_id", "TEXT", False)} if led else set[tuple[str, str, bool]]()
    for each in table.columns:
        kind = session.dialect.column_type(each.kind)
        columns.add((each.name, kind, each.optional and not each.key))
    return Shape(
        frozenset(columns),
        (*led, *table.key),
        frozenset((*led, *together) for together in table.unique),
    )


def found(table: StoredTable, session: Session) -> Shape:
    """The table that is there."""
    lines = session.rows(
        "SELECT name, type, [notnull] OR pk, pk FROM pragma_table_info(?)", (str(table),)
    )
    keyed = sorted((place, name) for name, _, _, place in lines if place)
    unique = session.rows(
        "SELECT name FROM pragma_index_list(?) WHERE [unique] AND origin = 'u'", (str(table),)
    )
    return Shape(
        frozenset((name, kind, not full) for name, kind, full, _ in lines),
        tuple(name for _, name in keyed),
        frozenset(
            tuple(n for (n,) in session.rows("SELECT name FROM pragma_index_info(?)", index))
            for index in unique
        ),
    )


def differing(session: Session) -> list[str]:
    """Tables that are not as their row class says."""
    tables = [each.table for each in row_classes()]
    return [str(table) for table in tables if found(table, session) != declared(table, session)]


def layout_of_file(session: Session) -> Mapping[str, object]:
    """Tables and indexes, without those of single sources."""
    fixed = {str(each.table) for each in row_classes()}
    tables = {str(each.table): found(each.table, session) for each in row_classes()}
    indexes = session.rows("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index'")
    return tables | {
        name: tuple(session.rows("SELECT name FROM pragma_index_info(?)", (name,)))
        for name, table in indexes
        if table in fixed
    }


def test_the_steps_make_the_tables_of_the_row_classes(tmp_path: Path) -> None:
    assert len(row_classes()) > 30
    database = SqliteDatabase(tmp_path / "new.db")
    with database.read() as session:
        assert differing(session) == []
    database.close()


@pytest.mark.parametrize("change", ["ADD COLUMN extra TEXT", "DROP COLUMN origin"])
def test_a_table_that_differs_from_its_row_class_is_found(tmp_path: Path, change: str) -> None:
    database = SqliteDatabase(tmp_path / "new.db")
    with database.write() as session:
        session.run(f"ALTER TABLE tokens {change}")
        assert differing(session) == ["tokens"]
    database.close()


@pytest.mark.parametrize("name", released_names())
def test_a_released_file_becomes_what_a_new_file_is(tmp_path: Path, name: str) -> None:
    path = Settings(data_dir=unpack(name, tmp_path)).database_path
    layouts: list[Mapping[str, object]] = []
    for each in (path, tmp_path / "new.db"):
        database = SqliteDatabase(each)
        with database.read() as session:
            layouts.append(layout_of_file(session))
        database.close()
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize("name", released_names())
def test_a_released_directory_answers_as_its_own_server_did(tmp_path: Path, name: str) -> None:
    settings, then = Settings(data_dir=unpack(name, tmp_path)), answers_of(name)
    with reopened(settings) as site:
        disclosures = site.server.stores.disclosures
        entries = disclosures.disclosures(DisclosureQuery(limit=1_000))
        assert len(entries) == then["disclosures"]
        served = sum(entry.record_count for _, entry in entries if entry.outcome == SERVED)
        shares = disclosures.shares("day", DisclosureQuery(limit=1_000))
        assert sum(each.record_count for each in shares) == served
        assert asked(site, then["tokens"], then["blob_id"]) == then["answers"]


def migrated(tmp_path: Path, *statements: str) -> None:
    """A new file whose notes of steps were changed, opened again."""
    path = tmp_path / "data" / "records.db"
    database = new_file(path)
    with database.write() as session:
        for statement in statements:
            session.run(statement)
    database.close()
    SqliteDatabase(path).close()


NUMBERED = (
    "INSERT INTO schema_version VALUES ('records', {}), ('authorization', 2), ('disclosures', 1)"
)


def test_a_file_of_another_time_is_told_and_left(tmp_path: Path) -> None:
    with pytest.raises(DatabaseTooNew):
        migrated(tmp_path / "new", "INSERT INTO schema_version VALUES ('999_unheard', 1)")
    with pytest.raises(DatabaseTooOld):
        migrated(tmp_path / "old", "DELETE FROM schema_version", NUMBERED.format(17))
    released = "DELETE FROM schema_version WHERE module = '001_released'"
    migrated(tmp_path / "released", released, NUMBERED.format(18))


def test_tables_are_those_that_were_made_and_not_dropped() -> None:
    made = Step("1", "CREATE TABLE one (a)\nWITHOUT ROWID;\nCREATE TABLE two (b);")
    dropped = Step("2", "DROP TABLE one;\nCREATE INDEX three ON two (b);")
    assert tables_of([made]) == {"one", "two"}
    assert tables_of([made, dropped]) == {"two"}
