"""No secret that was ever issued is in a table, a log or an error text."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

import pytest

from personal_server.storage.sqlite.authorization import SCHEMA, SqliteAuthorizationStore
from personal_server.storage.sqlite.database import Database

pytestmark = pytest.mark.anyio
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
STATE = "state-that-no-log-may-hold"


async def test_no_issued_secret_is_stored_or_logged(
    server: Any, app: Any, details: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    database = Database(tmp_path / "dump.db", [SCHEMA])
    server.store = SqliteAuthorizationStore(database, "own_1")
    server.bytes_of = secrets.token_bytes
    issued: list[str] = []
    answers: list[str] = []
    async with server.client() as http:
        app.http = http
        await app.register()
        pushed = await app.post("/oauth/par", **app.parameters(state=STATE))
        issued.append(pushed.json()["request_uri"])
        opened = await app.authorize(request_uri=issued[0])
        code = server.allow(opened.headers["location"].removeprefix("/consent/"))["code"]
        tokens = (await app.redeem(code)).json()
        next_tokens = (await app.refresh(tokens["refresh_token"])).json()
        issued += [code]
        issued += [found[n] for found in (tokens, next_tokens) for n in ("access_token",)]
        issued += [tokens["refresh_token"], next_tokens["refresh_token"]]
        codes = (await app.post("/oauth/device_authorization", client_id="pdpp-cli")).json()
        issued += [codes["device_code"], codes["user_code"], codes["user_code"].replace("-", "")]
        for path, form in (
            ("/oauth/token", {"grant_type": DEVICE, "device_code": codes["device_code"]}),
            ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": issued[-4]}),
            ("/oauth/token", {"grant_type": "authorization_code", "code": code}),
            ("/oauth/revoke", {"token": issued[2]}),
        ):
            answers.append((await app.post(path, client_id=app.client_id, **form)).text)
    database.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    logged = "\n".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
    for secret in [*issued, STATE]:
        assert secret.encode() not in stored
        assert not any(secret in text for text in answers)
    ours = [r for r in caplog.records if r.name.startswith("personal_server")]
    assert not any(secret in str(r.__dict__) for r in ours for secret in issued)
    assert not any(secret in logged for secret in issued[:3])


async def test_a_defect_is_a_server_error_without_its_text(
    server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> int:
        raise RuntimeError("pdpp_rt_in_a_message")

    server.clock = broken
    async with server.client() as http:
        answer = await http.post(
            "/oauth/token",
            data={"grant_type": "refresh_token", "refresh_token": "x", "client_id": "pdpp-cli"},
        )
    assert (answer.status_code, answer.json()["error"]) == (500, "server_error")
    assert "pdpp_rt" not in answer.text + caplog.text
