import logging
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import httpx2
import pytest

from adapter.tests.fake_rs import Answer, error_answer
from adapter.tests.seed import world
from pdpp_mcp_server.rs_client.http import JSON_BYTES, READ_SECONDS, RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import (
    FixedBearer,
    HeldToken,
    RsInvalidResponse,
    RsTimeout,
    RsUnreachable,
)
from pdpp_mcp_server.rs_client.senders import BLOB_SECONDS, Network, network_client

pytestmark = pytest.mark.anyio
origin = "http://127.0.0.1:7662"
path = ("v1", "schema")
Handler = Callable[[httpx2.Request], Coroutine[None, None, httpx2.Response]]


def port_to(handler: Handler) -> Any:
    http = Network(httpx2.AsyncClient(transport=httpx2.MockTransport(handler)))
    return RsClient(http, origin, FixedBearer("tok"), "0").port("schema", "req_1")


def port_over(rs: Any) -> Any:
    return RsClient(InnerApplication(rs), origin, FixedBearer("tok"), "0").port("schema", "req_1")


async def test_reads_are_numbered_and_carry_the_bearer() -> None:
    rs = world()
    port = port_over(rs)
    for _ in range(2):
        assert (await port.get(path, (("view", "compact"),))).ok
    first, second = rs.requests
    assert first.headers["request-id"] == "req_1.1"
    assert second.headers["request-id"] == "req_1.2"
    assert {request.bearer for request in rs.requests} == {"Bearer tok"}
    assert first.headers["pdpp-tool"] == "schema"
    assert first.query == (("view", "compact"),)


@pytest.mark.parametrize("codings", ["gzip, gzip", "deflate", "br"])
async def test_a_body_that_is_packed_otherwise_than_asked_is_not_unpacked(codings: str) -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-encoding": codings, "content-type": "application/json"}
        return httpx2.Response(200, stream=httpx2.ByteStream(b"{}"), headers=headers)

    for max_bytes in (None, 100):
        with pytest.raises(RsInvalidResponse):
            await port_to(answer).get(path, max_bytes=max_bytes)


async def test_a_request_that_is_too_long_is_refused_before_it_is_sent() -> None:
    rs = world()
    answer = await port_over(rs).get(path, (("q", "\u00e9" * 20_000),))
    assert answer.status == 414
    assert answer.body is not None
    assert answer.body["error"]["code"] == "resource_limit"
    assert not rs.requests


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_gateway_failure_is_repeated_once(status: int) -> None:
    rs = world()
    rs.script = lambda _: error_answer(status, "upstream")
    assert (await port_over(rs).get(path)).status == status
    assert len(rs.requests) == 2


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("wait", ["9", "Thu, 01 Jan 2026 00:00:30 GMT", "soon"])
async def test_a_server_that_says_when_is_not_asked_before(status: int, wait: str) -> None:
    rs = world()
    headers = (("retry-after", wait),)
    rs.script = lambda _: Answer(status, {"error": {"code": "busy"}}, headers)
    assert (await port_over(rs).get(path)).status == status
    assert len(rs.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 429, 500])
async def test_no_other_status_is_repeated(status: int) -> None:
    rs = world()
    rs.script = lambda _: error_answer(status, "refused")
    assert (await port_over(rs).get(path)).status == status
    assert len(rs.requests) == 1


async def test_a_refused_connection_is_tried_twice() -> None:
    tries: list[str] = []

    async def refuse(request: httpx2.Request) -> httpx2.Response:
        tries.append(request.url.path)
        raise httpx2.ConnectError("refused")

    with pytest.raises(RsUnreachable):
        await port_to(refuse).get(path)
    assert len(tries) == 2


async def test_a_timeout_is_never_repeated() -> None:
    tries: list[str] = []

    async def slow(request: httpx2.Request) -> httpx2.Response:
        tries.append(request.url.path)
        raise httpx2.ReadTimeout("slow")

    with pytest.raises(RsTimeout):
        await port_to(slow).get(path)
    assert len(tries) == 1


