from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pdpp_kernel.errors import QueryTimeout, StorageUnavailable
from personal_server.app.server_faults import damage_faults
from personal_server.storage.derived import once
from personal_server.storage.ports.snapshots import PastBudget
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.migrations import DatabaseTooNew, DatabaseTooOld, Step
from personal_server.storage.sqlite.database import BRIEF_BYTES, SqliteDatabase, SqliteSession
from personal_server.storage.sqlite.file_claims import DatabaseInUse

NOTES = Step("001_notes", "CREATE TABLE note (text TEXT)")
OTHER = Step("002_other", "CREATE TABLE other (x); INSERT INTO other VALUES (7)")
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


def test_a_text_whose_bytes_are_none_any_more_is_damage_and_no_defect(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.write() as session:
        session.run("INSERT INTO note VALUES (CAST(x'ff41' AS TEXT))")
    for opened in (database.read, database.write):
        with pytest.raises(StorageUnavailable, match="damaged"), opened() as session:
            session.rows("SELECT text FROM note")
    database.close()


def test_a_damaged_file_is_remembered_once_it_was_met(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database = SqliteDatabase(path, [NOTES])
    with database.write() as session:
        session.many("INSERT INTO note VALUES (?)", [("x" * 500,) for _ in range(500)])
    database.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 2))
    database = SqliteDatabase(path, [NOTES])
    assert database.damage.file_since_ns is None
    with pytest.raises(StorageUnavailable, match="damaged"), database.read() as session:
        session.rows("SELECT text FROM note")
    assert database.damage.file_since_ns is not None
    [fault] = damage_faults(database.damage)
    assert (fault.part, fault.code, fault.serving) == ("database", "storage_unavailable", False)
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


def _walks_too_far(session: SqliteSession) -> None:
    session.rows(ENDLESS)


def _reads_too_much(session: SqliteSession) -> None:
    session.rows(f"SELECT zeroblob({BRIEF_BYTES}) UNION ALL SELECT x'00'")


def _makes_tables(session: SqliteSession) -> None:
    with session.scratch():
        pass


@pytest.mark.parametrize("ask", [_walks_too_far, _reads_too_much, _makes_tables])
def test_a_brief_read_ends_where_it_would_take_longer_and_the_next_is_whole(
    tmp_path: Path, ask: Callable[[SqliteSession], None]
) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    for _ in range(2):
        with pytest.raises(PastBudget), database.read_briefly() as session:
            ask(session)
    for _ in range(200):
        with database.read_briefly() as session:
            assert session.rows("SELECT text FROM note") == []
    database.close()


def test_what_was_made_of_a_state_is_forgotten_with_it_whoever_writes(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    beside = SqliteDatabase(tmp_path / "a.db", [NOTES])

    def made() -> list[object]:
        found: list[object] = []
        for opened in (database.read, database.read_briefly):
            with opened() as session:
                found.append(once(session.derived, "key", lambda: now))
                assert session.value("SELECT count(*) FROM note") == found[-1]
        return found

    now = 0
    assert made() == [0, 0]
    for now, writing in enumerate((database.write, beside.write, database.write_soon), 1):
        with writing() as writer:
            writer.derived["key"] = "a writer's own"
            assert "key" not in writer.derived
            writer.run("INSERT INTO note VALUES ('more')")
        assert made() == [now, now]
    now = 7
    with database.read() as session:
        assert once(session.derived, "key", lambda: now) == 3
    database.close()
    beside.close()


def test_brief_reads_wait_for_nobody(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "a.db", [NOTES], readers=0)
    with database.write() as writer:
        writer.run("INSERT INTO note VALUES ('unseen')")
        with database.read_briefly() as session:
            assert session.rows("SELECT text FROM note") == []
            with pytest.raises(PastBudget), database.read_briefly():
                pass
    with database.read_briefly() as session:
        assert session.rows("SELECT text FROM note") == [("unseen",)]
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


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER]).close()
    for steps in ([NOTES], []):
        with pytest.raises(DatabaseTooNew):
            SqliteDatabase(tmp_path / "a.db", steps)
    SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER]).close()


