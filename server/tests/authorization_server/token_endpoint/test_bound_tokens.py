"""Tokens bound to a key: asked for, issued, refreshed, told of (RFC 9449)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import pytest

from personal_server.granting.clients import add_introspection_client
from personal_server.storage.authorization_rows import FamilyRow, GrantRow, TokenRow
from server.tests.authorization_server.conftest import ORIGIN, OWNER, VERIFIER
from server.tests.authorization_server.publishing import URL, assertion, chatgpt, claude
from tests.proving import SECONDS, Holder

pytestmark = pytest.mark.anyio
TOKEN_URL = f"{ORIGIN}/oauth/token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass
class Prover:
    """An app that proves its key."""

    app: Any
    holder: Holder = field(default_factory=Holder)

    def headers(self, method: str, url: str, **over: Any) -> dict[str, str]:
        now_ns = self.app.server.now_ns
        return {"DPoP": self.holder.proof(method, url, now_ns, **over)}

    async def post(self, path: str, form: dict[str, Any], **over: Any) -> httpx2.Response:
        url = over.pop("url", f"{ORIGIN}{path}")
        headers = self.headers("POST", url, **over)
        return await self.app.http.post(path, data=form, headers=headers)

    async def redeem(self, code: str, **over: Any) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": VERIFIER,
            "client_id": self.app.client_id,
        }
        return await self.post("/oauth/token", form, **over)

    async def refresh(
        self, token: str, form: dict[str, str] | None = None, **over: Any
    ) -> httpx2.Response:
        sent = {"grant_type": "refresh_token", "refresh_token": token}
        known = {"client_id": self.app.client_id} if form is None else form
        return await self.post("/oauth/token", {**sent, **known}, **over)

    async def connect(self, **over: Any) -> dict[str, Any]:
        answer = await self.redeem(await self.app.code(**over))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def current(self, token: str, **over: Any) -> httpx2.Response:
        proof = self.headers("GET", f"{ORIGIN}/grants/current", token=token, **over)
        headers = {"Authorization": f"DPoP {token}", **proof}
        return await self.app.http.get("/grants/current", headers=headers)


@pytest.fixture
def prover(app: Any) -> Prover:
    app.server.now_ns += 60 * SECONDS  # a server that has run for a while
    return Prover(app)


async def test_a_proof_binds_what_a_code_gives(prover: Prover) -> None:
    body = await prover.connect()
    assert body["token_type"] == "DPoP"
    [family], [token] = prover.app.server.rows(FamilyRow), prover.app.server.rows(TokenRow)
    assert family.jkt == token.jkt == prover.holder.jkt
    assert (await prover.current(body["access_token"])).status_code == 200


async def test_without_a_proof_nothing_is_bound(prover: Prover) -> None:
    body = await prover.app.connect()
    assert body["token_type"] == "Bearer"
    assert (await prover.app.current(body["access_token"])).status_code == 200
    refused = await prover.current(body["access_token"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token")


async def test_a_bound_token_is_worth_nothing_without_its_key(prover: Prover) -> None:
    token = (await prover.connect())["access_token"]
    as_bearer = await prover.app.current(token)
    other = await Prover(prover.app).current(token)
    for refused in (as_bearer, other):
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token")
    assert as_bearer.headers["www-authenticate"].startswith("Bearer ")
    challenge = other.headers["www-authenticate"]
    assert challenge.startswith("DPoP ")
    assert 'error="invalid_token"' in challenge
    assert challenge.endswith('algs="ES256 Ed25519"')


async def test_a_bad_proof_is_refused_in_the_family_of_its_path(prover: Prover) -> None:
    code = await prover.app.code()
    refused = await prover.redeem(code, htm="GET")
    body = refused.json()
    assert (refused.status_code, body["error"], body["reason"]) == (
        400,
        "invalid_dpop_proof",
        "htm",
    )
    issued = (await prover.redeem(code)).json()  # the code was not touched
    refused = await prover.current(issued["access_token"], htu=f"{ORIGIN}/grants/other")
    body = refused.json()["error"]
    assert (refused.status_code, body["code"], body["reason"]) == (401, "invalid_dpop_proof", "htu")
    assert 'error="invalid_dpop_proof"' in refused.headers["www-authenticate"]


async def test_a_proof_for_the_token_endpoint_has_no_other_use(prover: Prover) -> None:
    token = (await prover.connect())["access_token"]
    proof = prover.headers("POST", TOKEN_URL)
    headers = {"Authorization": f"DPoP {token}", **proof}
    refused = await prover.app.http.get("/grants/current", headers=headers)
    assert refused.json()["error"]["reason"] == "htm"
    missing = await prover.app.http.get(
        "/grants/current", headers={"Authorization": f"DPoP {token}"}
    )
    assert missing.json()["error"]["reason"] == "header"


async def test_a_proof_is_good_once_also_for_parallel_calls(prover: Prover) -> None:
    first = await prover.connect()
    headers = prover.headers("POST", TOKEN_URL)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": first["refresh_token"],
        "client_id": prover.app.client_id,
    }
    answers: list[httpx2.Response] = []

    async def refresh() -> None:
        answers.append(await prover.app.http.post("/oauth/token", data=form, headers=headers))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(refresh)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400, 400]
    refused = {a.json()["reason"] for a in answers if a.status_code == 400}
    assert refused == {"replay"}


async def test_a_wrong_clock_gets_its_token_with_a_nonce(prover: Prover) -> None:
    code = await prover.app.code()
    asked = await prover.redeem(code, iat=1)
    assert (asked.status_code, asked.json()["error"]) == (400, "use_dpop_nonce")
    prover.holder.nonce = asked.headers["dpop-nonce"]
    assert prover.holder.nonce not in asked.text
    body = (await prover.redeem(code, iat=1)).json()
    assert body["token_type"] == "DPoP"
    prover.holder.nonce = None
    asked = await prover.current(body["access_token"], iat=1)
    assert (asked.status_code, asked.json()["error"]["code"]) == (401, "use_dpop_nonce")
    assert 'error="use_dpop_nonce"' in asked.headers["www-authenticate"]
    prover.holder.nonce = asked.headers["dpop-nonce"]
    assert (await prover.current(body["access_token"], iat=1)).status_code == 200


async def test_a_server_that_just_started_asks_for_a_nonce(app: Any) -> None:
    prover = Prover(app)
    code = await app.code()
    asked = await prover.redeem(code)
    assert asked.json()["error"] == "use_dpop_nonce"
    prover.holder.nonce = asked.headers["dpop-nonce"]
    assert (await prover.redeem(code)).status_code == 200


async def test_a_refresh_stays_with_its_key(prover: Prover) -> None:
    first = await prover.connect()
    thief = Prover(prover.app)
    for refused in (
        await prover.app.refresh(first["refresh_token"]),
        await thief.refresh(first["refresh_token"]),
    ):
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert prover.app.server.events().count("refresh.wrong_key") == 2
    second = (await prover.refresh(first["refresh_token"])).json()
    assert second["token_type"] == "DPoP"
    assert (await prover.current(second["access_token"])).status_code == 200


async def test_a_lost_answer_is_given_again_to_the_same_key_only(prover: Prover) -> None:
    first = await prover.connect()
    second = (await prover.refresh(first["refresh_token"])).json()
    stolen = await Prover(prover.app).refresh(first["refresh_token"])
    bare = await prover.app.refresh(first["refresh_token"])
    assert {stolen.json()["error"], bare.json()["error"]} == {"invalid_grant"}
    again = (await prover.refresh(first["refresh_token"])).json()
    assert again["access_token"] == second["access_token"]
    assert again["token_type"] == "DPoP"
    assert (await prover.current(again["access_token"])).status_code == 200
    # Whoever lacks the key cannot end the access either.
    prover.app.server.now_ns += 61 * SECONDS
    late = await Prover(prover.app).refresh(first["refresh_token"])
    assert "fresh_authorization_required" not in late.json()
    assert all(row.reason is None for row in prover.app.server.rows(GrantRow))


async def test_an_unbound_family_may_begin_with_a_key_and_not_go_back(prover: Prover) -> None:
    first = await prover.app.connect()
    second = (await prover.refresh(first["refresh_token"])).json()
    assert second["token_type"] == "DPoP"
    refused = await prover.app.refresh(second["refresh_token"])
    assert refused.json()["error"] == "invalid_grant"


async def test_a_client_with_an_assertion_may_change_its_key(prover: Prover, document: Any) -> None:
    del document
    app = prover.app
    app.server.web.publish(URL, chatgpt())

    def asserted(jti: str) -> dict[str, str]:
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        return {"client_assertion_type": kind, "client_assertion": assertion(app, jti=jti)}

    code = await app.code()
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    first = (await prover.post("/oauth/token", {**form, **asserted("1")})).json()
    assert first["token_type"] == "DPoP"
    bare = await app.post(
        "/oauth/token",
        grant_type="refresh_token",
        refresh_token=first["refresh_token"],
        **asserted("2"),
    )
    assert bare.json()["error"] == "invalid_grant"
    newer = Prover(app)
    second = (await newer.refresh(first["refresh_token"], asserted("3"))).json()
    assert (await newer.current(second["access_token"])).status_code == 200
    assert (await prover.current(second["access_token"])).status_code == 401
    repeated = await prover.refresh(first["refresh_token"], asserted("4"))
    assert repeated.json()["error"] == "invalid_grant"


async def test_a_request_may_name_the_key_of_its_code(prover: Prover) -> None:
    code = await prover.app.code(dpop_jkt=prover.holder.jkt)
    assert (await prover.redeem(code)).json()["token_type"] == "DPoP"


@pytest.mark.parametrize("sends_proof", [True, False])
async def test_a_code_is_burned_by_another_key(prover: Prover, sends_proof: bool) -> None:
    code = await prover.app.code(dpop_jkt=prover.holder.jkt)
    thief = Prover(prover.app)
    refused = await (thief.redeem(code) if sends_proof else prover.app.redeem(code))
    assert refused.json()["error"] == "invalid_grant"
    assert (await prover.redeem(code)).json()["error"] == "invalid_grant"
    assert {row.reason for row in prover.app.server.rows(GrantRow)} == {"not_collected"}


async def test_a_thumbprint_has_its_form(prover: Prover) -> None:
    answer = await prover.app.authorize(dpop_jkt="short")
    assert "error=invalid_request" in answer.headers["location"]
    form = prover.app.parameters(dpop_jkt="short")
    refused = (await prover.app.post("/oauth/par", **form)).json()
    assert (refused["error"], refused["param"]) == ("invalid_request", "dpop_jkt")


async def test_a_pushed_request_is_bound_by_its_proof(prover: Prover) -> None:
    app = prover.app
    pushed = (await prover.post("/oauth/par", app.parameters())).json()
    answer = await app.http.get(
        "/oauth/authorize",
        params={"client_id": app.client_id, "request_uri": pushed["request_uri"]},
    )
    code = app.server.allow(answer.headers["location"].removeprefix("/consent/"))["code"]
    assert (await Prover(app).redeem(code)).json()["error"] == "invalid_grant"
    both = app.parameters(dpop_jkt=prover.holder.jkt)
    assert (await prover.post("/oauth/par", both)).status_code == 201
    refused = (await prover.post("/oauth/par", app.parameters(dpop_jkt="A" * 43))).json()
    assert (refused["error"], refused["param"]) == ("invalid_request", "dpop_jkt")
    bad = await prover.post("/oauth/par", app.parameters(), htm="GET")
    assert (bad.status_code, bad.json()["error"]) == (400, "invalid_dpop_proof")
    old = await prover.post("/oauth/par", app.parameters(), iat=1)
    assert (old.status_code, old.json()["error"]) == (400, "use_dpop_nonce")


async def test_a_device_code_gives_bound_tokens(prover: Prover) -> None:
    app = prover.app
    await app.register(grant_types=[DEVICE])
    offer = (await app.post("/oauth/device_authorization", client_id=app.client_id)).json()
    row = app.server.requesting.find_device(offer["user_code"], OWNER)
    app.server.allow(row.request_id)
    form = {
        "grant_type": DEVICE,
        "device_code": offer["device_code"],
        "client_id": app.client_id,
    }
    body = (await prover.post("/oauth/token", form)).json()
    assert body["token_type"] == "DPoP"
    assert (await prover.current(body["access_token"])).status_code == 200


async def test_a_client_that_says_so_gets_bound_tokens_only(prover: Prover) -> None:
    answer = await prover.app.register(dpop_bound_access_tokens=True)
    assert answer.json()["dpop_bound_access_tokens"] is True
    code = await prover.app.code()
    refused = await prover.app.redeem(code)
    body = refused.json()
    assert (refused.status_code, body["error"], body["reason"]) == (
        400,
        "invalid_dpop_proof",
        "missing",
    )
    assert (await prover.redeem(code)).json()["token_type"] == "DPoP"


async def test_a_registration_says_it_with_a_truth_value(app: Any) -> None:
    refused = (await app.register(dpop_bound_access_tokens="yes")).json()
    assert (refused["error"], refused["param"]) == (
        "invalid_client_metadata",
        "dpop_bound_access_tokens",
    )


@pytest.mark.parametrize(("said", "error"), [(True, "invalid_dpop_proof"), ("x", "invalid_client")])
async def test_a_document_says_it_too(prover: Prover, said: object, error: str) -> None:
    app = prover.app
    app.client_id = URL
    app.server.web.publish(URL, claude(dpop_bound_access_tokens=said))
    form = {"grant_type": "authorization_code", "code": "x", "code_verifier": VERIFIER}
    refused = await app.post("/oauth/token", client_id=URL, **form)
    assert refused.json()["error"] == error


async def test_introspection_names_the_key(prover: Prover) -> None:
    token = (await prover.connect())["access_token"]
    found = await introspected(prover.app, token)
    assert (found["token_type"], found["cnf"]) == ("DPoP", {"jkt": prover.holder.jkt})
    bare = (await prover.app.connect())["access_token"]
    found = await introspected(prover.app, bare)
    assert found["token_type"] == "Bearer"
    assert "cnf" not in found


async def introspected(app: Any, token: str) -> dict[str, Any]:
    server = app.server
    named = f"rs {len(server.events())}"
    made = add_introspection_client(server.store, named, server.bytes_of, server.now_ns)
    basic = base64.b64encode(f"{made.caller_id}:{made.secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}"}
    return (await app.http.post("/introspect", data={"token": token}, headers=headers)).json()


async def test_ending_a_grant_asks_for_the_key_too(prover: Prover) -> None:
    body = await prover.connect()
    kind = "grant-packages" if body.get("grant_package_id") else "grants"
    path = f"/{kind}/{body.get('grant_package_id') or body['grant_id']}/revoke"
    token = body["access_token"]
    refused = await prover.app.http.post(path, headers={"Authorization": f"Bearer {token}"})
    assert refused.json()["error"]["code"] == "invalid_token"
    headers = prover.headers("POST", f"{ORIGIN}{path}", token=token)
    ended = await prover.app.http.post(path, headers={"Authorization": f"DPoP {token}", **headers})
    assert ended.json()["status"] == "revoked"


async def test_bad_proofs_count_as_failures_and_questions_for_a_nonce_do_not(
    prover: Prover,
) -> None:
    code = await prover.app.code()
    for _ in range(25):
        assert (await prover.redeem(code, iat=1)).json()["error"] == "use_dpop_nonce"
    answers = [(await prover.redeem(code, htm="GET")).json()["error"] for _ in range(22)]
    assert answers == ["invalid_dpop_proof"] * 20 + ["rate_limit_exceeded"] * 2
