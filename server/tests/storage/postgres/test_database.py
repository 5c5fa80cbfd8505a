"""What a PostgreSQL database may be like, and what is said of one that cannot be used."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pdpp_kernel.errors import QueryTimeout, StorageReadOnly, StorageUnavailable
from personal_server.enforcement.plans import RecordPlan, RecordsPlan
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.postgres import database as postgres
from personal_server.storage.postgres import session as sessions
from personal_server.storage.postgres.database import ForeignSchema, PostgresDatabase
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.migrations import DatabaseTooNew
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.ports.asking import feed, search, told
from server.tests.storage.worlds import condition, furnish, keys, note, order, scope, write
from tests.postgresql import schema, server

A = scope("cin_a")


@pytest.fixture
def name() -> Iterator[str]:
    with schema() as found:
        yield found


def opened(directory: Path, name: str, url: str | None = None) -> PostgresDatabase:
    return PostgresDatabase(url or server().url(), directory, name)


def made(directory: Path, name: str) -> None:
    opened(directory, name).close()


@contextmanager
def administrator(database: str = "postgres") -> Generator[psycopg.Connection[Any], None, None]:
    with psycopg.connect(server().url(database=database), autocommit=True) as connection:
        yield connection


def say(statement: str) -> list[Any]:
    with administrator() as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# Addresses, roles, databases ------------------------------------------------------------------
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://owner@127.0.0.1:1/postgres",
        "postgresql://owner@/postgres?host=/nowhere",
        "postgresql://owner@/postgres?unknown=1",
    ],
)
def test_a_wrong_address_is_told(
    url: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 1)
    with pytest.raises(StorageUnavailable, match="PDPP_DATABASE_URL"):
        opened(tmp_path, name, url)


@pytest.mark.parametrize("url", [{"user": "nobody"}, {"database": "none"}])
def test_an_unknown_role_or_database_is_told(
    url: dict[str, str], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 1)
    with pytest.raises(StorageUnavailable, match="PDPP_DATABASE_URL"):
        opened(tmp_path, name, server().url(**url))


def test_a_role_without_rights_makes_nothing(tmp_path: Path, name: str) -> None:
    say("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(StorageUnavailable, match="GRANT CREATE"):
            opened(tmp_path, name, server().url("guest"))
        assert name not in [found for (found,) in say("SELECT nspname FROM pg_namespace")]
    finally:
        say("DROP ROLE guest")


OURS, OTHER = "owner_of_records", "neighbour"


@pytest.fixture
def neighbours(name: str) -> Iterator[None]:
    """Two roles that may make schemas in one database."""
    say(f"CREATE ROLE {OURS} LOGIN; CREATE ROLE {OTHER} LOGIN")
    say(f"GRANT CREATE ON DATABASE postgres TO {OURS}, {OTHER}")
    yield
    say(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    say(f"DROP OWNED BY {OURS}, {OTHER}; DROP ROLE {OURS}, {OTHER}")


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize(
    ("owner", "granted"),
    [
        # who owns a schema may drop its tables and put others in their places
        (OTHER, f"ALL ON SCHEMA {{}} TO {OURS}"),
        # who may create in it can put functions before those that statements mean
        (OURS, f"CREATE ON SCHEMA {{}} TO {OTHER}"),
        (OURS, "CREATE ON SCHEMA {} TO PUBLIC"),
    ],
)
def test_a_schema_that_another_role_may_change_is_not_used(
    tmp_path: Path, name: str, owner: str, granted: str
) -> None:
    say(f"CREATE SCHEMA {name} AUTHORIZATION {owner}; GRANT {granted.format(name)}")
    with pytest.raises(ForeignSchema, match="ALTER SCHEMA"):
        opened(tmp_path, name, server().url(OURS))
    assert name not in [found for (found,) in say("SELECT schemaname FROM pg_tables")]


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize("owner", [OURS, "pg_database_owner", "CURRENT_USER"])
def test_a_schema_that_superusers_beside_its_role_may_change_is_used(
    tmp_path: Path, name: str, owner: str
) -> None:
    """`public` is of `pg_database_owner`, who is a superuser here."""
    say(f"CREATE SCHEMA {name} AUTHORIZATION {owner}")
    say(f"GRANT ALL ON SCHEMA {name} TO {OURS}, pg_database_owner, CURRENT_USER")
    opened(tmp_path, name, server().url(OURS)).close()


@pytest.mark.usefixtures("neighbours")
def test_the_schema_of_a_database_of_another_role_is_not_used(tmp_path: Path, name: str) -> None:
    say(f"CREATE DATABASE theirs OWNER {OTHER} ENCODING 'UTF8' TEMPLATE template0")
    try:
        with administrator("theirs") as connection:
            statement = f"CREATE SCHEMA {name} AUTHORIZATION pg_database_owner"
            connection.execute(f"{statement}; GRANT USAGE ON SCHEMA {name} TO {OURS}".encode())
        with pytest.raises(ForeignSchema, match="ALTER SCHEMA"):
            opened(tmp_path, name, server().url(OURS, database="theirs"))
        opened(tmp_path, name, server().url(OTHER, database="theirs")).close()
    finally:
        say("DROP DATABASE theirs")


@pytest.mark.usefixtures("neighbours")
def test_a_role_of_the_group_that_owns_a_schema_uses_it(tmp_path: Path, name: str) -> None:
    say(f"GRANT {OTHER} TO {OURS}; CREATE SCHEMA {name} AUTHORIZATION {OTHER}")
    opened(tmp_path, name, server().url(OURS)).close()


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize("right", ["owns", "creates"])
def test_the_schema_of_a_group_with_other_members_is_not_used(
    tmp_path: Path, name: str, right: str
) -> None:
    say(f"CREATE ROLE team; GRANT team TO {OURS}, {OTHER}")
    try:
        owner = "team" if right == "owns" else OURS
        say(f"CREATE SCHEMA {name} AUTHORIZATION {owner}; GRANT CREATE ON SCHEMA {name} TO team")
        with pytest.raises(ForeignSchema):
            opened(tmp_path, name, server().url(OURS))
        say(f"REVOKE team FROM {OTHER}")
        opened(tmp_path, name, server().url(OURS)).close()
    finally:
        say(f"DROP SCHEMA {name} CASCADE; DROP ROLE team")


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize("is_made", [False, True])
def test_what_a_role_keeps_in_its_schema_is_closed_to_its_neighbours(
    tmp_path: Path, name: str, *, is_made: bool
) -> None:
    if is_made:
        say(f"CREATE SCHEMA {name} AUTHORIZATION {OURS}")
    opened(tmp_path, name, server().url(OURS)).close()
    with (
        psycopg.connect(server().url(OTHER)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(f"TABLE {name}.records".encode())


def test_a_database_of_another_encoding_is_refused(tmp_path: Path, name: str) -> None:
    of_bytes = "ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    say(f"CREATE DATABASE ascii {of_bytes}")
    try:
        with pytest.raises(StorageUnavailable, match="UTF-8"):
            opened(tmp_path, name, server().url(database="ascii"))
    finally:
        say("DROP DATABASE ascii WITH (FORCE)")


# Schemas --------------------------------------------------------------------------------------
@pytest.mark.parametrize("table", ["orders (id int)", "schema_version (number int)"])
def test_the_schema_of_another_program_is_left_alone(table: str, tmp_path: Path, name: str) -> None:
    say(f"CREATE SCHEMA {name}; CREATE TABLE {name}.{table}")
    with pytest.raises(ForeignSchema):
        opened(tmp_path, name)
    there = say("SELECT schemaname FROM pg_tables")
    assert there.count((name,)) == 1


def test_an_empty_schema_that_somebody_made_is_filled(tmp_path: Path, name: str) -> None:
    say(f"CREATE SCHEMA {name}")
    made(tmp_path, name)


def test_a_newer_schema_is_refused(tmp_path: Path, name: str) -> None:
    made(tmp_path, name)
    say(f"INSERT INTO {name}.schema_version VALUES ('999_of_tomorrow', 1)")  # noqa: S608
    with pytest.raises(DatabaseTooNew):
        opened(tmp_path, name)


def test_a_schema_that_is_not_whole_is_refused(tmp_path: Path, name: str) -> None:
    made(tmp_path, name)
    say(f"DROP TABLE {name}.tokens")
    with pytest.raises(ForeignSchema):
        opened(tmp_path, name)


def test_functions_that_are_missing_come_again(tmp_path: Path, name: str) -> None:
    made(tmp_path, name)
    say(f"DROP FUNCTION {name}.pdpp_string(text, text)")
    made(tmp_path, name)
    assert say(f"SELECT to_regproc('{name}.pdpp_string') IS NOT NULL") == [(True,)]


# Sessions -------------------------------------------------------------------------------------
def end_others() -> None:
    say(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'pdpp' AND pid <> pg_backend_pid()"
    )


def _two_statements(session: Session, statement: str) -> None:
    """With nobody to hear the second."""
    session.rows("SELECT 1")
    session.run(statement)
    end_others()
    session.rows("SELECT 1")


def test_what_posted_words_before_is_taken_out(tmp_path: Path, name: str) -> None:
    made(tmp_path, name)
    with psycopg.connect(server().url(), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {name}".encode())
        connection.execute(
            "CREATE FUNCTION pdpp_post() RETURNS trigger"
            " LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        connection.execute(
            "CREATE TRIGGER pdpp_post AFTER INSERT ON grants EXECUTE FUNCTION pdpp_post()"
        )
        made(tmp_path, name)
        asked = (
            "SELECT to_regproc('pdpp_post'), count(*) FROM pg_trigger WHERE tgname = 'pdpp_post'"
        )
        assert connection.execute(asked).fetchone() == (None, 0)


def test_sessions_that_were_ended_are_opened_again(tmp_path: Path, name: str) -> None:
    with closing(opened(tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        end_others()
        write(store, "cin_a", [note("n1")])
        with pytest.raises(StorageUnavailable), database.write() as session:
            _two_statements(session, "DELETE FROM connections")
        with pytest.raises(StorageUnavailable), database.read() as session:
            _two_statements(session, "SELECT 1")
        assert keys(store, RecordsPlan((A,), order(None), 10)) == ["n1"]
        end_others()
        assert keys(store, RecordsPlan((A,), order(None), 10)) == ["n1"]


def test_whoever_waits_gets_the_session_of_a_read_that_ends(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOOK_SECONDS", 60)
    monkeypatch.setattr(postgres, "POOL_SECONDS", 60)
    made(tmp_path, name)
    with closing(PostgresDatabase(server().url(), tmp_path, name, readers=1)) as database:
        pool = database._pool  # pyright: ignore[reportPrivateUsage]
        found: list[int] = []

        def ask() -> None:
            with database.read() as session:
                found.append(session.value("SELECT 7"))

        waiting = threading.Thread(target=ask)
        with database.read():
            with database.read():
                waiting.start()
                while not pool.get_stats().get("requests_waiting"):
                    pass
            waiting.join(30)
            assert found == [7]


def test_a_session_is_looked_at_after_so_many_reads(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "RESTS", 2)
    with closing(opened(tmp_path, name)) as database:
        for _ in range(5):
            with database.read() as session:
                assert session.value("SELECT 7") == 7


def test_a_database_that_can_only_be_read_answers_reads(tmp_path: Path, name: str) -> None:
    only = server().url() + "&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(StorageReadOnly):
        opened(tmp_path, name, only)
    with closing(opened(tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("n1", title="rain")])
    with closing(opened(tmp_path, name, only)) as database:
        assert database.is_read_only
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        assert [each.key for each in search(store, "rain").candidates] == ["n1"]
        with pytest.raises(StorageReadOnly):
            write(store, "cin_a", [note("n2")])
        assert database.writability.trouble is not None


def _sleep_often(session: Session) -> None:
    for _ in range(1_000):
        session.value("SELECT pg_sleep(0.001)")


def test_a_read_past_its_time_is_interrupted(tmp_path: Path, name: str) -> None:
    with closing(opened(tmp_path, name)) as database:
        with pytest.raises(QueryTimeout), database.read(0.05) as session:
            session.value("SELECT pg_sleep(30)")
        with pytest.raises(QueryTimeout), database.read(0.05) as session:
            _sleep_often(session)
        with database.read(60) as session:
            found = session.attempt(0.05, lambda: session.value("SELECT pg_sleep(30)"))
            assert (found, session.value("SELECT 7")) == (None, 7)
            assert session.attempt(30, lambda: session.value("SELECT 8")) == 8


def test_what_waits_too_long_is_told(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_MS", 50)
    with (
        closing(opened(tmp_path, name)) as one,
        closing(PostgresDatabase(server().url(), tmp_path, name, readers=1)) as other,
    ):
        with one.write(), pytest.raises(StorageUnavailable), other.write():
            pass
        with other.read(), other.read():
            monkeypatch.setattr(postgres, "POOL_SECONDS", 0.05)
            with pytest.raises(StorageUnavailable), other.read():
                pass


def test_a_text_with_a_nul_is_kept_and_compared_as_the_contract_says(
    tmp_path: Path, name: str
) -> None:
    with closing(opened(tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        odd = note("n1", title="a\0b", mood="\\u0000 \0", place="\0", body="rain \0 snow")
        write(store, "cin_a", [odd])
        with store.snapshot() as snapshot:
            assert snapshot.record(RecordPlan((A,), "n1"))[0].data == odd
        for field, value in (("mood", "\\u0000 \0"), ("place", "\0"), ("place", "\ufffd")):
            asked = (condition(field, "eq", value),)
            assert keys(store, RecordsPlan((A,), order(None), 10, asked)) == ["n1"]
        assert [each.key for each in search(store, "snow").candidates] == ["n1"]


# Writers --------------------------------------------------------------------------------------
def test_two_servers_give_numbers_in_the_order_in_which_they_become_visible(
    tmp_path: Path, name: str
) -> None:
    with closing(opened(tmp_path, name)) as one, closing(opened(tmp_path, name)) as other:
        stores = [SqlRecordStore(each, "owner", tmp_path / "blobs") for each in (one, other)]
        furnish(stores[0], "cin_a")
        write(stores[0], "cin_a", [note("first")])

        def work(store: SqlRecordStore, mark: str) -> None:
            for number in range(15):
                write(store, "cin_a", [note(f"{mark}{number}"), note(f"{mark}x{number}")])

        threads = [
            threading.Thread(target=work, args=(store, mark))
            for store, mark in zip(stores, "ab", strict=True)
        ]
        for thread in threads:
            thread.start()
        seen, met = 0, list[str]()
        while len(met) < 61:
            found = feed(stores[0], None, A, after=seen)
            met += [key for key, _ in told(found)]
            seen = max((item.sequence for item in found.items), default=seen)
        for thread in threads:
            thread.join()
        assert len(set(met)) == 61
        assert seen == 61


# Statements -----------------------------------------------------------------------------------
def test_no_statement_names_a_schema(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued: list[str] = []
    known = sessions.translated_sql

    def noted(sql: str) -> bytes:
        issued.append(sql)
        return known(sql)

    monkeypatch.setattr(sessions, "translated_sql", noted)
    with closing(opened(tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a", "cin_b")
        write(store, "cin_a", [note("n1", title="rain", words=3), note("n2")])
        write(store, "cin_a", [note("n1", title="sun"), "n2"])
        assert search(store, "su*").candidates
        asked = (condition("body", "contains", "x"), condition("words", "gte", 1))
        keys(store, RecordsPlan((A, scope("cin_b")), order("at"), 10, asked))
        store.prune_history(10)
        store.delete_stream("cin_a", "notes", 9)
        store.erase_connection("cin_a", 9)
    named = [sql for sql in issued if name in sql]
    assert named == [f'CREATE SCHEMA "{name}"']
    schemas = re.compile(r"(?i)\b(?:from|join|into|update|table)\s+(?:\w+|\"\w+\")\s*\.")
    assert [sql for sql in issued if schemas.search(sql)] == []
    assert len(set(issued)) > 100


def test_what_was_removed_meanwhile_is_asked_for_again(tmp_path: Path, name: str) -> None:
    with closing(opened(tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("n1")])
        with pytest.raises(StorageUnavailable), store.snapshot() as snapshot:
            _read_what_is_removed(store, snapshot)


def _read_what_is_removed(store: SqlRecordStore, snapshot: ReadSnapshot) -> None:
    assert snapshot.horizon == 1
    store.delete_stream("cin_a", "notes", 9)
    snapshot.record(RecordPlan((A,), "n1"))
