"""What a token stands for, and how it is ended."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.consent.narrowings import Narrowing
from personal_server.domain.connection import ConnectionStatus
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalChange, LocalGranting
from personal_server.storage.authorization_rows import FamilyRow, GrantRow, PackageRow

pytestmark = pytest.mark.anyio


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"bearer {token}"}


async def owner_token(app: Any) -> str:
    app.sign_owner_in()
    form = {"client_id": "pdpp-owner-cli", "scope": "pdpp:owner"}
    codes = (await app.post("/oauth/device_authorization", **form)).json()
    row = app.server.requesting.find_device(codes["user_code"], OWNER)
    app.server.requesting.approve_owner_device(row.request_id, OWNER)
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    answer = await app.post(
        "/oauth/token",
        grant_type=grant,
        device_code=codes["device_code"],
        client_id="pdpp-owner-cli",
    )
    return answer.json()["access_token"]


OWNER = Acting("owner")


async def test_a_package_shows_its_grants_and_what_cannot_be_read(app: Any) -> None:
    body = await app.connect()
    first, second = body["grant_ids"]
    app.server.change(
        GrantRow,
        [GrantRow.revoked_at_ns.to(app.server.now_ns), GrantRow.reason.to("owner")],
        GrantRow.grant_id.equals(first),
    )
    found = (await app.current(body["access_token"])).json()
    assert (found["kind"], found["status"]) == ("mcp_package", "active")
    assert [g["status"] for g in found["grants"]] == ["revoked", "active"]
    assert found["unavailable_connections"][0]["reason"] == "grant_revoked"
    assert found["unavailable_connections"][0]["next_step"] == "reapprove"
    assert found["grants"][1]["grant_id"] == second


async def test_a_revoked_connection_is_named_while_the_grant_lives(app: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    journal, notes = app.server.catalog.connections
    gone = replace(journal, status=ConnectionStatus.REVOKED)
    app.server.catalog = replace(app.server.catalog, connections=(gone, notes))
    found = (await app.current(body["access_token"])).json()
    assert found["status"] == "active"
    assert found["unavailable_connections"][0]["reason"] == "connection_revoked"


async def test_an_ended_grant_still_tells_why(app: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    ended = [GrantRow.revoked_at_ns.to(app.server.now_ns), GrantRow.reason.to("owner")]
    app.server.change(GrantRow, ended)
    answer = await app.current(body["access_token"])
    assert (answer.status_code, answer.json()["status"]) == (200, "revoked")


async def test_no_unknown_or_expired_bearer_is_challenged(app: Any) -> None:
    body = await app.connect()
    missing = await app.http.get("/grants/current")
    assert missing.status_code == 401
    assert missing.json()["error"]["code"] == "authentication_error"
    assert "error=" not in missing.headers["www-authenticate"]
    unknown = await app.current("pdpp_at_x")
    assert unknown.json()["error"]["code"] == "invalid_token"
    assert 'error="invalid_token"' in unknown.headers["www-authenticate"]
    app.server.now_ns += 3_600 * 10**9
    assert (await app.current(body["access_token"])).status_code == 401


async def test_the_bearer_ends_its_own_grant_and_again(app: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    path = f"/grants/{body['grant_id']}/revoke"
    first = await app.http.post(path, headers=bearer(body["access_token"]))
    assert first.json()["object"] == "grant_state"
    assert first.json()["status"] == "revoked"
    app.server.now_ns += 10**9
    again = await app.http.post(path, headers=bearer(body["access_token"]))
    assert again.json() == first.json()
    assert (await app.current(body["access_token"])).status_code == 401
    assert app.server.rows(FamilyRow)[0].reason == "client_disconnected"


async def test_a_package_ends_whole_and_its_bearer_cannot_end_one_member(app: Any) -> None:
    body = await app.connect()
    member = f"/grants/{body['grant_ids'][0]}/revoke"
    assert (await app.http.post(member, headers=bearer(body["access_token"]))).status_code == 404
    whole = f"/grant-packages/{body['grant_package_id']}/revoke"
    answer = await app.http.post(whole, headers=bearer(body["access_token"]))
    assert answer.json()["object"] == "grant_package_state"
    assert {row.reason for row in app.server.rows(GrantRow)} == {"client_disconnected"}


async def test_the_owner_ends_anything_even_what_cannot_be_read(app: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    app.server.change(GrantRow, [GrantRow.grant.to(b"{}")])
    owner = await owner_token(app)
    path = f"/grants/{body['grant_id']}/revoke"
    answer = await app.http.post(path, headers=bearer(owner))
    assert answer.json()["status"] == "revoked"
    unknown = await app.http.post("/grants/grt_none/revoke", headers=bearer(owner))
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")
    assert (await app.http.post(path)).status_code == 401


@pytest.mark.parametrize("by", ["owner", "client"])
async def test_an_id_from_before_a_change_ends_the_access_that_lives(
    app: Any, details: Any, by: str
) -> None:
    body = await app.connect(authorization_details=details())
    old = body["grant_id"]
    server = app.server
    granting = LocalGranting(server.store, lambda: server.catalog, server.clock, server.bytes_of)
    asked = LocalChange(old, Narrowing(expiry="30d"))
    new = granting.change(asked, granting.review_change(asked), OWNER).grant_id
    token = await owner_token(app) if by == "owner" else body["access_token"]
    answer = await app.http.post(f"/grants/{old}/revoke", headers=bearer(token))
    assert (answer.json()["grant_id"], answer.json()["status"]) == (new, "revoked")
    assert all(row.reason is not None for row in server.rows(GrantRow))


async def test_an_owner_session_ends_too(server: Any, app: Any) -> None:
    body = await app.connect()

    def signed_in(request: object) -> bool:
        return True

    async with server.client(owner_session=signed_in) as http:
        path = f"/grant-packages/{body['grant_package_id']}/revoke"
        assert (await http.post(path)).json()["status"] == "revoked"
    assert server.rows(PackageRow)[0].reason == "owner"
    current = (await app.current(body["access_token"])).json()
    assert current["status"] == "revoked"


async def test_an_expired_grant_stays_expired(app: Any, details: Any) -> None:
    body = await app.connect(authorization_details=details())
    app.server.change(GrantRow, [GrantRow.expires_at_ns.to(app.server.now_ns)])
    owner = await owner_token(app)
    answer = await app.http.post(f"/grants/{body['grant_id']}/revoke", headers=bearer(owner))
    assert answer.json()["status"] == "expired"
    assert app.server.rows(GrantRow)[0].reason is None
