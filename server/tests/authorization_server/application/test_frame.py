"""What an endpoint says when something is wrong holds nothing that was sent or issued.

That no secret of any test reaches a table, a log or a page is the watch of `tests/secrecy`.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from personal_server.storage.authorization_rows import AuditRow

pytestmark = pytest.mark.anyio
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
STATE = "state-that-no-row-may-keep"


async def test_no_error_and_no_audit_row_repeats_what_was_sent(server: Any, app: Any) -> None:
    server.bytes_of = secrets.token_bytes
    async with server.client() as http:
        app.http = http
        await app.register()
        pushed = (await app.post("/oauth/par", **app.parameters(state=STATE))).json()
        opened = await app.authorize(request_uri=pushed["request_uri"])
        code = server.allow(opened.headers["location"].removeprefix("/consent/"))["code"]
        tokens = (await app.redeem(code)).json()
        codes = (await app.post("/oauth/device_authorization", client_id="pdpp-cli")).json()
        forms = (
            ("/oauth/token", {"grant_type": DEVICE, "device_code": codes["device_code"]}),
            ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": code}),
            ("/oauth/token", {"grant_type": "authorization_code", "code": code}),
            ("/oauth/revoke", {"token": tokens["access_token"]}),
        )
        answers = [(await app.post(p, client_id=app.client_id, **f)).text for p, f in forms]
    sent = [pushed["request_uri"], STATE, code, codes["device_code"], tokens["access_token"]]
    assert not [answer for answer in answers for secret in sent if secret in answer]
    assert not [row for row in server.rows(AuditRow) if any(s in repr(row) for s in sent)]


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
