from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import cyclopts
import pytest

from pdpp_mcp_server.commands.exits import run_app
from personal_server.cli.verify import verify_command
from personal_server.storage.sql.care.stored_logs import SqlLogs
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.logs import seal_logs, signing_key
from server.tests.upkeep.test_logs import NOW, OWNER, entry


@pytest.fixture
def database(tmp_path: Path) -> Generator[SqliteDatabase]:
    made = SqliteDatabase(tmp_path / "records.sqlite3")
    SqlDisclosures(made, OWNER).append_disclosures([entry(day) for day in range(5)])
    logs = SqlLogs(made, OWNER)
    seal_logs(logs, signing_key(logs, os.urandom), NOW)
    yield made
    made.close()


def run(database: SqliteDatabase, *words: str) -> int:
    @contextmanager
    def opened() -> Generator[SqlLogs]:
        yield SqlLogs(database, OWNER)

    app = cyclopts.App(name="pdpp")
    app.command(verify_command(opened), name="verify")
    return run_app(app, ["verify", *words])


def test_an_unbroken_log_says_so_and_a_broken_one_where(
    database: SqliteDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(database, "--json") == 0
    shown = json.loads(capsys.readouterr().out)[0]
    assert (shown["lines"], shown["faults"]) == (5, [])
    with database.write() as session:
        session.run("UPDATE disclosures SET record_count = 7 WHERE number = 3")
    assert run(database, "--json") == 65
    shown = json.loads(capsys.readouterr().out)[0]
    assert [fault["line"] for fault in shown["faults"]] == [3]


def test_heads_kept_elsewhere_show_a_log_made_anew(
    database: SqliteDatabase, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(database, "--heads") == 0
    kept = tmp_path / "heads.txt"
    kept.write_text(capsys.readouterr().out)
    assert run(database, "--against", str(kept)) == 0
    with database.write() as session:
        session.run("DELETE FROM disclosures")
        session.run("DELETE FROM log_heads")
    anew = [entry(day, record_count=0) for day in range(5)]
    SqlDisclosures(database, OWNER).append_disclosures(anew)
    assert run(database) == 0
    assert run(database, "--against", str(kept)) == 65


def test_a_file_of_something_else_is_refused(database: SqliteDatabase, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no head at all\n")
    assert run(database, "--against", str(tmp_path / "notes.txt")) == 64
