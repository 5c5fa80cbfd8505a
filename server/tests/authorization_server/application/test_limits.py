"""Every row of the contract's limits that the OAuth endpoints keep, by a clock of the test."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from pdpp_kernel.errors import RateLimitExceeded
from personal_server.consent.credentials import base64url, secret_hash
from personal_server.storage.authorization_rows import ClientRow, IntrospectionClientRow, RequestRow
from personal_server.web.limits import MAX_KEYS, Bucket

pytestmark = pytest.mark.anyio
SECOND = 10**9
HERE = "203.0.113.9"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
CIMD = {"client_name": "An app", "redirect_uris": ["http://127.0.0.1/cb"]}


class From:
    """Clients of one application that call from several addresses."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.served = app.server.app()

    def __call__(self, address: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.served, client=(address, 1234))
        return httpx2.AsyncClient(transport=transport, base_url=self.app.server.origin)


@pytest.fixture
async def calling(app: Any) -> AsyncGenerator[From]:
    made = From(app)
    async with made(HERE) as http:
        app.http = http
        yield made


def must_wait(answer: httpx2.Response) -> int:
    """The seconds that a refusal of the OAuth family asks for."""
    body = answer.json()
    assert (answer.status_code, body["error"]) == (429, "rate_limit_exceeded")
    assert body["request_id"] == answer.headers["request-id"]
    assert int(answer.headers["retry-after"]) == body["retry_after_seconds"] > 0
    return body["retry_after_seconds"]


async def exhausted(call: Callable[[], Awaitable[httpx2.Response]], allowed: int) -> int:
    """Call as often as allowed, then once more; the wait."""
    for _ in range(allowed):
        assert (await call()).status_code != 429
    return must_wait(await call())


async def test_registration_is_limited_by_address(calling: From) -> None:
    app = calling.app
    wait_seconds = await exhausted(app.register, 20)
    async with calling("198.51.100.1") as elsewhere:
        app.http, here = elsewhere, app.http
        assert (await app.register()).status_code == 201
    app.http = here
    app.server.now_ns += wait_seconds * SECOND
    await exhausted(app.register, 1)


async def test_pages_use_up_what_is_theirs_alone(calling: From) -> None:
    app = calling.app
    app.http.headers["Accept"] = "application/json"
    app.http.headers["Origin"] = "https://evil.example"
    await exhausted(app.register, 20)
    await exhausted(app.authorize, 30)
    del app.http.headers["Origin"]
    await exhausted(app.register, 20)
    await exhausted(app.authorize, 30)


async def test_registration_is_limited_in_all(calling: From) -> None:
    app = calling.app
    for number in range(15):
        async with calling(f"198.51.100.{number}") as app.http:
            for _ in range(20):
                assert (await app.register()).status_code == 201
    async with calling("198.51.100.99") as app.http:
        wait_seconds = must_wait(await app.register())
        app.server.now_ns += wait_seconds * SECOND
        assert (await app.register()).status_code == 201


@pytest.mark.parametrize("way", ["authorize", "par", "device_authorization"])
async def test_new_requests_are_limited_by_address(calling: From, way: str) -> None:
    app = calling.app
    asking: dict[str, Callable[[], Awaitable[httpx2.Response]]] = {
        "authorize": lambda: app.http.get(
            "/oauth/authorize",
            params=app.parameters(),
            headers={"Accept": "application/json"},
        ),
        "par": lambda: app.post("/oauth/par", **app.parameters()),
        "device_authorization": lambda: app.post(
            "/oauth/device_authorization", client_id="pdpp-cli"
        ),
    }
    wait_seconds = await exhausted(asking[way], 30)
    for other in asking.values():
        must_wait(await other())
    async with calling("198.51.100.1") as elsewhere:
        app.http, here = elsewhere, app.http
        assert (await asking[way]()).status_code != 429
    app.http = here
    app.server.now_ns += wait_seconds * SECOND
    await exhausted(asking[way], 1)


