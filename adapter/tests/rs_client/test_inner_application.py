"""What an application in this process is asked, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Send

from pdpp_mcp_server.rs_client.inner_application import InnerAnswer, InnerApplication

pytestmark = pytest.mark.anyio
known = {"pdpp_at_1": "known"}
START: Message = {"type": "http.response.start", "status": 200, "headers": []}


def body(part: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more}


async def answer_of(app: ASGIApp, headers: Mapping[str, str] | None = None) -> InnerAnswer:
    target = "https://me.example:8443/v1/streams/a%2Fb?fields=a&fields=%C3%A9"
    return await InnerApplication(app, {"token_states": known}).get(target, headers or {})


async def bytes_of(answer: InnerAnswer) -> bytes:
    return b"".join([part async for part in answer.aiter_bytes()])


async def test_it_is_asked_as_over_the_network() -> None:
    seen: list[Message] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        seen.extend([scope, await receive()])
        await send(START)
        await send(body(b""))

    await answer_of(app, {"Authorization": "Bearer tok", "PDPP-Tool": "fetch"})
    scope, request = seen
    assert request == {"type": "http.request", "body": b"", "more_body": False}
    assert (scope["type"], scope["method"], scope["scheme"]) == ("http", "GET", "https")
    assert (scope["path"], scope["raw_path"]) == ("/v1/streams/a/b", b"/v1/streams/a%2Fb")
    assert scope["query_string"] == b"fields=a&fields=%C3%A9"
    assert scope["state"] == {"origin": "https://me.example:8443", "token_states": known}
    assert scope["headers"] == [
        (b"host", b"me.example:8443"),
        (b"authorization", b"Bearer tok"),
        (b"pdpp-tool", b"fetch"),
    ]


async def test_an_answer_comes_whole_with_its_headers_in_lower_case() -> None:
    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await send({**START, "status": 206, "headers": [(b"Content-Type", b"text/plain")]})
        await send(body(b"one ", more=True))
        await send(body(b"two"))

    answer = await answer_of(app)
    assert (answer.status_code, answer.headers) == (206, {"content-type": "text/plain"})
    assert await bytes_of(answer) == b"one two"
    await answer.aclose()


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("sent", [[], [START], [START, body(b'{"half":', more=True)]])
async def test_what_ends_early_gives_no_part_of_an_answer(
    sent: list[Message], *, raises: bool
) -> None:
    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        for message in sent:
            await send(message)
        if raises:
            raise RuntimeError("a stored value")

    assert await answer_of(app) == InnerAnswer(500, {}, ())


async def test_whoever_waits_for_the_caller_to_leave_is_told_at_the_end() -> None:
    told: list[str] = []

    async def app(_scope: Message, receive: Receive, send: Send) -> None:
        await receive()

        async def wait() -> None:
            told.append((await receive())["type"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            assert told == []
            await send(START)
            await send(body(b""))

    assert (await answer_of(app)).status_code == 200
    assert told == ["http.disconnect"]
