"""Tests that leak on purpose; `test_watch` runs them and sees each leak found.  Never collected."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import httpx2
import pytest
from argon2 import PasswordHasher
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from personal_server.authorization_server.endpoints import AuthorizationApplication, EndpointRoute
from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    new_secret,
    new_user_code,
    secret_hash,
    shown_user_code,
)
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.migrations import Step, known_steps
from personal_server.storage.sqlite.database import SqliteDatabase

RECORDS = Step("999_records", "CREATE TABLE h1 (id INTEGER PRIMARY KEY, data TEXT)")


def numbered(number: int) -> str:
    """A secret that is in use."""
    secret = new_secret(ACCESS_TOKEN, lambda size: bytes([number]) * size)
    secret_hash(secret)
    return secret


def test_in_a_log_line() -> None:
    logging.getLogger("personal_server.planted").debug("token %s", numbered(1))


def test_in_a_traceback_of_the_log() -> None:
    try:
        raise RuntimeError(numbered(2))
    except RuntimeError:
        logging.getLogger("personal_server.planted").exception("it broke")


def test_on_standard_error() -> None:
    print(numbered(3), file=sys.stderr)


def test_in_a_table_written_by_another_process(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "planted.db", [*known_steps(), RECORDS])
    store = SqlAuthorizationStore(database, "own_1")
    with store.write() as writer:
        code = new_user_code(lambda size: bytes(range(size)))
        detail: dict[str, object] = {"typed": shown_user_code(code), "seen": "a record value"}
        writer.insert(AuditRow(event="planted", at_ns=1, actor="owner", detail=detail))
    with database.write() as session:
        session.run("CREATE TABLE hashes (hash BLOB)")
        session.run("INSERT INTO hashes VALUES (?)", (secret_hash(code),))
        record = json.dumps({"title": "a record value"})
        session.run("INSERT INTO h1 VALUES (1, ?)", (record,))
    database.close()


def test_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(f"GET /owner/enter?t={numbered(4)}")


def test_a_password_in_a_log_line() -> None:
    PasswordHasher(1, 8, 1).hash("correct horse battery")
    logging.getLogger("personal_server.planted").debug("tried %s", "correct horse battery")


@pytest.mark.anyio
async def test_in_a_page() -> None:
    async def page(call: object) -> Response:
        del call
        return HTMLResponse(f"<p>{numbered(5)}</p>")

    def error(request: Request, refused: Exception) -> Response:
        del request, refused
        return HTMLResponse(f"<p>{numbered(6)}</p>", 400)

    routes = [EndpointRoute("GET", "/page", page), EndpointRoute("GET", "/none", page, page=True)]
    transport = httpx2.ASGITransport(AuthorizationApplication(routes, error))
    async with httpx2.AsyncClient(transport=transport, base_url="https://me.example") as http:
        await http.get("/page")
        await http.get("/none?unknown=1")
