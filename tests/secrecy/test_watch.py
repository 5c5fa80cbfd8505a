"""The watch over secrets sees what it has to see, and every part of the program is under it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from personal_server.authorization_server import client_authentication
from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    REQUEST_URI,
    base64url,
    new_secret,
    new_user_code,
    secret_hash,
    shown_user_code,
)
from personal_server.granting import decisions, owner_sessions, pending_requests, tokens
from personal_server.reading import tokens as read_tokens
from tests.nested import nested_run
from tests.secrecy.files import MAGIC, is_empty_table, look_at_files, pages
from tests.secrecy.plugin import WATCH
from tests.secrecy.watch import Watch

COOKIE = base64url(bytes(range(32)))
CODE = new_user_code(lambda size: bytes(range(size)))


@pytest.mark.of_files("one leak is planted in a file that another process wrote")
def test_every_leak_that_was_planted_fails_the_run() -> None:
    done = nested_run("tests/secrecy/planted.py")
    assert done.returncode == 1
    said = done.stdout
    assert "7 passed, 1 error" in said
    for place in (
        "log of personal_server.planted: pdpp_at_AQEB…",
        "log of personal_server.planted: pdpp_at_AgIC…",
        "test_on_standard_error: pdpp_at_AwMD…",
        "planted.db table audit_events: BCDFGHJK…",
        "a record value stands in the audit trail",
        "server.log: pdpp_at_BAQE…",
        "log of personal_server.planted: a password",
        "answer of GET /page: pdpp_at_BQUF…",
        "answer of GET /none: pdpp_at_BgYG…",
    ):
        assert place in said


@pytest.mark.parametrize(
    "module",
    [client_authentication, decisions, tokens, pending_requests, read_tokens, owner_sessions],
)
def test_whoever_handles_a_secret_is_observed(module: object) -> None:
    assert module.secret_hash is secret_hash  # type: ignore[attr-defined]
    secret_hash("a secret that is in use")
    assert secret_hash("a secret that is in use") in WATCH.digests


@pytest.mark.parametrize(
    "written",
    [
        f"Bearer {ACCESS_TOKEN}{COOKIE}",
        f"{REQUEST_URI}{COOKIE}",
        f"/oauth/authorize?request_uri={REQUEST_URI.replace(':', '%3A')}{COOKIE}&x",
        f"pdpp_owner_7662={COOKIE}; Path=/",
        f"x{COOKIE}y",
        f"the code is {shown_user_code(CODE)}.",
        f"user_code={CODE}",
    ],
)
def test_a_secret_is_found_in_whatever_surrounds_it(written: str) -> None:
    watch = Watch()
    watch.hear(written, "here")
    assert watch.breaches() == []
    watch.digests |= {secret_hash(p + COOKIE) for p in ("", ACCESS_TOKEN, REQUEST_URI)}
    watch.digests.add(secret_hash(CODE))
    assert watch.breaches() != []


def test_a_secret_that_was_never_written_is_no_breach() -> None:
    watch = Watch()
    watch.hear(f"{ACCESS_TOKEN}{'x' * 43}", "here")
    watch.digests.add(secret_hash(new_secret(ACCESS_TOKEN, bytes)))
    assert watch.breaches() == []


def test_what_was_heard_is_searched_again_for_a_password_of_later() -> None:
    watch = Watch()
    for _ in range(2):
        watch.hear("the phrase is correct horse", "here")
    assert watch.breaches() == []
    watch.passwords.add(b"correct horse")
    watch.hear("the phrase is correct horse", "there")
    assert watch.breaches() == ["there: a password"]


@pytest.mark.parametrize("page_bytes", [512, 4096, 32_768])
def test_the_pages_of_a_database_are_all_of_it(tmp_path: Path, page_bytes: int) -> None:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        connection.execute("CREATE TABLE texts AS SELECT hex(randomblob(90000)) AS text")
    raw = path.read_bytes()
    found = list(pages(raw))
    assert b"".join(found) == raw
    assert {len(page) for page in found} == {page_bytes}
    assert list(pages(raw[1:])) == [raw[1:]], "what is no database is heard as it is"


@pytest.mark.parametrize("kind", ["", "WITHOUT ROWID"])
@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_a_table_is_empty_if_it_has_no_row(tmp_path: Path, page_bytes: int, kind: str) -> None:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        counts = (0, 1, 2, 500)
        for count in counts:
            connection.execute(f"CREATE TABLE t{count} (a TEXT PRIMARY KEY, b TEXT) {kind}")
            rows = [(str(number), "x" * 20) for number in range(count)]
            connection.executemany(f"INSERT INTO t{count} VALUES (?, ?)", rows)  # noqa: S608
        connection.execute(f"CREATE TABLE gone (a TEXT PRIMARY KEY, b TEXT) {kind}")
        connection.execute("INSERT INTO gone VALUES ('1', '2')")
        connection.execute("DELETE FROM gone")
        connection.commit()
        found = connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'")
        roots = dict(found.fetchall())
    raw = path.read_bytes()
    empty = {name for name, root in roots.items() if is_empty_table(raw, root)}
    assert empty == {"t0", "gone"}


@pytest.mark.parametrize(("page_bytes", "pages_there"), [(1, 40), (512, 1)])
def test_a_table_whose_page_cannot_be_told_is_not_empty(page_bytes: int, pages_there: int) -> None:
    """1 is how the header says 65,536; else the second page is cut, behind what tells its kind."""
    header = (MAGIC + page_bytes.to_bytes(2, "big")).ljust(page_bytes * pages_there, b"\0")
    root = len(header) // page_bytes + 1
    assert not is_empty_table(header + b"\x0d" + bytes(7), root)


def test_a_row_that_stands_in_the_log_alone_is_looked_at(tmp_path: Path) -> None:
    watch, digest, path = Watch(), secret_hash(COOKIE), tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE secrets (a BLOB)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO secrets VALUES (?)", [digest])
        connection.commit()
        look_at_files(tmp_path, watch)
    assert digest in watch.digests