async def test_an_app_that_the_owner_knows_has_a_count_of_its_own(calling: From) -> None:
    app = calling.app
    with app.server.store.write() as writer:
        writer.change(
            ClientRow,
            [ClientRow.first_approved_at_ns.to(app.server.now_ns)],
            ClientRow.client_id.equals("pdpp-cli"),
        )

    def known() -> Awaitable[httpx2.Response]:
        return app.post("/oauth/device_authorization", client_id="pdpp-cli")

    def unknown() -> Awaitable[httpx2.Response]:
        return app.post("/oauth/par", **app.parameters())

    await exhausted(unknown, 30)
    await exhausted(known, 30)
    must_wait(await unknown())


async def test_a_browser_that_has_to_wait_gets_a_page(calling: From) -> None:
    for _ in range(30):
        await calling.app.authorize()
    page = await calling.app.authorize()
    assert (page.status_code, int(page.headers["retry-after"]) > 0) == (429, True)
    assert '<main data-error="rate_limit_exceeded">' in page.text


async def fill(app: Any, *, opened: bool) -> list[str]:
    """Two hundred pending requests, one a second; the handles, oldest first."""
    await app.authorize()
    (row,) = app.server.rows(RequestRow)
    handles = [f"ar_{number}" for number in range(200)]
    with app.server.store.write() as writer:
        writer.delete(RequestRow, RequestRow.request_id.equals(row.request_id))
        for number, handle in enumerate(handles):
            times = {
                "created_at_ns": row.created_at_ns + number * SECOND,
                "expires_at_ns": row.expires_at_ns + number * SECOND,
                "opened_at_ns": 1 if opened or number == 0 else None,
            }
            writer.insert(replace(row, request_id=handle, **times))
    return handles


@pytest.mark.parametrize("way", ["/oauth/par", "/oauth/device_authorization"])
async def test_a_full_table_of_opened_requests_has_to_be_waited_for(
    calling: From, way: str
) -> None:
    app = calling.app
    await fill(app, opened=True)
    form = app.parameters(client_id="pdpp-cli", redirect_uri="http://127.0.0.1/callback")
    wait_seconds = must_wait(await app.post(way, **form))
    assert wait_seconds == 900
    assert len(app.server.rows(RequestRow, RequestRow.status.equals("pending"))) == 200
    app.server.now_ns += wait_seconds * SECOND
    assert (await app.post(way, **form)).status_code < 300


async def test_the_oldest_unopened_request_gives_way(calling: From) -> None:
    app = calling.app
    handles = await fill(app, opened=False)
    assert (await app.authorize()).status_code == 303
    expired = [
        row.request_id for row in app.server.rows(RequestRow, RequestRow.status.equals("expired"))
    ]
    assert expired == handles[1:2]
    assert len(app.server.rows(RequestRow, RequestRow.status.equals("pending"))) == 200
    assert app.server.events()[-2:] == ["request.expired", "request.created"]


@pytest.fixture
def documents(calling: From) -> Callable[[str, int], Awaitable[httpx2.Response]]:
    """A new authorization of the n-th document client of a host, always from a new address."""
    asked: list[str] = []

    async def ask(host: str, number: int) -> httpx2.Response:
        app = calling.app
        url = f"https://{host}/{number}.json"
        app.server.web.publish(url, {**CIMD, "client_id": url})
        asked.append(url)
        form = app.parameters(client_id=url, redirect_uri="http://127.0.0.1/cb")
        async with calling(f"10.0.{len(asked) // 256}.{len(asked) % 256}") as http:
            return await http.post("/oauth/par", data=form)

    return ask


async def test_documents_of_a_host_are_fetched_six_times_a_minute(
    calling: From, documents: Any
) -> None:
    for number in range(6):
        assert (await documents("app.example", number)).status_code == 201
    wait_seconds = must_wait(await documents("app.example", 6))
    assert len(calling.app.server.web.requests) == 6
    assert (await documents("other.example", 0)).status_code == 201
    assert (await documents("app.example", 0)).status_code == 201  # it is kept, not fetched
    calling.app.server.now_ns += wait_seconds * SECOND
    assert (await documents("app.example", 6)).status_code == 201