@pytest.mark.parametrize(
    "body", [b"{", b"NaN", b"[" * 200 + b"]" * 200, b'{"n":' + b"9" * 5_000 + b"}"]
)
async def test_a_success_that_is_not_json_is_an_invalid_response(body: bytes) -> None:
    rs = world()
    rs.script = lambda _: Answer(200, None, content=body)
    with pytest.raises(RsInvalidResponse):
        await port_over(rs).get(path)


async def test_a_refusal_that_is_not_json_keeps_its_status() -> None:
    rs = world()
    rs.script = lambda _: Answer(500, None, content=b"<html>", content_type="text/html")
    answer = await port_over(rs).get(path)
    assert (answer.status, answer.body) == (500, None)


async def test_a_body_over_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pdpp_mcp_server.rs_client.http.JSON_BYTES", 1_000)
    rs = world()
    rs.script = lambda _: Answer(200, {"a": "x" * 2_000})
    with pytest.raises(RsInvalidResponse):
        await port_over(rs).get(path)


async def test_a_blob_over_the_cap_is_not_read() -> None:
    rs = world()
    rs.blobs["big"] = ("image/png", b"x" * 5_000)
    found = await port_over(rs).get(("v1", "blobs", "big"), max_bytes=1_000)
    assert (found.content, found.total_bytes) == (None, 5_000)
    whole = await port_over(rs).get(("v1", "blobs", "big"), max_bytes=5_000)
    assert whole.content == b"x" * 5_000


async def test_an_empty_file_is_read_as_one() -> None:
    rs = world()
    rs.script = lambda _: Answer(416, {"error": {}}, (("content-range", "bytes */0"),))
    found = await port_over(rs).get(("v1", "blobs", "none"), max_bytes=1_000)
    assert (found.status, found.content, found.total_bytes) == (200, b"", 0)


async def test_a_part_of_a_file_is_never_taken_for_the_whole() -> None:
    rs = world()
    rs.script = lambda _: Answer(206, None, (("content-range", "bytes 0-2/9"),), b"abc")
    with pytest.raises(RsInvalidResponse):
        await port_over(rs).get(("v1", "blobs", "part"), max_bytes=1_000)


async def test_a_renewed_bearer_is_used_once_after_a_401() -> None:
    rs = world()
    rs.script = lambda request: (
        error_answer(401, "invalid_token") if "old" in request.bearer else None
    )

    class Renewing:
        async def bearer(self) -> HeldToken:
            return HeldToken("old")

        async def renew(self, rejected: str) -> HeldToken | None:
            assert rejected == "old"
            return HeldToken("new")

    port = RsClient(InnerApplication(rs), origin, Renewing(), "0").port("schema")
    assert (await port.get(path)).ok
    assert [request.bearer for request in rs.requests] == ["Bearer old", "Bearer new"]


async def test_no_log_line_holds_a_query(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await port_over(world()).get(("v1", "search"), (("q", "needle-in-a-query"),))
    assert "needle" not in caplog.text
    assert "tok" not in caplog.text


async def test_a_defect_of_the_inner_application_is_an_answer() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("inner words")

    answer = await port_over(broken).get(path)
    assert answer.status == 500
    assert answer.body is None


async def test_no_more_than_four_reads_are_in_flight() -> None:
    under_way, most = 0, 0

    async def count(request: httpx2.Request) -> httpx2.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await anyio.lowlevel.checkpoint()
        under_way -= 1
        return httpx2.Response(200, json={})

    port = port_to(count)
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(port.get, path)
    assert most == 4


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    asked: list[str] = []

    async def elsewhere(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(302, headers={"location": "https://evil.example/"})

    assert (await port_to(elsewhere).get(path)).status == 302
    assert asked == [f"{origin}/v1/schema"]


async def test_the_network_client_has_the_deadlines_and_proxies_of_its_place() -> None:
    async with network_client() as http:
        assert (http.timeout.connect, http.timeout.read) == (3.0, 30.0)
        assert http.trust_env
        assert not http.follow_redirects
    assert (READ_SECONDS, BLOB_SECONDS, JSON_BYTES) == (16.0, 30.0, 32 * 1024 * 1024)
