"""Dynamic registration replaces rather than refuses, and never gives a secret."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.storage.authorization_rows import ClientRow

pytestmark = pytest.mark.anyio
CALLBACK = "http://127.0.0.1/cb"


async def test_a_talkative_client_is_registered_as_what_it_can_be(app: Any) -> None:
    answer = await app.register(
        client_name="Notes app",
        redirect_uris=[CALLBACK, "javascript:alert(1)", "cursor://anysphere.cursor/cb"],
        token_endpoint_auth_method="client_secret_post",
        grant_types=["authorization_code", "password"],
        scope="pdpp:read email",
        contacts=["me@app.example"],
        software_id="x",
        jwks_uri="https://app.example/jwks",
        application_type="web",
        client_uri=None,
        logo_uri="",
        tos_uri="http://app.example/tos",
        policy_uri="https://app.example/policy",
    )
    body = answer.json()
    assert answer.status_code == 201
    assert body["token_endpoint_auth_method"] == "none"
    assert body["redirect_uris"] == [CALLBACK, "cursor://anysphere.cursor/cb"]
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["application_type"] == "native"
    assert body["scope"] == "pdpp:read"
    assert body["policy_uri"] == "https://app.example/policy"
    absent = {"client_secret", "client_uri", "logo_uri", "tos_uri", "jwks_uri"}
    assert not absent & body.keys()
    assert not {"registration_access_token", "registration_client_uri"} & body.keys()


@pytest.mark.parametrize(
    ("over", "error", "param"),
    [
        ({"redirect_uris": ["javascript:x"]}, "invalid_redirect_uri", "redirect_uris"),
        ({"redirect_uris": []}, "invalid_redirect_uri", "redirect_uris"),
        ({"redirect_uris": "x"}, "invalid_client_metadata", "redirect_uris"),
        ({"redirect_uris": [1]}, "invalid_client_metadata", "redirect_uris"),
        ({"grant_types": ["password"]}, "invalid_client_metadata", "grant_types"),
        ({"grant_types": ["refresh_token"]}, "invalid_client_metadata", "grant_types"),
        ({"client_name": 5}, "invalid_client_metadata", "client_name"),
        ({"client_name": "x" * 201}, "invalid_client_metadata", "client_name"),
    ],
)
async def test_what_cannot_be_repaired_is_refused(
    app: Any, over: dict[str, Any], error: str, param: str
) -> None:
    answer = await app.register(**over)
    body = answer.json()
    assert (answer.status_code, body["error"], body["param"]) == (400, error, param)


TEXTS = (
    "client_name",
    "application_type",
    "scope",
    "client_uri",
    "logo_uri",
    "policy_uri",
    "tos_uri",
    "software_id",
    "software_version",
)
LISTS = ("redirect_uris", "grant_types", "response_types", "contacts")


@pytest.mark.parametrize("member", [*TEXTS, *LISTS])
async def test_each_used_member_has_its_type(app: Any, member: str) -> None:
    before = len(app.server.rows(ClientRow))
    wrong: list[object] = [1, True, {}, [1], [[]]]
    for value in [*wrong, ["x"] if member in TEXTS else "x"]:
        answer = await app.register(**{member: value})
        body = answer.json()
        assert (answer.status_code, body["error"]) == (400, "invalid_client_metadata")
        assert (body["param"], body["request_id"]) == (member, answer.headers["request-id"])
    assert len(app.server.rows(ClientRow)) == before
    for value in (None, ""):
        answer = await app.register(**{member: value})
        assert answer.status_code == (400 if member == "redirect_uris" else 201)


async def test_a_registration_has_at_most_thirty_two_kibibytes(app: Any) -> None:
    large = await app.register(unused="x" * 33_000)
    assert (large.status_code, large.json()["error"]) == (413, "invalid_request")
    assert (await app.register(unused="x" * 30_000)).status_code == 201
    form = await app.http.post("/oauth/register", data={"client_name": "x"})
    assert (form.status_code, form.json()["error"]) == (400, "invalid_request")


async def test_a_member_that_is_unusable_is_dropped_or_counted(app: Any) -> None:
    many = [f"http://127.0.0.1/{number}" for number in range(21)]
    refused = await app.register(redirect_uris=many)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")
    tricks = [
        "http://evil.example/cb",
        "https://user@app.example/cb",
        "https://app.example/cb#x",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://app.example/" + "x" * 2_048,
    ]
    kept = await app.register(redirect_uris=[*tricks, "https://app.example/cb"])
    assert kept.json()["redirect_uris"] == ["https://app.example/cb"]
    assert kept.json()["application_type"] == "web"


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'"x"'])
async def test_a_body_that_is_no_object_is_refused(app: Any, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await app.http.post("/oauth/register", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("name", ["", " ", "\u3164\u2800", "\u200b \u034f\uffa0"])
async def test_a_name_of_which_nothing_is_seen_is_none(app: Any, name: str) -> None:
    answer = await app.register(client_name=name)
    assert answer.json()["client_name"] == "Unnamed app"


async def test_a_device_client_needs_no_redirect(app: Any) -> None:
    device = "urn:ietf:params:oauth:grant-type:device_code"
    answer = await app.register(redirect_uris=[], grant_types=[device])
    assert answer.json()["grant_types"] == [device, "refresh_token"]


async def test_registration_can_be_switched_off(server: Any) -> None:
    server.configuration = replace(server.configuration, dynamic_registration=False)
    async with server.client() as http:
        answer = await http.post("/oauth/register", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
        document = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert "registration_endpoint" not in document
    assert "dynamic" not in document["pdpp_registration_modes_supported"]


async def test_a_full_table_makes_room_for_the_newest(app: Any) -> None:
    row = app.server.rows(ClientRow, ClientRow.registration.equals("dynamic"))[0]
    with app.server.store.write() as writer:
        for number in range(999):
            copy = dataclasses.replace(row, client_id=f"cli_{number}", client_ref=f"clr_{number}")
            writer.insert(copy)
    full = await app.register()
    assert full.status_code == 429
    app.server.now_ns += 3_601 * 10**9
    assert (await app.register()).status_code == 201
    assert len(app.server.rows(ClientRow, ClientRow.registration.equals("dynamic"))) == 1_000
