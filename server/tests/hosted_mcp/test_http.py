"""Admission: the first condition of the table that holds gives the answer, whatever else holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from itertools import product
from typing import Any

import anyio
import httpx2
import pytest
from msgspec.structs import replace

from adapter.tests.fake_rs import Answer, Request
from pdpp_mcp_server import contract
from pdpp_mcp_server.rs_client import http as rs_http
from personal_server.hosted_mcp import http as hosting
from personal_server.hosted_mcp.http import CALLS
from personal_server.web.call_capacity import Capacity
from tests.requirements.doors import Outer, World, hosted, origin, token

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
PATIENT_SECONDS = 240.0
hosts = [("here", origin), ("elsewhere", "http://evil.example")]
pages = [
    ("none", ""),
    ("own", origin),
    ("loopback", "http://localhost:3000"),
    ("other", "https://evil.example"),
]
bearers = [
    ("none", "", (401, "authentication_error")),
    ("basic", "Basic abc", (401, "authentication_error")),
    ("unknown", "Bearer nothing", (401, "invalid_token")),
    ("revoked", "Bearer pdpp_at_revoked", (401, "grant_revoked")),
    ("owner", "Bearer pdpp_at_owner", (403, "permission_error")),
    ("rest", "Bearer pdpp_at_rest_only", (401, "invalid_token")),
    ("good", f"Bearer {token}", None),
]  # fmt: skip
requests = [
    ("get", "GET", "/mcp", b"", (405, "method_not_allowed")),
    ("delete", "DELETE", "/mcp?a=1", b"", (405, "method_not_allowed")),
    ("parameter", "POST", "/mcp?a=1", b"x" * 4_194_305, (400, "invalid_request")),
    ("large", "POST", "/mcp", b"x" * 4_194_305, (413, "resource_limit")),
    ("preflight", "OPTIONS", "/mcp", b"", (204, None)),
]  # fmt: skip


@pytest.fixture
async def http(anyio_backend: str) -> AsyncGenerator[tuple[httpx2.AsyncClient, World]]:
    behind = World()
    app = hosted(behind)
    transport = httpx2.ASGITransport(app=Outer(app))
    async with app.run(), httpx2.AsyncClient(transport=transport) as client:
        yield client, behind


def first(host: str, page: str, bearer: Any, asked: Any) -> tuple[int, str | None]:
    """What the table says, read from its top."""
    if host == "elsewhere":
        return 421, "misdirected_request"
    if page == "other":
        return 403, "permission_error"
    if asked[0] == 204:
        return asked
    return bearer or asked


async def test_the_first_condition_that_holds_is_the_answer(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    client, behind = http
    for (host, base), (page, browser), (_, bearer, refusal), (
        name,
        method,
        path,
        body,
        own,
    ) in product(hosts, pages, bearers, requests):
        headers = {"Authorization": bearer} if bearer else {}
        headers |= {"Origin": browser} if browser else {}
        answer = await client.request(method, base + path, headers=headers, content=body)
        status, code = first(host, page, refusal, own)
        assert answer.status_code == status, (host, page, bearer, name)
        assert (answer.json()["error"]["code"] if code else None) == code
        assert ("link" in answer.headers) is (status != 421)
        assert ("www-authenticate" in answer.headers) is (status == 401)
        if status != 421:
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["request-id"] == answer.headers["x-request-id"]
            shared = answer.headers.get("access-control-allow-origin")
            assert shared == (browser if browser and page != "other" else None)
    assert behind.rs.requests == []


async def test_tokens_that_cannot_be_judged_let_nobody_in(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    client, _ = http
    headers = {"Authorization": "Bearer pdpp_at_unjudged"}
    answer = await client.post(f"{origin}/mcp", json={}, headers=headers)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "storage_unavailable"
    assert answer.headers["retry-after"]
    assert "link" in answer.headers


async def test_the_owner_s_word_on_the_length_of_results_comes_with_the_token(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    client, behind = http
    row = {"record_id": "m8", "stream": "messages", "data": {"id": "m8", "body": "w " * 80_000}}

    def record(request: Request) -> Answer:
        return Answer(200, row)

    behind.rs.script = record
    called = {"name": "fetch", "arguments": {"id": "cin_a/messages:m8"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    sizes: list[int] = []
    for bearer in (token, "pdpp_at_longer"):
        headers = {
            "Authorization": f"Bearer {bearer}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        answer = await client.post(f"{origin}/mcp", json=asked, headers=headers)
        sizes.append(len(answer.json()["result"]["content"][0]["text"]))
    assert sizes[0] <= 20_000 < sizes[1] <= 60_000


class Held:
    """Whoever reads waits until all may go on; how many came."""

    def __init__(self, behind: World) -> None:
        self.behind = behind
        self.came = 0
        self.go_on = anyio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.came += 1
        await self.go_on.wait()
        await self.behind(scope, receive, send)


async def test_more_calls_than_can_be_worked_on_wait_in_turn_and_further_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As many calls as here take seconds to arrive; none may give up before the last is there.
    monkeypatch.setattr(hosting, "CALLS", replace(CALLS, wait_seconds=PATIENT_SECONDS))
    monkeypatch.setattr(rs_http, "READ_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(contract, "TOOL_SECONDS", PATIENT_SECONDS)
    world, statuses, further = World(), list[int](), 7
    none = Answer(200, {"object": "list", "data": [], "has_more": False})

    def answered(_: object) -> Answer:
        return none

    world.rs.script = answered
    held = Held(world)
    app = hosted(held)
    known = app.queues["call"]
    called = {"name": "query_records", "arguments": {"stream": "messages"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    transport = httpx2.ASGITransport(app=Outer(app))
    limits = httpx2.Limits(max_connections=None)
    async with app.run(), httpx2.AsyncClient(transport=transport, limits=limits) as client:

        async def call() -> None:
            answer = await client.post(f"{origin}/mcp", json=asked, headers=headers, timeout=None)
            statuses.append(answer.status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(CALLS.at_once + CALLS.waiting):
                tasks.start_soon(call)
            with anyio.fail_after(PATIENT_SECONDS):
                while held.came < CALLS.at_once or known.waiting < CALLS.waiting:
                    await anyio.lowlevel.checkpoint()
            assert (known.working, known.waiting, held.came) == (64, 256, 64)
            for _ in range(further):
                refused = await client.post(f"{origin}/mcp", json=asked, headers=headers)
                assert refused.status_code == 503
                assert refused.json()["error"]["code"] == "storage_unavailable"
                assert refused.headers["retry-after"] == "1"
            assert (statuses, held.came) == ([], 64)
            held.go_on.set()
    assert statuses == [200] * 320
    assert (known.working, known.waiting) == (0, 0)


class Quiet:
    """Nothing is ever written."""

    count = 0

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        del timeout_seconds
        return last_seen


@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2025-11-25"}])
async def test_a_call_that_bears_the_header_of_a_listener_takes_a_place_too(
    version: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "CALLS", Capacity(at_once=0, waiting=0))
    app = hosted(World(), changes=Quiet())
    called = {"name": "query_records", "arguments": {"stream": "messages"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    headers = {"Authorization": f"Bearer {token}", "Mcp-Method": "subscriptions/listen", **version}
    transport = httpx2.ASGITransport(app=Outer(app))
    async with app.run(), httpx2.AsyncClient(transport=transport) as client:
        answer = await client.post(f"{origin}/mcp", json=asked, headers=headers)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "storage_unavailable"


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
JSON, ALL = {"Content-Type": "application/json"}, {"Accept": "*/*"}


async def ask(client: httpx2.AsyncClient, headers: dict[str, str]) -> httpx2.Response:
    request = client.build_request("POST", f"{origin}/mcp", json=LIST)
    for name in ("accept", "content-type"):
        del request.headers[name]
    request.headers.update({"Authorization": f"Bearer {token}", **headers})
    return await client.send(request)


async def test_an_unknown_version_is_told_which_are_known(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    answer = await ask(http[0], {**JSON, **ALL, "MCP-Protocol-Version": "2031-01-01"})
    assert answer.json()["id"] == 1
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32022)
    assert {"2025-11-25", "2026-07-28"} <= set(error["data"]["supported"])


NO_MESSAGES = (
    *(b'[{"secret word": 1}]', b'"secret word"', b'{"secret word', b'{"secret word": 1}'),
    b'{"jsonrpc": "2.0", "id": 1, "method": {"secret word": 1}}',
)


@pytest.mark.parametrize("sent", NO_MESSAGES)
async def test_what_is_no_message_is_refused_without_being_repeated(
    sent: bytes, http: tuple[httpx2.AsyncClient, World]
) -> None:
    headers = {"Authorization": f"Bearer {token}", **JSON, **ALL}
    answer = await http[0].post(f"{origin}/mcp", content=sent, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32600
    assert "secret" not in answer.text


async def test_another_content_type_is_refused_in_our_form(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    for sent in ({}, {"Content-Type": "text/plain"}):
        answer = await ask(http[0], {**ALL, **sent})
        assert answer.status_code == 415
        assert answer.json()["error"]["code"] == "unsupported_media_type"


async def test_a_request_without_accept_takes_any_answer(
    http: tuple[httpx2.AsyncClient, World],
) -> None:
    answer = await ask(http[0], JSON)
    assert (answer.status_code, len(answer.json()["result"]["tools"])) == (200, 6)
    assert (await ask(http[0], {**JSON, "Accept": "text/html"})).status_code == 406