async def test_documents_are_fetched_sixty_times_a_minute_in_all(
    calling: From, documents: Any
) -> None:
    for number in range(60):
        assert (await documents(f"app{number // 6}.example", number)).status_code == 201
    wait_seconds = must_wait(await documents("new.example", 0))
    assert len(calling.app.server.web.requests) == 60
    calling.app.server.now_ns += wait_seconds * SECOND
    assert (await documents("new.example", 0)).status_code == 201


async def test_key_sets_count_as_fetches_of_their_host(calling: From, documents: Any) -> None:
    url, keys = "https://app.example/keyed.json", "https://app.example/jwks.json"
    app = calling.app
    published = {"client_id": url, "token_endpoint_auth_method": "private_key_jwt"}
    app.server.web.publish(url, {**CIMD, **published, "jwks_uri": keys})
    for number in range(5):
        await documents("app.example", number)
    parts = ({"alg": "ES256", "kid": "k"}, {"sub": url}, "signature")
    form = {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": ".".join(base64url(json.dumps(part).encode()) for part in parts),
    }
    must_wait(await app.post("/oauth/par", **app.parameters(client_id=url, **form)))
    assert [str(request.url.path) for request in app.server.web.requests][-1] == "/keyed.json"


async def test_failures_at_the_token_endpoint_are_limited_by_client_and_address(
    calling: From,
) -> None:
    app = calling.app
    good = await app.code()
    wait_seconds = await exhausted(lambda: app.redeem("pdpp_ac_none"), 20)
    assert (await app.redeem("pdpp_ac_none", client_id="pdpp-cli")).status_code == 400
    async with calling("198.51.100.1") as elsewhere:
        app.http, here = elsewhere, app.http
        assert (await app.redeem("pdpp_ac_none")).status_code == 400
    app.http = here
    tokens = (await app.redeem(good)).json()
    assert (await app.refresh(tokens["refresh_token"])).status_code == 200
    app.server.now_ns += wait_seconds * SECOND
    await exhausted(lambda: app.redeem("pdpp_ac_none"), 1)


async def test_a_line_of_ipv6_addresses_counts_as_one(calling: From) -> None:
    app = calling.app
    for number in range(30):
        async with calling(f"2001:db8:1:2::{number:x}") as app.http:
            assert (await app.authorize()).status_code == 303
    async with calling("2001:db8:1:2:ffff::1") as app.http:
        assert (await app.authorize()).status_code == 429
    async with calling("2001:db8:1:3::1") as app.http:
        assert (await app.authorize()).status_code == 303


async def test_polling_is_no_failure(calling: From) -> None:
    app = calling.app
    codes = (await app.post("/oauth/device_authorization", client_id="pdpp-cli")).json()
    form = {"grant_type": DEVICE, "device_code": codes["device_code"], "client_id": "pdpp-cli"}
    errors = [(await app.post("/oauth/token", **form)).json()["error"] for _ in range(25)]
    assert set(errors) == {"authorization_pending", "slow_down"}


async def test_introspection_is_limited_by_caller(calling: From) -> None:
    app = calling.app
    with app.server.store.write() as writer:
        for name in ("one", "two"):
            row = IntrospectionClientRow(
                caller_id=name, secret_hash=secret_hash(name), name=name, created_at_ns=0
            )
            writer.insert(row)

    def ask(name: str) -> Awaitable[httpx2.Response]:
        return app.http.post("/introspect", data={"token": "x"}, auth=(name, name))

    for _ in range(1_200):
        assert (await ask("one")).status_code == 200
    refused = await ask("one")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert (await ask("two")).status_code == 200
    app.server.now_ns += SECOND
    assert (await ask("one")).status_code == 200


def test_a_bucket_forgets_who_took_longest_ago() -> None:
    bucket = Bucket(lambda: 0, 1, 1, 60)
    for number in range(MAX_KEYS + 1):
        bucket.take(number)
    with pytest.raises(RateLimitExceeded):
        bucket.take(MAX_KEYS)
    bucket.take(0)
