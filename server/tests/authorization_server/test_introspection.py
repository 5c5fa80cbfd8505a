"""Introspection tells resource servers, and nobody else, what a token stands for."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import GrantRow, IntrospectionClientRow, TokenRow
from personal_server.storage.tables import Assignment

pytestmark = pytest.mark.anyio


@pytest.fixture
def ask(app: Any) -> Any:
    row = IntrospectionClientRow(
        caller_id="rs", secret_hash=secret_hash("pdpp_is_x"), name="rs", created_at_ns=0
    )
    with app.server.store.write() as writer:
        writer.insert(row)

    async def introspect(token: str | None, auth: tuple[str, str] = ("rs", "pdpp_is_x")) -> Any:
        form = {"token_type_hint": "x"} if token is None else {"token": token}
        return await app.http.post("/introspect", data=form, auth=auth)

    return introspect


async def test_a_client_token_in_full(app: Any, ask: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    found = (await ask(body["access_token"])).json()
    assert found["active"] is True
    assert found["pdpp_token_kind"] == "client"
    assert found["exp"] - found["iat"] == 3600
    assert found["aud"] == "https://me.example"
    assert found["iss"] == "https://me.example"
    assert found["sub"] == "own_1"
    assert found["grant_id"] == body["grant_id"]
    assert found["authorization_details"] == body["authorization_details"]
    assert found["pdpp"]["context_kind"] == "oauth_rar_0_1"
    assert found["unavailable_connections"] == []


async def test_a_package_lists_its_active_members(app: Any, ask: Any) -> None:
    body = await app.connect()
    revoked = [GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner")]
    app.server.change(GrantRow, revoked, GrantRow.grant_id.equals(body["grant_ids"][0]))
    found = (await ask(body["access_token"])).json()
    package = found["package"]
    assert found["grant_package_id"] == package["package_id"] == body["grant_package_id"]
    assert "authorization_details" not in found
    assert [g["grant_id"] for g in package["grants"]] == [body["grant_ids"][1]]
    assert package["unavailable_connections"][0]["reason"] == "grant_revoked"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ([GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner")], "grant_revoked"),
        ([GrantRow.expires_at_ns.to(1)], "grant_expired"),
        ([GrantRow.grant.to(b"{}")], "grant_invalid"),
    ],
)
async def test_ended_grants_carry_only_their_reason(
    app: Any, ask: Any, details: Any, change: list[Assignment[GrantRow]], reason: str
) -> None:
    body = await app.connect(authorization_details=details())
    app.server.change(GrantRow, change)
    found = (await ask(body["access_token"])).json()
    assert found == {"active": False, "inactive_reason": reason}


async def test_everything_else_is_bare(app: Any, ask: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    assert (await ask("pdpp_at_unknown")).json() == {"active": False}
    assert (await ask(body["refresh_token"])).json() == {"active": False}
    app.server.change(TokenRow, [TokenRow.revoked_at_ns.to(1)])
    assert (await ask(body["access_token"])).json() == {"active": False}
    ended = [GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("client_disconnected")]
    app.server.change(GrantRow, ended)
    assert (await ask(body["access_token"])).json() == {"active": False}


@pytest.mark.parametrize("auth", [("rs", "wrong"), ("other", "pdpp_is_x"), ("", "")])
async def test_credentials_are_needed(ask: Any, app: Any, auth: tuple[str, str]) -> None:
    answer = await ask("pdpp_at_x", auth)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "authentication_error")
    assert answer.headers["www-authenticate"] == 'Basic realm="introspection"'
    assert ("introspection.denied" in app.server.events()) == (auth[0] == "rs")


async def test_wrong_secrets_leave_ten_rows_an_hour_at_most(ask: Any, app: Any) -> None:
    for _ in range(15):
        await ask("pdpp_at_x", ("rs", "wrong"))
    assert app.server.events().count("introspection.denied") == 10
    app.server.now_ns += 3_600 * 10**9
    await ask("pdpp_at_x", ("rs", "wrong"))
    assert app.server.events().count("introspection.denied") == 11


async def test_a_missing_token_is_refused(ask: Any) -> None:
    answer = await ask(None)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
