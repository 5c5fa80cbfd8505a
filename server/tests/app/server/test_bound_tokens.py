"""Tokens bound to a key at `/v1` and `/mcp`, over the whole server: one rule at both doors."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from personal_server.storage.authorization_rows import TokenRow
from server.tests.app.whole import ORIGIN, Whole, whole
from server.tests.console.browsing import Page, marked
from server.tests.console.household import mail_request
from tests.proving import SECONDS, Holder

V1, MCP = "/v1/schema", "/mcp"
DOORS = (V1, MCP)


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as found:
        found.clock.now_ns += 60 * SECONDS
        yield found


@pytest.fixture
def holder() -> Holder:
    return Holder()


def connected(site: Whole, holder: Holder) -> str:
    """A token that is bound to the holder's key."""
    site.holder = holder
    body = site.connect(mail_request())
    assert body["token_type"] == "DPoP"
    return body["access_token"]


def call(site: Whole, door: str, token: str, *proofs: str, scheme: str = "DPoP") -> Page:
    headers = {"accept": "application/json", "authorization": f"{scheme} {token}"}
    return site.client.get(door, **headers, **({"dpop": proofs[0]} if proofs else {}))


def told(site: Whole, page: Page) -> tuple[int, str]:
    return page.status, site.body(page)["error"]["code"]


def admitted(page: Page) -> bool:
    """`/mcp` answers a GET that it admitted with 405."""
    return page.status in (200, 405)


@pytest.mark.parametrize("door", DOORS)
def test_a_stolen_token_opens_nothing_without_its_key(
    site: Whole, holder: Holder, door: str
) -> None:
    token = connected(site, holder)

    def proof(by: Holder, **over: Any) -> str:
        return by.proof("GET", f"{ORIGIN}{door}", site.clock(), token=token, **over)

    for page in (
        call(site, door, token, scheme="Bearer"),
        call(site, door, token, proof(holder), scheme="Bearer"),
        call(site, door, token, proof(Holder())),
    ):
        assert told(site, page) == (401, "invalid_token")
    assert admitted(call(site, door, token, proof(holder)))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("reason", "claims"),
    [
        ("htm", {"htm": "POST"}),
        ("htu", {"htu": f"{ORIGIN}/v1/streams"}),
        ("htu", {"htu": "https://elsewhere.example/mcp"}),
        ("ath", {"ath": "A" * 43}),
        ("ath", {"ath": None}),
        ("jti", {"jti": ""}),
        ("typ", {"header": {"typ": "JWT"}}),
    ],
)
def test_a_bad_proof_is_refused_with_its_reason(
    site: Whole, holder: Holder, door: str, reason: str, claims: dict[str, Any]
) -> None:
    token = connected(site, holder)
    url = f"{ORIGIN}{door}"
    page = call(site, door, token, holder.proof("GET", url, site.clock(), token=token, **claims))
    assert told(site, page) == (401, "invalid_dpop_proof")
    assert site.body(page)["error"]["reason"] == reason
    challenge = page.headers["www-authenticate"]
    assert challenge.startswith("DPoP ")
    assert 'error="invalid_dpop_proof"' in challenge


@pytest.mark.parametrize("door", DOORS)
def test_a_proof_is_good_once(site: Whole, holder: Holder, door: str) -> None:
    token = connected(site, holder)
    proof = holder.proof("GET", f"{ORIGIN}{door}", site.clock(), token=token)
    assert admitted(call(site, door, token, proof))
    page = call(site, door, token, proof)
    assert site.body(page)["error"]["reason"] == "replay"


@pytest.mark.parametrize("door", DOORS)
def test_an_old_proof_is_asked_for_a_nonce(site: Whole, holder: Holder, door: str) -> None:
    token = connected(site, holder)
    url = f"{ORIGIN}{door}"
    old = holder.proof("GET", url, site.clock(), token=token)
    site.clock.now_ns += 61 * SECONDS
    asked = call(site, door, token, old)
    assert told(site, asked) == (401, "use_dpop_nonce")
    holder.nonce = asked.headers["dpop-nonce"]
    good = holder.proof("GET", url, site.clock() - 3_600 * SECONDS, token=token)
    assert admitted(call(site, door, token, good))


@pytest.mark.parametrize("door", DOORS)
def test_without_a_token_both_ways_are_offered(site: Whole, door: str) -> None:
    challenge = site.call(door, None).headers["www-authenticate"]
    assert challenge.startswith("Bearer ")
    assert challenge.endswith(', DPoP algs="ES256 Ed25519"')


def test_a_proof_speaks_of_the_address_without_its_query(site: Whole, holder: Holder) -> None:
    token = connected(site, holder)
    proof = holder.proof("GET", f"{ORIGIN}{V1}", site.clock(), token=token)
    assert call(site, f"{V1}?view=compact", token, proof).status == 200


def test_a_bearer_is_not_taken_with_a_proof(site: Whole, holder: Holder) -> None:
    token = site.connect(mail_request())["access_token"]
    for door in DOORS:
        proof = holder.proof("GET", f"{ORIGIN}{door}", site.clock(), token=token)
        assert told(site, call(site, door, token, proof)) == (401, "invalid_token")


def test_a_refused_proof_says_nothing_of_an_ended_grant(site: Whole, holder: Holder) -> None:
    token = connected(site, holder)
    (row,) = site.owner_rows(TokenRow)
    page = site.owner.get(f"/owner/access/{row.grant_id}")
    assert site.owner.submit(page, f"/owner/access/{row.grant_id}/revoke").status == 303
    for door in DOORS:
        proof = holder.proof("GET", f"{ORIGIN}{door}", site.clock(), token=token)
        assert told(site, call(site, door, token, scheme="Bearer"))[1] == "invalid_token"
        assert told(site, call(site, door, token, proof))[1] == "grant_revoked"


def test_the_owner_sees_what_opens_a_token(site: Whole, holder: Holder) -> None:
    connected(site, holder)
    (row,) = site.owner_rows(TokenRow)
    assert marked(site.owner.get(f"/owner/access/{row.grant_id}"), "token-key")
    site.holder = None
    grant_id = site.connect(mail_request())["grant_id"]
    assert marked(site.owner.get(f"/owner/access/{grant_id}"), "token-bearer")


def test_behind_a_proxy_a_proof_names_the_public_origin(tmp_path: Path, holder: Holder) -> None:
    origin = "https://me.example"
    with whole(tmp_path, origin, public_url=origin) as site:
        site.clock.now_ns += 60 * SECONDS
        token = connected(site, holder)
        inside = holder.proof("GET", f"http://127.0.0.1:7662{V1}", site.clock(), token=token)
        assert site.body(call(site, V1, token, inside))["error"]["reason"] == "htu"
        outside = holder.proof("GET", f"{origin}{V1}", site.clock(), token=token)
        assert call(site, V1, token, outside).status == 200


def test_what_is_advertised_holds(site: Whole) -> None:
    server = site.body(site.client.get("/.well-known/oauth-authorization-server"))
    algorithms = ["ES256", "Ed25519"]
    assert server["dpop_signing_alg_values_supported"] == algorithms
    for path in ("", "/mcp"):
        found = site.body(site.client.get(f"/.well-known/oauth-protected-resource{path}"))
        assert found["dpop_signing_alg_values_supported"] == algorithms
        assert found["dpop_bound_access_tokens_required"] is False
