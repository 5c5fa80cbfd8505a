"""Client documents and assertions, in the shapes that hosts publish and attackers try."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from joserfc import jwk

from personal_server.consent.client_registration import DEVICE_CODE
from personal_server.storage.authorization_rows import AuditRow, ClientRow, FamilyRow, RequestRow
from server.tests.authorization_server.publishing import (
    JWKS,
    KEY,
    RSA,
    TYPE,
    URL,
    assertion,
    chatgpt,
    claude,
    proof,
    public,
)

pytestmark = pytest.mark.anyio


async def test_a_document_client_without_keys_connects_and_refreshes(document: Any) -> None:
    body = await document.connect(resource="https://me.example/mcp")
    assert (await document.refresh(body["refresh_token"])).status_code == 200
    row = document.server.rows(ClientRow, ClientRow.client_id.equals(URL))[0]
    assert (row.registration, row.name) == ("client_id_metadata_document", "Claude")
    assert len(document.server.web.requests) == 1


async def test_a_client_with_keys_connects_and_refreshes_with_assertions_only(
    document: Any,
) -> None:
    document.server.web.publish(URL, chatgpt())
    code = await document.code()
    assert (await document.redeem(code)).json()["error"] == "invalid_client"
    body = (await document.redeem(code, **proof(document), client_id=None)).json()
    assert document.server.rows(FamilyRow)[0].auth_floor == "private_key_jwt"
    bare = await document.refresh(body["refresh_token"])
    assert bare.json()["error"] == "invalid_client"
    good = await document.refresh(body["refresh_token"], **proof(document, n=1))
    assert good.status_code == 200


async def test_the_floor_of_a_family_outlives_a_laxer_document(document: Any) -> None:
    document.server.web.publish(URL, chatgpt())
    body = (await document.redeem(await document.code(), **proof(document))).json()
    document.server.now_ns += 400 * 10**9
    document.server.web.publish(URL, claude())
    assert (await document.refresh(body["refresh_token"])).json()["error"] == "invalid_client"
    assert "client.metadata_changed" in document.server.events()


async def test_a_list_that_also_names_none_lets_a_client_go_without(document: Any) -> None:
    plural = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "none"]}
    document.server.web.publish(URL, chatgpt(**plural))
    assert (await document.redeem(await document.code())).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "https://app.example/other.json"},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": ["http://127.0.0.1/cb", "http://evil.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_name": 5},
        {"jwks": {"keys": []}},
        {"jwks": {"keys": [{"kty": "oct", "k": "AA"}]}},
        {"jwks": {"keys": [KEY.as_dict(private=True)]}},
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {}}}}}}}}},
    ],
)
async def test_an_unusable_document_is_invalid_client(document: Any, change: Any) -> None:
    document.server.web.publish(URL, claude(**change))
    answer = await document.authorize()
    assert answer.status_code == 400
    assert 'data-error="invalid_client"' in answer.text
    assert document.server.rows(RequestRow) == []


@pytest.mark.parametrize(
    "url",
    [
        "https://app.example",
        "https://app.example/",
        "https://app.example:8443/c.json",
        "https://user@app.example/c.json",
        "https://app.example/a/../c.json",
        "https://app.example/%2e%2e/c.json",
        "https://app.example/c.json#x",
        "https://127.0.0.1/c.json",
        "https://[::1]/c.json",
        "https://localhost/c.json",
        "https://me.example/c.json",
        "https://app.example/" + "c" * 2_048,
        "https://app.example\\@me.example/c.json",
        "https://APP.example/c.json",
    ],
)
async def test_a_client_id_that_is_no_document_url_is_never_fetched(app: Any, url: str) -> None:
    assert (await app.authorize(client_id=url)).status_code == 400
    assert app.server.web.requests == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["192.168.1.1"],
        ["172.16.0.1"],
        ["169.254.169.254"],
        ["100.64.0.1"],
        ["0.0.0.0"],  # noqa: S104 - an address to refuse
        ["224.0.0.1"],
        ["255.255.255.255"],
        ["192.0.2.1"],
        ["::1"],
        ["::"],
        ["fe80::1"],
        ["fc00::1"],
        ["fec0::1"],
        ["ff02::1"],
        ["::ffff:127.0.0.1"],
        ["::ffff:10.0.0.1"],
        ["::127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["64:ff9b:1::a00:1"],
        ["2002:7f00:1::"],
        ["2001:db8::1"],
        ["93.184.216.34", "10.0.0.1"],
        [],
        ["not-an-address"],
    ],
)
async def test_no_connection_is_made_to_an_address_that_is_not_public(
    document: Any, addresses: list[str]
) -> None:
    document.server.web.addresses["app.example"] = addresses
    assert (await document.authorize()).status_code == 400
    assert document.server.web.requests == []


async def test_the_connection_goes_to_the_checked_address_with_the_name_beside(
    document: Any,
) -> None:
    document.server.web.addresses["app.example"] = ["2606:4700::1111", "93.184.216.34"]
    assert (await document.authorize()).status_code == 303
    request = document.server.web.requests[0]
    assert request.url.host == "2606:4700::1111"
    assert request.headers["host"] == "app.example"
    assert request.extensions["sni_hostname"] == "app.example"
    assert "cookie" not in request.headers
    assert "authorization" not in request.headers


async def test_redirects_wrong_types_and_large_bodies_are_refused(document: Any) -> None:
    web = document.server.web
    good = web.pages[URL]
    web.publish(URL, claude(), **{"content-type": "text/html"})
    assert (await document.authorize()).status_code == 400
    document.server.now_ns += 61 * 10**9
    web.publish(URL, claude(padding="x" * 17_000))
    assert (await document.authorize()).status_code == 400
    document.server.now_ns += 61 * 10**9
    web.pages[URL] = type(good)(302, headers={"location": "https://evil.example/c.json"})
    assert (await document.authorize()).status_code == 400
    assert {request.headers["host"] for request in web.requests} == {"app.example"}


async def test_documents_are_kept_for_their_time(document: Any) -> None:
    web = document.server.web
    web.publish(URL, claude(), **{"cache-control": "max-age=1"})
    for _ in range(2):
        assert (await document.authorize()).status_code == 303
    document.server.now_ns += 301 * 10**9
    assert (await document.authorize()).status_code == 303
    assert len(web.requests) == 2


async def test_a_failure_is_not_asked_again_at_once_and_a_refresh_uses_the_copy(
    document: Any,
) -> None:
    body = await document.connect()
    web = document.server.web
    del web.pages[URL]
    document.server.now_ns += 400 * 10**9
    for _ in range(3):
        assert (await document.authorize()).status_code == 400
    assert len(web.requests) == 2
    assert (await document.refresh(body["refresh_token"])).status_code == 200
    document.server.now_ns += 25 * 3_600 * 10**9
    late = await document.refresh(body["refresh_token"])
    assert late.json()["error"] == "invalid_client"


@pytest.mark.parametrize(
    "over",
    [
        {"iss": "https://other.example/c.json"},
        {"sub": "https://other.example/c.json"},
        {"aud": "https://other.example"},
        {"aud": None},
        {"exp": None},
        {"exp": 1},
        {"exp": 9_999_999_999},
        {"iat": 9_999_999_999},
        {"nbf": 9_999_999_999},
        {"jti": None},
        {"jti": 5},
        {"header": {"kid": "unknown"}},
        {"header": {"alg": "RS256", "kid": "r1"}, "key": RSA},
        {"key": jwk.ECKey.generate_key("P-256", private=True)},
    ],
)
async def test_a_wrong_assertion_is_invalid_client(document: Any, over: dict[str, Any]) -> None:
    document.server.web.publish(URL, chatgpt(token_endpoint_auth_signing_alg="ES256"))
    answer = await document.redeem("pdpp_ac_x", **proof(document, **over))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client")
    assert answer.json().keys() == {"error", "error_description", "request_id"}
    assert document.server.rows(AuditRow, AuditRow.event.equals("client.refused"))[-1].detail[
        "check"
    ]


def forged(app: Any) -> str:
    """Signed by HMAC with the published key as its secret."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').decode().rstrip("=")
    signed = f"{head}.{assertion(app).split('.')[1]}"
    mac = hmac.new(KEY.as_pem(private=False), signed.encode(), "sha256").digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


