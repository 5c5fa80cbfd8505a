"""Access that lasts: who gets a refresh token, and what makes a refresh fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from personal_server.storage.authorization_rows import ClientRow, FamilyRow, GrantRow, PackageRow
from server.tests.authorization_server.application.endpoints import DETAILS
from server.tests.authorization_server.conftest import CALLBACK, DEVICE, NOTES, OWNER, entry

pytestmark = pytest.mark.anyio
URL = "https://app.example/client.json"
DAY = 86_400 * 10**9
KINDS = ("dynamic", "document", "pre_registered")
PACKAGE = json.dumps([entry(), entry(NOTES)])


async def become(app: Any, kind: str, *, device: bool) -> None:
    """The client is of one registration; it names no more grant types than it has to."""
    grant_types = [DEVICE] if device else ["authorization_code"]
    if kind == "pre_registered":
        app.client_id, app.redirect_uri = "pdpp-cli", "http://127.0.0.1:5555/callback"
    elif kind == "document":
        published = {"client_id": URL, "redirect_uris": [CALLBACK], "grant_types": grant_types}
        app.server.web.publish(URL, published)
        app.client_id = URL
    else:
        await app.register(grant_types=grant_types)


async def collected(app: Any, **over: str) -> dict[str, Any]:
    """What the device flow gives when everything is allowed."""
    asking = {"client_id": app.client_id, **over}
    codes = (await app.post("/oauth/device_authorization", **asking)).json()
    found = app.server.requesting.find_device(codes["user_code"], OWNER)
    app.server.allow(found.request_id)
    form = {"grant_type": DEVICE, "device_code": codes["device_code"]}
    return (await app.post("/oauth/token", client_id=app.client_id, **form)).json()


@pytest.mark.parametrize("scope", [None, "pdpp:read", "pdpp:read offline_access", "openid"])
@pytest.mark.parametrize("details", [None, DETAILS, PACKAGE], ids=["picker", "grant", "package"])
@pytest.mark.parametrize("device", [False, True], ids=["code", "device"])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_continuous_access_can_be_refreshed(
    app: Any, kind: str, device: bool, details: str | None, scope: str | None
) -> None:
    await become(app, kind, device=device)
    asked = {"authorization_details": details, "scope": scope}
    wanted = {name: value for name, value in asked.items() if value is not None}
    tokens = await (collected(app, **wanted) if device else app.connect(**wanted))
    assert 0 < tokens["expires_in"] <= 3_600
    offline = " offline_access" if scope and "offline_access" in scope else ""
    assert tokens["scope"] == f"pdpp:read{offline}"
    again = (await app.refresh(tokens["refresh_token"])).json()
    assert 0 < again["expires_in"] <= 3_600
    assert again["refresh_token"] != tokens["refresh_token"]
    named = ("grant_id", "grant_package_id", "grant_ids", "authorization_details", "resource")
    assert {n: again.get(n) for n in named} == {n: tokens.get(n) for n in named}


@pytest.mark.parametrize("device", [False, True], ids=["code", "device"])
async def test_access_for_once_is_never_refreshed(app: Any, device: bool) -> None:
    await become(app, "pre_registered", device=device)
    once = {"authorization_details": json.dumps([entry(access_mode="single_use")])}
    tokens = await (collected(app, **once) if device else app.connect(**once))
    assert "refresh_token" not in tokens
    assert tokens["expires_in"] == 86_400


async def connected_until(app: Any, expiry: str) -> dict[str, Any]:
    """Tokens of a grant with this end."""
    code = await app.code({"expiry": expiry}, authorization_details=DETAILS)
    return (await app.redeem(code)).json()


async def refused(app: Any, token: str, error: str = "invalid_grant") -> None:
    answer = await app.refresh(token)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize("reason", ["owner", "replaced", "client_blocked"])
async def test_a_refresh_needs_its_grant(app: Any, reason: str) -> None:
    tokens = await app.connect(authorization_details=DETAILS)
    app.server.change(
        GrantRow, [GrantRow.revoked_at_ns.to(app.server.now_ns), GrantRow.reason.to(reason)]
    )
    await refused(app, tokens["refresh_token"])


async def test_a_refresh_needs_its_package(app: Any) -> None:
    tokens = await app.connect(authorization_details=PACKAGE)
    one, other = tokens["grant_ids"]
    ended = [GrantRow.revoked_at_ns.to(app.server.now_ns), GrantRow.reason.to("owner")]
    app.server.change(GrantRow, ended, GrantRow.grant_id.equals(one))
    tokens = (await app.refresh(tokens["refresh_token"])).json()
    app.server.change(GrantRow, ended, GrantRow.grant_id.equals(other))
    await refused(app, tokens["refresh_token"])


async def test_a_refresh_fails_when_the_package_was_ended(app: Any) -> None:
    tokens = await app.connect(authorization_details=PACKAGE)
    app.server.change(
        PackageRow, [PackageRow.revoked_at_ns.to(app.server.now_ns), PackageRow.reason.to("owner")]
    )
    await refused(app, tokens["refresh_token"])


async def test_a_refresh_needs_its_client(app: Any) -> None:
    tokens = await app.connect(authorization_details=DETAILS)
    app.server.change(
        ClientRow, [ClientRow.blocked_at_ns.to(1)], ClientRow.client_id.equals(app.client_id)
    )
    await refused(app, tokens["refresh_token"], "invalid_client")


async def test_no_token_outlives_its_grant(app: Any) -> None:
    tokens = await connected_until(app, "30d")
    app.server.now_ns += 30 * DAY - 600 * 10**9
    tokens = (await app.refresh(tokens["refresh_token"])).json()
    assert tokens["expires_in"] == 600
    app.server.now_ns += 600 * 10**9
    await refused(app, tokens["refresh_token"])
    assert (await app.current(tokens["access_token"])).json()["status"] == "expired"


async def test_a_family_lives_while_it_is_used_within_ninety_days(app: Any) -> None:
    tokens = await connected_until(app, "none")
    for _ in range(5):
        app.server.now_ns += 89 * DAY
        tokens = (await app.refresh(tokens["refresh_token"])).json()
    app.server.now_ns += 90 * DAY
    await refused(app, tokens["refresh_token"])


async def test_an_owner_family_ends_ninety_days_after_it_began(app: Any) -> None:
    app.sign_owner_in()
    app.client_id = "pdpp-owner-cli"
    codes = (
        await app.post("/oauth/device_authorization", client_id=app.client_id, scope="pdpp:owner")
    ).json()
    found = app.server.requesting.find_device(codes["user_code"], OWNER)
    app.server.requesting.approve_owner_device(found.request_id, OWNER)
    form = {"grant_type": DEVICE, "device_code": codes["device_code"]}
    tokens = (await app.post("/oauth/token", client_id=app.client_id, **form)).json()
    assert tokens["expires_in"] == 3_600
    for _ in range(2):
        app.server.now_ns += 44 * DAY
        tokens = (await app.refresh(tokens["refresh_token"])).json()
    app.server.now_ns += 2 * DAY
    await refused(app, tokens["refresh_token"])
    assert len(app.server.rows(FamilyRow)) == 1
