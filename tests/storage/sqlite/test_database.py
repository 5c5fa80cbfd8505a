from __future__ import annotations

import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from personal_server.errors import QueryTimeout, StorageUnavailable
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import SchemaModule
from personal_server.storage.sqlite.database import DatabaseInUse, DatabaseTooNew, SqliteDatabase

NOTES = SchemaModule("notes", ("CREATE TABLE note (text TEXT)",))
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_the_file_is_private_to_its_account(tmp_path: Path) -> None:
    path = tmp_path / "data" / "records.db"
    SqliteDatabase(path, [NOTES]).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_write_is_seen_by_the_next_read_and_an_undone_one_is_not(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.write() as session:
        session.run("INSERT INTO note VALUES ('kept')")
    with pytest.raises(StorageUnavailable), database.write() as session:
        _insert_and_fail(session)
    with database.read() as session:
        assert session.rows("SELECT text FROM note") == [("kept",)]
    database.close()


def test_every_kind_of_write_is_whole_or_absent(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    for begin in (database.write, database.write_soon, database.erase):
        with begin() as session:
            session.run("INSERT INTO note VALUES ('kept')")
        with pytest.raises(StorageUnavailable), begin() as session:
            _insert_and_fail(session)
    with database.read() as session:
        assert session.rows("SELECT text FROM note") == [("kept",)] * 3
    database.close()


def _insert_and_fail(session: Session) -> None:
    session.run("INSERT INTO note VALUES ('undone')")
    raise StorageUnavailable("as if the disk were full")


def test_a_snapshot_does_not_see_later_writes(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.read() as reader:
        assert reader.value("SELECT count(*) FROM note") == 0
        with database.write() as writer:
            writer.run("INSERT INTO note VALUES ('later')")
        assert reader.value("SELECT count(*) FROM note") == 0
    database.close()


def test_a_read_past_its_time_limit_is_query_timeout_and_the_reader_lives_on(
    tmp_path: Path,
) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES], readers=1)
    with pytest.raises(QueryTimeout), database.read(0.02) as session:
        session.value(ENDLESS)
    with database.read(5.0) as session:
        assert session.value("SELECT 1") == 1
    database.close()


def test_a_second_server_is_refused_and_commands_are_let_in_beside_the_first(
    tmp_path: Path,
) -> None:
    server = SqliteDatabase(tmp_path / "a.db", [NOTES], serving=True)
    with pytest.raises(DatabaseInUse):
        SqliteDatabase(tmp_path / "a.db", [NOTES], serving=True)
    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()
    server.close()
    SqliteDatabase(tmp_path / "a.db", [NOTES], serving=True).close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    newer = SchemaModule("notes", (*NOTES.migrations, "CREATE TABLE other (x)"))
    SqliteDatabase(tmp_path / "a.db", [newer]).close()
    with pytest.raises(DatabaseTooNew):
        SqliteDatabase(tmp_path / "a.db", [NOTES])
    with pytest.raises(DatabaseTooNew):
        SqliteDatabase(tmp_path / "a.db", [])
    SqliteDatabase(tmp_path / "a.db", [newer]).close()


def test_modules_migrate_on_their_own(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()
    other = SchemaModule("other", ("CREATE TABLE other (x)", "INSERT INTO other VALUES (7)"))
    database = SqliteDatabase(tmp_path / "a.db", [NOTES, other])
    with database.read() as session:
        assert session.value("SELECT x FROM other") == 7
    database.close()


def test_a_file_that_is_no_database_is_storage_unavailable(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"not a database at all, but long enough " * 40)
    with pytest.raises(StorageUnavailable):
        SqliteDatabase(tmp_path / "a.db", [NOTES])


def test_a_full_disk_is_storage_unavailable_and_undoes_the_write(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.write() as session:
        session.run("INSERT INTO note VALUES ('kept')")
        pages = session.value("PRAGMA page_count")
    database.pragma("max_page_count", pages + 2)
    with pytest.raises(StorageUnavailable), database.write() as session:
        session.run("INSERT INTO note VALUES (hex(zeroblob(100000)))")
    with database.read() as session:
        assert session.rows("SELECT text FROM note") == [("kept",)]
    database.close()


def test_a_killed_migration_leaves_the_old_version(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from personal_server.storage.sqlite.database import SqliteDatabase, SchemaModule
        def die(session):
            session.run("INSERT INTO other VALUES (1)")
            os.kill(os.getpid(), signal.SIGKILL)
        steps = ("CREATE TABLE note (text TEXT)", "CREATE TABLE other (x)", die)
        SqliteDatabase(Path(sys.argv[1]), [SchemaModule("notes", steps)])
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.db")], check=False)
    assert done.returncode == -9
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.read() as session:
        assert session.value("SELECT count(*) FROM sqlite_schema WHERE name = 'other'") == 0
    database.close()