def test_a_file_of_version_numbers_before_the_first_release_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as driver:
        driver.execute("CREATE TABLE schema_version (module, version)")
        driver.execute("INSERT INTO schema_version VALUES ('authorization', 1)")
        driver.commit()
    with pytest.raises(DatabaseTooOld):
        SqliteDatabase(tmp_path / "a.db", [NOTES])


def test_steps_are_taken_once_in_the_order_of_their_names(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()
    more = Step("003_more", "UPDATE other SET x = x + 1")
    for _ in range(2):
        database = SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER, more])
        with database.read() as session:
            assert session.rows("SELECT x FROM other") == [(8,)]
        database.close()


def test_a_step_that_came_later_with_an_earlier_name_is_taken_too(tmp_path: Path) -> None:
    SqliteDatabase(tmp_path / "a.db", [NOTES, Step("003_more", "CREATE TABLE more (x)")]).close()
    database = SqliteDatabase(
        tmp_path / "a.db", [NOTES, OTHER, Step("003_more", "CREATE TABLE more (x)")]
    )
    with database.read() as session:
        assert session.value("SELECT x FROM other") == 7
    database.close()


def test_what_must_happen_before_a_migration_happens_before_it_and_not_otherwise(
    tmp_path: Path,
) -> None:
    seen: list[tuple[list[str], list[object]]] = []

    def look(steps: Sequence[str]) -> None:
        with closing(sqlite3.connect(tmp_path / "a.db")) as driver:
            tables = [name for (name,) in driver.execute("SELECT name FROM sqlite_schema")]
        seen.append((list(steps), [name for name in tables if name in ("note", "other")]))

    SqliteDatabase(tmp_path / "a.db", [NOTES], before_migration=look).close()
    assert seen == []
    for _ in range(2):
        SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER], before_migration=look).close()
    assert seen == [(["002_other"], ["note"])]


def test_a_migration_that_could_not_be_prepared_does_not_happen(tmp_path: Path) -> None:
    def fail(steps: Sequence[str]) -> None:
        raise StorageUnavailable("as if the backup had failed")

    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()
    with pytest.raises(StorageUnavailable):
        SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER], before_migration=fail)
    SqliteDatabase(tmp_path / "a.db", [NOTES]).close()


def test_a_file_on_which_a_server_works_is_not_migrated_by_a_command(tmp_path: Path) -> None:
    server = SqliteDatabase(tmp_path / "a.db", [NOTES], serving=True)
    with pytest.raises(DatabaseInUse):
        SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER])
    server.close()
    SqliteDatabase(tmp_path / "a.db", [NOTES, OTHER]).close()


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
        from personal_server.storage.sql.migrations import Step
        from personal_server.storage.sqlite import database
        class Database(database.SqliteDatabase):
            def _open(self, *sizes, **how):
                session = super()._open(*sizes, **how)
                kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
                session.driver.create_scalar_function("die", kill, 0)
                return session
        steps = [Step("001_notes", "CREATE TABLE note (text TEXT)"),
                 Step("002_other", "CREATE TABLE other (x); INSERT INTO other VALUES (die())")]
        Database(Path(sys.argv[1]), steps)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.db")], check=False)
    assert done.returncode == -9
    database = SqliteDatabase(tmp_path / "a.db", [NOTES])
    with database.read() as session:
        assert session.value("SELECT count(*) FROM sqlite_schema WHERE name = 'other'") == 0
    database.close()


def test_every_index_of_a_subject_is_used(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "new.db")
    with database.read() as session:
        indexes = session.rows(
            "SELECT t.name, (SELECT name FROM pragma_index_info(i.name) WHERE seqno = 1)"
            " FROM sqlite_schema AS t, pragma_index_list(t.name) AS i WHERE EXISTS"
            " (SELECT 1 FROM pragma_index_info(i.name) WHERE seqno = 0 AND name = 'subject_id')"
        )
        led = [(table, column) for table, column in indexes if column is not None]
        assert len(led) > 40
        for table, column in led:
            sql = f"SELECT * FROM {table} WHERE subject_id = ? AND {column} = ?"  # noqa: S608
            (plan,) = session.rows(f"EXPLAIN QUERY PLAN {sql}", ("", ""))
            assert f"(subject_id=? AND {column}=?" in plan[3], sql
    database.close()
