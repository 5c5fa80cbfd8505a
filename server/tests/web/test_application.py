import json
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from personal_server.settings import from_env
from personal_server.web.application import Application
from personal_server.web.failed_attempts import FailedBearers
from personal_server.web.origins import origin_policy

ORIGIN = "http://127.0.0.1:7662"


HEADERS = [(b"www-authenticate", b"Bearer"), (b"vary", b"Origin")]


def echoing(name: str, status: int = 200) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = json.dumps({"part": name, **scope["state"]}).encode()
        asked = 401 if scope["path"] == "/status/401" else status
        await send({"type": "http.response.start", "status": asked, "headers": HEADERS})
        await send({"type": "http.response.body", "body": body})

    return app


def outermost(allowed: int = 3, status: int = 200, now: int = 10**18) -> Application:
    return Application(
        origin_policy(from_env({})),
        [
            (frozenset({"mcp"}), echoing("mcp")),
            (frozenset({"oauth", ".well-known/x"}), echoing("as")),
        ],
        echoing("rs", status),
        FailedBearers(allowed, lambda: now),
    )


def client(allowed: int = 3, status: int = 200) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=outermost(allowed, status))
    return httpx2.AsyncClient(transport=transport, base_url=ORIGIN)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/mcp", "mcp"),
        ("/oauth/token", "as"),
        ("/.well-known/x", "as"),
        ("/.well-known/y", "rs"),
        ("/v1", "rs"),
        ("/", "rs"),
    ],
)
async def test_the_first_segment_chooses_the_part(path: str, part: str) -> None:
    async with client() as http:
        body = (await http.get(path)).json()
    assert (body["part"], body["origin"]) == (part, ORIGIN)


@pytest.mark.anyio
async def test_every_answer_carries_the_request_id_and_the_version() -> None:
    async with client() as http:
        sent = await http.get("/v1", headers={"X-Request-Id": "mine.1"})
        bad = await http.get("/v1", headers={"Request-Id": "not valid!"})
    assert sent.headers["Request-Id"] == sent.headers["X-Request-Id"] == "mine.1"
    assert sent.headers["PDPP-Version"] == "2026-04-06"
    assert bad.headers["Request-Id"].startswith("req_")


@pytest.mark.anyio
async def test_nothing_is_settled_by_whoever_hands_a_request_in() -> None:
    app, settled = outermost(), list[object]()

    async def forging(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"token_states": {"x": 1}, "origin": "else"}}, receive, send)

    transport = httpx2.ASGITransport(app=forging)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as http:
        for path in ("/v1", "/mcp", "/oauth/token"):
            settled.append(set((await http.get(path)).json()) - {"part"})
            assert (await http.get(path)).json()["origin"] == ORIGIN
    assert settled == [{"origin", "request_id", "client_address"}] * 3


@pytest.mark.anyio
async def test_a_foreign_host_is_misdirected_everywhere_but_at_healthz() -> None:
    async with client() as http:
        refused = await http.get("/mcp", headers={"Host": "evil.example"})
        healthy = await http.get("/healthz", headers={"Host": "evil.example"})
    assert refused.status_code == 421
    assert refused.json()["error"]["code"] == "misdirected_request"
    assert "WWW-Authenticate" not in refused.headers
    assert "Link" not in refused.headers
    assert healthy.json() == {"status": "ok"}


@pytest.mark.anyio
async def test_a_browser_at_a_foreign_host_gets_a_page_that_says_what_to_change() -> None:
    async with client() as http:
        sent = {"Host": "evil.example", "Accept": "text/html,*/*;q=0.8"}
        page = await http.get("/owner/", headers=sent)
    assert page.status_code == 421
    assert page.headers["content-type"].startswith("text/html")
    assert "Use the address in PDPP_PUBLIC_URL" in page.text
    assert "evil.example" not in page.text


@pytest.mark.anyio
async def test_a_bearer_refused_too_often_is_told_to_wait_and_another_is_told_why() -> None:
    bearer = {"Authorization": "Bearer wrong"}
    async with client(allowed=2, status=401) as http:
        codes = [(await http.get("/v1", headers=bearer)).status_code for _ in range(3)]
        limited = await http.get("/v1", headers=bearer)
        other = await http.get("/v1", headers={"Authorization": "Bearer other"})
        anonymous = await http.get("/v1")
    assert (other.status_code, anonymous.status_code) == (401, 401)
    assert codes == [401, 401, 429]
    assert limited.json()["error"]["limit"] == "auth"
    assert limited.json()["error"]["code"] == "rate_limit_exceeded"
    assert limited.headers["Retry-After"] == "60"
    assert limited.headers["Vary"] == "Origin"
    assert "WWW-Authenticate" not in limited.headers


@pytest.mark.anyio
async def test_a_good_bearer_from_the_same_address_is_never_limited() -> None:
    async with client(allowed=2) as http:
        bad = {"Authorization": "Bearer wrong"}
        codes = [(await http.get("/status/401", headers=bad)).status_code for _ in range(5)]
        good = await http.get("/v1", headers={"Authorization": "Bearer good"})
    assert (codes[-1], good.status_code) == (429, 200)


@pytest.mark.anyio
async def test_what_the_parts_need_lives_as_long_as_the_server() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifetime() -> AsyncGenerator[None, None]:
        events.append("open")
        yield
        events.append("closed")

    received = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        return {"type": next(received)}

    async def send(message: MutableMapping[str, object]) -> None:
        events.append(str(message["type"]))

    limits = FailedBearers(1, lambda: 0)
    app = Application(origin_policy(from_env({})), [], echoing("rs"), limits, lifetime)
    await app({"type": "lifespan"}, receive, send)
    assert events == [
        "open",
        "lifespan.startup.complete",
        "closed",
        "lifespan.shutdown.complete",
    ]
