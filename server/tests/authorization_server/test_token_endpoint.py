"""The token endpoint: codes once, refresh tokens in a row, device codes when decided."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from personal_server.granting.retention import sweep
from personal_server.storage.authorization_rows import FamilyRow, GrantRow, TokenRow

pytestmark = pytest.mark.anyio
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
HOUR = 3_600 * 10**9


async def test_a_code_gives_tokens_and_what_they_stand_for(app: Any, details: Any) -> None:
    code = await app.code(authorization_details=details(), resource="https://me.example/mcp")
    answer = await app.redeem(code)
    body = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert body["token_type"] == "Bearer"
    assert body["expires_in"] == 3600
    assert body["scope"] == "pdpp:read"
    assert body["resource"] == "https://me.example/mcp"
    assert body["grant_id"].startswith("grt_")
    assert body["refresh_token"].startswith("pdpp_rt_")
    assert body["authorization_details"][0]["streams"][0]["name"] == "entries"
    current = (await app.current(body["access_token"])).json()
    assert (current["status"], current["grant_id"]) == ("active", body["grant_id"])


@pytest.mark.parametrize(
    "over",
    [
        {"code_verifier": "b" * 64},
        {"redirect_uri": "http://127.0.0.1:5555/other"},
        {"client_id": "pdpp-cli"},
    ],
)
async def test_a_wrong_proof_burns_the_code_and_ends_the_grant(
    app: Any, details: Any, over: dict[str, str]
) -> None:
    code = await app.code(authorization_details=details())
    answer = await app.redeem(code, **over)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert (await app.redeem(code)).json()["error"] == "invalid_grant"
    assert app.server.rows(GrantRow)[0].reason == "not_collected"
    assert app.server.rows(TokenRow) == []


async def test_an_expired_code_is_refused(app: Any, details: Any) -> None:
    code = await app.code(authorization_details=details())
    app.server.now_ns += 120 * 10**9
    assert (await app.redeem(code)).json()["error"] == "invalid_grant"


async def test_a_replayed_code_ends_tokens_and_grant(app: Any, details: Any) -> None:
    code = await app.code(authorization_details=details())
    body = (await app.redeem(code)).json()
    assert (await app.redeem(code)).json()["error"] == "invalid_grant"
    assert (await app.current(body["access_token"])).status_code == 401
    assert (await app.refresh(body["refresh_token"])).json()["error"] == "invalid_grant"
    assert app.server.rows(GrantRow)[0].reason == "code_replay"


async def test_of_two_parallel_redemptions_at_most_one_wins(app: Any, details: Any) -> None:
    code = await app.code(authorization_details=details())
    answers: list[Any] = []

    async def redeem() -> None:
        answers.append(await app.redeem(code))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(redeem)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    assert len(app.server.rows(TokenRow)) == 1


async def test_a_refresh_gives_the_next_pair_of_the_same_access(app: Any) -> None:
    first = await app.connect(scope="pdpp:read offline_access")
    assert first["scope"] == "pdpp:read offline_access"
    second = (await app.refresh(first["refresh_token"])).json()
    assert second["grant_package_id"] == first["grant_package_id"]
    assert second["authorization_details"] == first["authorization_details"]
    assert second["access_token"] != first["access_token"]
    assert app.server.rows(FamilyRow)[0].generation == 2
    assert (await app.current(second["access_token"])).status_code == 200


async def test_a_refresh_token_brought_again_after_its_answer_was_used_ends_everything(
    app: Any,
) -> None:
    first = await app.connect()
    second = (await app.refresh(first["refresh_token"])).json()
    assert (await app.current(second["access_token"])).status_code == 200
    app.server.now_ns += 61 * 10**9
    again = await app.refresh(first["refresh_token"])
    assert again.json()["error"] == "invalid_grant"
    assert again.json()["fresh_authorization_required"] is True
    assert (await app.current(second["access_token"])).status_code == 401
    assert (await app.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"
    assert {row.reason for row in app.server.rows(GrantRow)} == {"refresh_reuse"}


async def test_a_refresh_token_whose_answer_was_lost_is_answered_the_same(app: Any) -> None:
    first = await app.connect()
    second = (await app.refresh(first["refresh_token"])).json()
    app.server.now_ns += 600 * 10**9
    again = (await app.refresh(first["refresh_token"])).json()
    assert again == {**second, "expires_in": 3_000}
    assert (await app.current(again["access_token"])).status_code == 200


async def test_parallel_refreshes_all_get_the_same_answer(app: Any) -> None:
    first = await app.connect()
    answers: list[Any] = []

    async def refresh() -> None:
        answers.append(await app.refresh(first["refresh_token"]))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(refresh)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1


async def test_another_client_cannot_refresh_and_does_no_harm(app: Any) -> None:
    first = await app.connect()
    wrong = await app.refresh(first["refresh_token"], client_id="pdpp-cli")
    assert wrong.json()["error"] == "invalid_grant"
    assert "refresh.wrong_client" in app.server.events()
    assert (await app.refresh(first["refresh_token"])).status_code == 200


async def test_a_refresh_cannot_change_what_was_granted(app: Any, details: Any) -> None:
    first = await app.connect()
    answer = await app.refresh(first["refresh_token"], authorization_details=details())
    assert answer.json()["error"] == "invalid_request"
    other = await app.refresh(first["refresh_token"], resource="https://me.example/v1")
    assert other.json()["error"] == "invalid_target"
    assert (await app.refresh(first["refresh_token"])).status_code == 200


async def test_an_idle_family_is_refused_and_ends_with_the_next_sweep(
    app: Any, details: Any
) -> None:
    code = await app.code({"expiry": "none"}, authorization_details=details())
    first = (await app.redeem(code)).json()
    app.server.now_ns += 91 * 24 * HOUR
    assert (await app.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    assert app.server.rows(GrantRow)[0].reason is None
    sweep(app.server.store, app.server.now_ns)
    assert app.server.rows(GrantRow)[0].reason == "idle"


async def test_a_single_use_grant_gives_one_token_without_refresh(
    app: Any, details: Any, make_entry: Any
) -> None:
    once = details(make_entry(access_mode="single_use"))
    body = await app.connect(authorization_details=once, scope="pdpp:read offline_access")
    assert "refresh_token" not in body
    assert body["scope"] == "pdpp:read"
    assert body["expires_in"] == 86_400
    assert app.server.rows(GrantRow)[0].consumed_at_ns is not None
    assert app.server.rows(FamilyRow) == []


@pytest.mark.parametrize(
    ("over", "error"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"client_id": None}, "invalid_client"),
        ({"client_id": "cli_unknown"}, "invalid_client"),
        ({"code": None}, "invalid_request"),
        ({"code_verifier": None}, "invalid_request"),
        ({"code": "pdpp_ac_nonsense"}, "invalid_grant"),
        ({"resource": "https://other.example"}, "invalid_target"),
        ({"resource": ["https://me.example", "https://me.example/mcp"]}, "invalid_target"),
        ({"code": ["a", "b"]}, "invalid_request"),
        ({"client_assertion_type": "x"}, "invalid_request"),
    ],
)
async def test_bad_input_has_its_error(app: Any, over: dict[str, Any], error: str) -> None:
    answer = await app.redeem("pdpp_ac_none", **over)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert answer.json()["request_id"] == answer.headers["request-id"]


async def test_the_query_and_other_content_types_are_refused(app: Any) -> None:
    query = await app.http.post("/oauth/token?code=x", data={"grant_type": "refresh_token"})
    assert (query.status_code, query.json()["param"]) == (400, "code")
    typed = await app.http.post("/oauth/token", json={"grant_type": "refresh_token"})
    assert (typed.status_code, typed.json()["error"]) == (400, "invalid_request")
    large = await app.http.post("/oauth/token", data={"code": "x" * 140_000})
    assert (large.status_code, large.json()["error"]) == (413, "invalid_request")
    method = await app.http.get("/oauth/token")
    assert (method.status_code, method.headers["allow"]) == (405, "OPTIONS, POST")
