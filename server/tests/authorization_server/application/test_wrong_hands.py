"""What opens one door opens no other: every kind of secret and name, in every place for one."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.storage.authorization_rows import TokenRow
from server.tests.authorization_server.application.endpoints import DETAILS
from server.tests.authorization_server.conftest import DEVICE, VERIFIER

pytestmark = pytest.mark.anyio
PLACES = ("code", "refresh_token", "device_code")
GRANT_TYPES: dict[str, str] = dict(
    zip(PLACES, ("authorization_code", "refresh_token", DEVICE), strict=True)
)


async def keys(app: Any) -> dict[str, str]:
    """One of everything that is issued, all of the same owner."""
    pushed = (await app.post("/oauth/par", **app.parameters())).json()["request_uri"]
    opened = await app.authorize(request_uri=pushed)
    codes = (await app.post("/oauth/device_authorization", client_id="pdpp-cli")).json()
    tokens = await app.connect(authorization_details=DETAILS)
    return {
        "request_uri": pushed,
        "handle": opened.headers["location"].removeprefix("/consent/"),
        "code": await app.code(authorization_details=DETAILS),
        "device_code": codes["device_code"],
        "user_code": codes["user_code"],
        "access_token": tokens["access_token"],
        "refresh_token": tokens["refresh_token"],
        "grant_id": tokens["grant_id"],
        "client_id": app.client_id,
    }


@pytest.mark.parametrize("place", PLACES)
async def test_only_a_secret_made_for_it_is_redeemed(app: Any, place: str) -> None:
    held = await keys(app)
    issued = len(app.server.rows(TokenRow))
    for name, value in held.items():
        if name == place:
            continue
        for client in (app.client_id, "pdpp-cli"):
            app.server.now_ns += 30 * 10**9
            form = {"grant_type": GRANT_TYPES[place], place: value, "client_id": client}
            answer = await app.post("/oauth/token", **form, code_verifier=VERIFIER)
            expected = {"invalid_grant", "unauthorized_client"}
            assert (answer.status_code, answer.json()["error"] in expected) == (400, True), name
    assert len(app.server.rows(TokenRow)) == issued


async def test_no_secret_is_a_client(app: Any) -> None:
    held = await keys(app)
    for name in sorted(held.keys() - {"client_id"}):
        for path in ("/oauth/token", "/oauth/par", "/oauth/device_authorization", "/oauth/revoke"):
            form = {"client_id": held[name], "grant_type": "refresh_token", "token": "x"}
            answer = await app.post(path, **form, refresh_token=held["refresh_token"])
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client")


async def test_only_an_access_token_is_a_bearer(app: Any) -> None:
    held = await keys(app)
    assert (await app.current(held.pop("access_token"))).status_code == 200
    for value in held.values():
        answer = await app.current(value)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_token")


async def test_only_a_pushed_request_of_the_client_is_opened(app: Any) -> None:
    held = await keys(app)
    for name in sorted(held.keys() - {"request_uri"}):
        page = await app.authorize(request_uri=held[name])
        assert (page.status_code, 'data-error="invalid_request_uri"' in page.text) == (400, True)
    foreign = await app.authorize(client_id="pdpp-cli", request_uri=held["request_uri"])
    assert (foreign.status_code, "location" in foreign.headers) == (400, False)
    app.server.allow(held["handle"])
    closed = await app.authorize(request_uri=held["request_uri"])
    assert (closed.status_code, 'data-error="request_closed"' in closed.text) == (410, True)
