"""Authorization requests: nothing is redirected before client and redirect URI fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from personal_server.storage.authorization_rows import ClientRow, RequestRow

pytestmark = pytest.mark.anyio
CALLBACK = "http://127.0.0.1:5555/cb"


def redirected(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(CALLBACK)
    location = str(answer.headers["location"])
    return parse_qs(urlsplit(location).query, keep_blank_values=True)


async def test_a_good_request_waits_for_the_owner(app: Any) -> None:
    answer = await app.authorize(resource="https://me.example/mcp", unknown="ignored")
    assert answer.headers["location"].startswith("/consent/ar_")
    row = app.server.rows(RequestRow)[0]
    assert (row.flow, row.picker, row.state) == ("code", True, "st")
    assert row.resource == "https://me.example/mcp"


async def test_a_state_has_up_to_8_192_characters(app: Any) -> None:
    whole = "s" * 8_192
    answer = await app.authorize(state=whole)
    assert answer.headers["location"].startswith("/consent/ar_")
    assert app.server.rows(RequestRow)[0].state == whole
    refused = redirected(await app.authorize(state=whole + "s"))
    assert refused["error"] == ["invalid_request"]


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"client_id": None}, "invalid_client"),
        ({"client_id": "cli_unknown"}, "invalid_client"),
        ({"client_id": "https://unknown.example/client.json"}, "invalid_client"),
        ({"redirect_uri": None}, "invalid_redirect_uri"),
        ({"redirect_uri": "https://evil.example/cb"}, "invalid_redirect_uri"),
        ({"redirect_uri": "http://localhost:5555/cb"}, "invalid_redirect_uri"),
        ({"redirect_uri": [CALLBACK, "https://evil.example/cb"]}, "invalid_request"),
        ({"request_uri": "urn:ietf:params:oauth:request_uri:none"}, "invalid_request_uri"),
    ],
)
async def test_errors_before_the_redirect_is_safe_are_pages(
    app: Any, over: dict[str, Any], code: str
) -> None:
    answer = await app.authorize(**over)
    assert answer.status_code == 400
    assert f'data-error="{code}"' in answer.text
    assert "location" not in answer.headers
    assert app.server.rows(RequestRow) == []


async def test_a_caller_that_prefers_json_gets_the_same_error_as_json(app: Any) -> None:
    answer = await app.http.get("/oauth/authorize", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client")


@pytest.mark.parametrize(
    ("over", "error"),
    [
        ({"request": "eyJ"}, "request_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "a" * 42}, "invalid_request"),
        ({"code_challenge": "a" * 44}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"scope": "pdpp:read pdpp:owner"}, "invalid_scope"),
        ({"resource": "https://other.example"}, "invalid_target"),
        ({"resource": "https://me.example/other"}, "invalid_target"),
        ({"resource": "https://me.example/mcp#x"}, "invalid_target"),
        ({"resource": ["https://me.example", "https://me.example/v1"]}, "invalid_target"),
        ({"authorization_details": "{}"}, "invalid_authorization_details"),
        ({"authorization_details": "nonsense"}, "invalid_authorization_details"),
        ({"client_display": "[]"}, "invalid_request"),
        ({"prompt": "none"}, "interaction_required"),
        ({"code_challenge_method": ["S256", "S256"]}, "invalid_request"),
    ],
)
async def test_later_errors_go_back_with_state_and_issuer_once(
    app: Any, over: dict[str, Any], error: str
) -> None:
    found = redirected(await app.authorize(**over))
    assert found["error"] == [error]
    assert found["state"] == ["st"]
    assert found["iss"] == ["https://me.example"]
    assert app.server.rows(RequestRow) == []


async def test_a_shape_error_names_reason_and_place_first(app: Any, details: Any) -> None:
    wrong = details({"type": "https://pdpp.dev/data-access", "source": {"id": "mail"}})
    found = redirected(await app.authorize(authorization_details=wrong))
    assert found["error_description"][0].startswith("malformed /0")


@pytest.mark.parametrize(
    ("asked", "bound"),
    [
        (None, "https://me.example"),
        ("https://me.example/", "https://me.example"),
        ("HTTPS://ME.example/mcp", "https://me.example/mcp"),
        ("https://me.example:443/v1/", "https://me.example/v1"),
        (["https://me.example/mcp", "https://me.example/mcp/"], "https://me.example/mcp"),
    ],
)
async def test_resources_are_bound_in_canonical_form(app: Any, asked: Any, bound: str) -> None:
    assert (await app.authorize(resource=asked)).status_code == 303
    assert app.server.rows(RequestRow)[0].resource == bound


async def test_denial_and_approval_go_back_with_issuer(app: Any) -> None:
    first = (await app.authorize()).headers["location"].removeprefix("/consent/")
    denied = app.server.deny(first)
    assert (denied["error"], denied["state"]) == ("access_denied", "st")
    second = (await app.authorize(state=None)).headers["location"].removeprefix("/consent/")
    approved = app.server.allow(second)
    assert approved.keys() == {"code", "iss"}


async def test_a_pushed_request_leads_to_one_pending_request(app: Any) -> None:
    pushed = await app.post("/oauth/par", **app.parameters())
    assert (pushed.status_code, pushed.json()["expires_in"]) == (201, 300)
    uri = pushed.json()["request_uri"]
    only = {name: None for name in app.parameters() if name != "client_id"}
    first = await app.authorize(**only, request_uri=uri)
    second = await app.authorize(request_uri=uri)
    assert first.headers["location"] == second.headers["location"]
    handle = first.headers["location"].removeprefix("/consent/")
    for value in (uri, handle):
        for name in ("code", "refresh_token", "device_code"):
            form = {"client_id": app.client_id, "code_verifier": "x", name: value}
            grant = {"code": "authorization_code", "refresh_token": "refresh_token"}
            kind = grant.get(name, "urn:ietf:params:oauth:grant-type:device_code")
            answer = await app.post("/oauth/token", grant_type=kind, **form)
            assert answer.status_code == 400
    app.server.allow(handle)
    closed = await app.authorize(request_uri=uri)
    assert closed.status_code == 410
    assert 'data-error="request_closed"' in closed.text


async def test_a_pushed_request_is_its_clients_own_and_ages(app: Any) -> None:
    uri = (await app.post("/oauth/par", **app.parameters())).json()["request_uri"]
    mine = app.client_id
    await app.register()
    other = await app.authorize(request_uri=uri)
    assert 'data-error="invalid_request_uri"' in other.text
    app.client_id = mine
    app.server.now_ns += 301 * 10**9
    late = await app.authorize(request_uri=uri)
    assert 'data-error="invalid_request_uri"' in late.text


async def test_an_opened_pushed_request_lives_a_quarter_of_an_hour(app: Any) -> None:
    uri = (await app.post("/oauth/par", **app.parameters())).json()["request_uri"]
    assert (await app.authorize(request_uri=uri)).status_code == 303
    app.server.now_ns += 800 * 10**9
    assert (await app.authorize(request_uri=uri)).status_code == 303
    app.server.now_ns += 200 * 10**9
    assert (await app.authorize(request_uri=uri)).status_code == 410


@pytest.mark.parametrize(
    ("over", "error", "param"),
    [
        ({"request_uri": "urn:x"}, "invalid_request", "request_uri"),
        ({"redirect_uri": "https://evil.example"}, "invalid_request", "redirect_uri"),
        ({"response_type": "token"}, "unsupported_response_type", None),
        ({"client_id": "cli_unknown"}, "invalid_client", None),
        ({"resource": "https://other.example"}, "invalid_target", "resource"),
    ],
)
async def test_pushed_errors_are_json(
    app: Any, over: dict[str, Any], error: str, param: str | None
) -> None:
    answer = await app.post("/oauth/par", **app.parameters(**over))
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert answer.json().get("param") == param


async def test_a_full_table_of_opened_requests_is_temporarily_unavailable(app: Any) -> None:
    await app.authorize()
    row = app.server.rows(RequestRow)[0]
    with app.server.store.write() as writer:
        for number in range(200):
            writer.insert(replace(row, request_id=f"ar_{number}", opened_at_ns=1))
        writer.delete(RequestRow, RequestRow.request_id.equals(row.request_id))
    found = redirected(await app.authorize())
    assert found["error"] == ["temporarily_unavailable"]


async def test_a_blocked_client_is_unknown_everywhere(app: Any) -> None:
    body = await app.connect()
    app.server.change(
        ClientRow, [ClientRow.blocked_at_ns.to(1)], ClientRow.client_id.equals(app.client_id)
    )
    assert (await app.authorize()).status_code == 400
    assert (await app.refresh(body["refresh_token"])).json()["error"] == "invalid_client"
    pushed = await app.post("/oauth/par", **app.parameters())
    assert pushed.json()["error"] == "invalid_client"


async def test_posting_is_not_a_way_to_ask(app: Any) -> None:
    answer = await app.http.post("/oauth/authorize", data=app.parameters())
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


WEBSITE = "https://stranger.example/cb"


async def of_a_website(app: Any) -> None:
    await app.register(redirect_uris=[WEBSITE])
    app.redirect_uri = WEBSITE


async def test_an_error_of_a_website_that_nobody_approved_is_a_page_and_no_redirect(
    app: Any,
) -> None:
    await of_a_website(app)
    answer = await app.authorize(response_type="token")
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert 'data-error="unsupported_response_type"' in answer.text
    query = urlencode(app.parameters(prompt="none"))
    told = await app.http.get(f"/oauth/authorize?{query}", headers={"Accept": "application/json"})
    assert (told.status_code, told.json()["error"]) == (400, "interaction_required")
    assert WEBSITE not in told.text


async def test_a_website_that_the_owner_approved_gets_its_errors(app: Any) -> None:
    await of_a_website(app)
    await app.connect()
    answer = await app.authorize(response_type="token")
    assert (answer.status_code, answer.headers["location"][: len(WEBSITE)]) == (303, WEBSITE)


CROSS = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
UNSEEN: dict[str, dict[str, str]] = {
    "a picture": CROSS | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    "a script": CROSS | {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
    "a frame": CROSS | {"Sec-Fetch-Dest": "iframe"},
    "a frame of a sister": CROSS | {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "iframe"},
    "ahead": CROSS | {"Sec-Purpose": "prefetch"},
    "ahead of a typed address": {"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch;prerender"},
}


@pytest.mark.parametrize("headers", UNSEEN.values(), ids=UNSEEN)
async def test_no_page_asks_unseen(app: Any, headers: dict[str, str]) -> None:
    app.http.headers.update(headers)
    answer = await app.authorize()
    assert (answer.status_code, app.server.rows(RequestRow)) == (400, [])
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [CROSS, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Mode": "cors"}, {}],
    ids=["a link of a page", "a program opens it", "a program without a browser", "nothing said"],
)
async def test_whatever_is_seen_asks(app: Any, headers: dict[str, str]) -> None:
    app.http.headers.update(headers)
    assert (await app.authorize()).headers["location"].startswith("/consent/ar_")
