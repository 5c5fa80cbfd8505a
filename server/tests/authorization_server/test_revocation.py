"""Token revocation answers the same for every token, and ends only the client's own."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.storage.authorization_rows import GrantRow, PackageRow, TokenRow

pytestmark = pytest.mark.anyio


async def test_a_refresh_token_ends_everything_behind_it(app: Any) -> None:
    body = await app.connect()
    answer = await app.post(
        "/oauth/revoke", token=body["refresh_token"], client_id=app.client_id, token_type_hint="x"
    )
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await app.current(body["access_token"])).status_code == 401
    assert app.server.rows(PackageRow)[0].reason == "client_disconnected"


async def test_an_access_token_ends_itself_only(app: Any) -> None:
    body = await app.connect()
    await app.post("/oauth/revoke", token=body["access_token"], client_id=app.client_id)
    assert (await app.current(body["access_token"])).status_code == 401
    assert (await app.refresh(body["refresh_token"])).status_code == 200


async def test_a_single_use_token_ends_its_grant(app: Any, details: Any, make_entry: Any) -> None:
    once = details(make_entry(access_mode="single_use"))
    body = await app.connect(authorization_details=once)
    await app.post("/oauth/revoke", token=body["access_token"], client_id=app.client_id)
    assert app.server.rows(GrantRow)[0].reason == "client_disconnected"


async def test_foreign_and_unknown_tokens_answer_alike_and_change_nothing(app: Any) -> None:
    body = await app.connect()
    for token in (body["refresh_token"], body["access_token"], "pdpp_rt_unknown"):
        answer = await app.post("/oauth/revoke", token=token, client_id="pdpp-cli")
        assert (answer.status_code, answer.content) == (200, b"")
    assert app.server.rows(TokenRow)[0].revoked_at_ns is None
    assert app.server.rows(PackageRow)[0].revoked_at_ns is None


async def test_bad_input_has_its_error(app: Any) -> None:
    missing = await app.post("/oauth/revoke", client_id=app.client_id)
    assert missing.json()["error"] == "invalid_request"
    client = await app.post("/oauth/revoke", token="x", client_id="cli_none")
    assert client.json()["error"] == "invalid_client"
