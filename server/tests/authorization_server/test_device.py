"""The device flow, for grants and for the owner profile."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pdpp_kernel.oauth_errors import ApprovalConflict, InvalidUserCode
from personal_server.granting.audit import Acting
from personal_server.storage.authorization_rows import GrantRow, RequestRow, TokenRow

pytestmark = pytest.mark.anyio
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
SECOND = 10**9
OWNER = Acting("owner")


async def begin(app: Any, **over: Any) -> dict[str, Any]:
    app.client_id = over.pop("client_id", "pdpp-cli")
    answer = await app.post("/oauth/device_authorization", client_id=app.client_id, **over)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def poll(app: Any, codes: dict[str, Any], **over: Any) -> Any:
    form = {"device_code": codes["device_code"], "client_id": app.client_id, **over}
    return await app.post("/oauth/token", grant_type=DEVICE, **form)


async def test_a_device_waits_slows_down_and_collects_once(app: Any, details: Any) -> None:
    codes = await begin(app, authorization_details=details(), resource="https://me.example/mcp")
    assert codes["verification_uri_complete"].endswith(codes["user_code"])
    assert (codes["expires_in"], codes["interval"]) == (600, 5)
    assert (await poll(app, codes)).json()["error"] == "authorization_pending"
    assert (await poll(app, codes)).json()["error"] == "slow_down"
    app.server.now_ns += 9 * SECOND
    slower = await poll(app, codes)
    assert (slower.json()["error"], slower.json()["interval"]) == ("slow_down", 15)
    app.server.now_ns += 15 * SECOND
    assert (await poll(app, codes)).json()["error"] == "authorization_pending"
    typed = codes["user_code"].lower().replace("-", " ")
    app.server.allow(app.server.requesting.find_device(typed, OWNER).request_id)
    body = (await poll(app, codes)).json()
    assert body["grant_id"].startswith("grt_")
    assert body["refresh_token"]
    assert (await poll(app, codes)).json()["error"] == "invalid_grant"
    assert app.server.rows(RequestRow)[0].status == "redeemed"


async def test_denied_expired_and_foreign_codes(app: Any) -> None:
    codes = await begin(app)
    app.server.granting.deny(app.server.rows(RequestRow)[0].request_id, OWNER)
    assert (await poll(app, codes)).json()["error"] == "access_denied"
    other = await begin(app)
    assert (await poll(app, other, client_id="pdpp-owner-cli")).json()["error"] == "invalid_grant"
    app.server.now_ns += 601 * SECOND
    assert (await poll(app, other)).json()["error"] == "expired_token"
    assert (await poll(app, {"device_code": "pdpp_dc_x"})).json()["error"] == "invalid_grant"


async def test_an_approval_near_the_end_can_still_be_collected(app: Any, details: Any) -> None:
    codes = await begin(app, authorization_details=details())
    app.server.now_ns += 599 * SECOND
    app.server.allow(app.server.rows(RequestRow)[0].request_id)
    app.server.now_ns += 100 * SECOND
    assert (await poll(app, codes)).status_code == 200


async def test_of_two_parallel_polls_one_collects(app: Any, details: Any) -> None:
    codes = await begin(app, authorization_details=details())
    app.server.allow(app.server.rows(RequestRow)[0].request_id)
    answers: list[Any] = []

    async def collect() -> None:
        answers.append(await poll(app, codes))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(collect)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    assert len(app.server.rows(TokenRow)) == 1


async def test_a_wrong_user_code_has_one_wording(app: Any) -> None:
    await begin(app)
    used = app.server.rows(RequestRow)[0]
    app.server.change(
        RequestRow, [RequestRow.status.to("denied")], RequestRow.request_id.equals(used.request_id)
    )
    with pytest.raises(InvalidUserCode):
        app.server.requesting.find_device("XXXX-XXXX", OWNER)
    assert "device.wrong_code" in app.server.events()


async def test_the_owner_profile_is_for_marked_clients_and_never_for_mcp(app: Any) -> None:
    async def ask(**form: Any) -> Any:
        return await app.post("/oauth/device_authorization", scope="pdpp:owner", **form)

    assert (await ask(client_id="pdpp-cli")).json()["error"] == "unauthorized_client"
    mcp = await ask(client_id="pdpp-owner-cli", resource="https://me.example/mcp")
    assert mcp.json()["error"] == "invalid_target"
    both = await ask(client_id="pdpp-owner-cli", authorization_details="[]")
    assert both.status_code == 400


async def test_the_owner_profile_starts_where_the_owner_is_signed_in_and_nowhere_else(
    app: Any,
) -> None:
    form = {"client_id": "pdpp-owner-cli", "scope": "pdpp:owner"}
    refused = await app.post("/oauth/device_authorization", **form)
    assert (refused.status_code, refused.json()["error"]) == (400, "unauthorized_client")
    app.sign_owner_in("198.51.100.7")
    refused = await app.post("/oauth/device_authorization", **form)
    assert refused.json()["error"] == "unauthorized_client"
    app.sign_owner_in()
    assert (await app.post("/oauth/device_authorization", **form)).status_code == 200
    app.server.now_ns += 13 * 3_600 * SECOND
    refused = await app.post("/oauth/device_authorization", **form)
    assert refused.json()["error"] == "unauthorized_client"


async def test_on_a_loopback_origin_the_owner_profile_starts_at_once(app: Any) -> None:
    app.server.origin = "http://127.0.0.1:7662"
    async with app.server.client() as app.http:
        codes = await begin(app, client_id="pdpp-owner-cli", scope="pdpp:owner")
    assert codes["user_code"]


@pytest.mark.parametrize(
    "page",
    [
        {"origin": "https://attacker.example"},
        {"origin": "null"},
        {"origin": "https://me.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_no_page_acts_as_the_owners_program(app: Any, page: dict[str, str]) -> None:
    app.sign_owner_in()
    codes = await begin(app, client_id="pdpp-owner-cli", scope="pdpp:owner")
    handle = app.server.requesting.find_device(codes["user_code"], OWNER).request_id
    app.server.requesting.approve_owner_device(handle, OWNER)
    client = {"client_id": "pdpp-owner-cli"}
    forms = {
        "/oauth/device_authorization": {**client, "scope": "pdpp:owner"},
        "/oauth/token": {**client, "grant_type": DEVICE, "device_code": codes["device_code"]},
        "/oauth/revoke": {**client, "token": codes["device_code"]},
    }
    for path, form in forms.items():
        refused = await app.http.post(path, data=form, headers=page)
        assert (refused.status_code, refused.json()["error"]) == (400, "unauthorized_client")
        assert not [name for name in refused.headers if name.startswith("access-control")]
    assert (await poll(app, codes)).json()["scope"] == "pdpp:owner"


async def test_answers_of_the_owners_program_are_readable_by_no_page(app: Any) -> None:
    app.sign_owner_in()
    form = {"client_id": "pdpp-owner-cli", "scope": "pdpp:owner"}
    own = await app.http.post(
        "/oauth/device_authorization", data=form, headers={"sec-fetch-site": "none"}
    )
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers
    other = await app.post("/oauth/device_authorization", client_id="pdpp-cli")
    assert other.headers["access-control-allow-origin"] == "*"


async def test_the_owner_profile_gives_an_owner_token(app: Any) -> None:
    app.sign_owner_in()
    codes = await begin(app, client_id="pdpp-owner-cli", scope="pdpp:owner")
    handle = app.server.requesting.find_device(codes["user_code"], OWNER).request_id
    app.server.requesting.approve_owner_device(handle, OWNER)
    with pytest.raises(ApprovalConflict):
        app.server.requesting.approve_owner_device(handle, OWNER)
    body = (await poll(app, codes)).json()
    assert (body["scope"], body["resource"]) == ("pdpp:owner", "https://me.example/v1")
    assert "authorization_details" not in body
    assert app.server.rows(GrantRow) == []
    assert (await app.current(body["access_token"])).status_code == 403
    again = await app.refresh(body["refresh_token"], client_id="pdpp-owner-cli")
    assert again.status_code == 200


@pytest.mark.parametrize(
    ("over", "error"),
    [
        ({"client_id": None, "scope": "x"}, "invalid_client"),
        ({"client_id": "cli_x"}, "invalid_client"),
        ({"resource": "https://other.example"}, "invalid_target"),
        ({"authorization_details": "{}"}, "invalid_authorization_details"),
    ],
)
async def test_bad_device_requests_have_their_error(
    app: Any, over: dict[str, Any], error: str
) -> None:
    answer = await app.post("/oauth/device_authorization", **{"client_id": "pdpp-cli", **over})
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_a_client_without_the_device_type_may_not_use_it(app: Any) -> None:
    answer = await app.post("/oauth/device_authorization", client_id=app.client_id)
    assert answer.json()["error"] == "unauthorized_client"