async def test_unsigned_forged_and_malformed_assertions_are_refused(document: Any) -> None:
    document.server.web.publish(URL, chatgpt())
    good = assertion(document)
    unsigned = "eyJhbGciOiJub25lIn0." + good.split(".")[1] + "."
    critical = assertion(document, header={"crit": ["b64"], "b64": True})
    for text in (
        unsigned,
        forged(document),
        critical,
        "nonsense",
        "a.b.c",
        good[:-4],
        "x" * 17_000,
    ):
        form = {"client_assertion_type": TYPE, "client_assertion": text}
        answer = await document.redeem("pdpp_ac_x", **form)
        assert answer.json()["error"] == "invalid_client"


async def test_an_assertion_is_good_once(document: Any) -> None:
    document.server.web.publish(URL, chatgpt())
    form = proof(document)
    assert (await document.redeem("pdpp_ac_x", **form)).json()["error"] == "invalid_grant"
    assert (await document.redeem("pdpp_ac_x", **form)).json()["error"] == "invalid_client"


async def test_a_new_key_is_found_by_one_refetch_a_minute(document: Any) -> None:
    document.server.web.publish(URL, chatgpt())
    code = await document.code()
    assert (await document.redeem("pdpp_ac_x", **proof(document))).json()["error"] == (
        "invalid_grant"
    )
    new = jwk.ECKey.generate_key("P-256", {"kid": "k2"}, private=True)
    document.server.web.publish(JWKS, public(new))
    header = {"kid": "k2"}
    early = await document.redeem(code, **proof(document, key=new, header=header, n=1))
    assert early.json()["error"] == "invalid_client"
    document.server.now_ns += 61 * 10**9
    late = await document.redeem(code, **proof(document, key=new, header=header, n=2))
    assert late.status_code == 200


async def test_documents_can_be_switched_off(document: Any) -> None:
    changed = {"client_metadata_documents": False}
    server = document.server
    server.configuration = type(server.configuration)(
        **{"origins": server.configuration.origins, **changed}
    )
    async with server.client() as http:
        document.http = http
        assert (await document.authorize()).status_code == 400
    assert server.web.requests == []


async def test_a_document_client_may_use_the_device_flow_if_it_says_so(document: Any) -> None:
    document.server.web.publish(URL, claude(grant_types=[DEVICE_CODE]))
    answer = await document.post("/oauth/device_authorization", client_id=URL)
    assert answer.status_code == 200
    assert json.loads(answer.text)["interval"] == 5
