"""Lists answered from what was made for an equal request: the same bytes as the SDK's own."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from starlette.responses import Response

from personal_server.hosted_mcp.list_answers import (
    LISTS,
    MOST_KEPT,
    AskedList,
    ListAnswers,
    asked_list,
)
from tests.requirements.doors import Outer, World, hosted, origin, token

pytestmark = pytest.mark.anyio
HEADERS = {
    "authorization": f"Bearer {token}",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}


@pytest.fixture
async def http(anyio_backend: str) -> AsyncGenerator[httpx2.AsyncClient]:
    app = hosted(World())
    transport = httpx2.ASGITransport(app=Outer(app))
    async with app.run(), httpx2.AsyncClient(transport=transport, base_url=origin) as client:
        yield client


async def asked(http: httpx2.AsyncClient, body: Any, **headers: str) -> httpx2.Response:
    sent = body if isinstance(body, str) else json.dumps(body)
    return await http.post("/mcp", content=sent, headers={**HEADERS, **headers})


def message(message_id: object, method: str, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": message_id, "method": method, **members}


@pytest.mark.parametrize("method", sorted(LISTS))
async def test_a_list_is_the_same_whoever_made_it_but_for_the_id(
    http: httpx2.AsyncClient, method: str
) -> None:
    first = await asked(http, message(1, method))
    for message_id in (2, "a-3", "ü", -4):
        again = await asked(http, message(message_id, method))
        assert again.json() == {**first.json(), "id": json.loads(json.dumps(message_id))}
        without = {"request-id", "x-request-id", "content-length"}
        assert {n: v for n, v in again.headers.items() if n not in without} == {
            n: v for n, v in first.headers.items() if n not in without
        }


async def test_what_is_wrong_with_a_request_is_said_after_a_good_one_too(
    http: httpx2.AsyncClient,
) -> None:
    good = message(1, "tools/list")
    assert (await asked(http, good)).status_code == 200
    assert (await asked(http, good, authorization="Bearer pdpp_at_revoked")).status_code == 401
    for headers in ({"accept": "text/html"}, {"content-type": "text/plain"}):
        assert (await asked(http, good, **headers)).status_code >= 400
    assert (await asked(http, good, **{"mcp-protocol-version": "1999-01-01"})).status_code == 400
    wrong: list[Any] = [
        message(1, "tools/list", params=[1]),
        message(1, "tools/lists"),
        message(None, "tools/list"),
        {**good, "jsonrpc": "1.0"},
        [good],
        json.dumps(good)[:-1],
    ]
    for body in wrong:
        refused = [await asked(http, body) for _ in range(2)]
        assert refused[0].content == refused[1].content
        assert b'"result":' not in refused[0].content


def test_there_is_a_bound_for_what_is_kept() -> None:
    lists = ListAnswers()

    def numbered(number: int) -> AskedList:
        body = json.dumps(message(1, "tools/list", params={"_meta": {"n": number}})).encode()
        found = asked_list(origin, [], body)
        assert found is not None
        return found

    for number in range(2 * MOST_KEPT):
        one = numbered(number)
        assert lists.answer(one) is None
        lists.keep(one, Response(one.beginning + b"{}}"))
        assert lists.answer(one) is not None
    assert lists.answer(numbered(0)) is None
