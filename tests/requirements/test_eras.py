"""One endpoint, two protocol eras: the same answers but for four allowed differences."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from tests.requirements.corpus import corpus, placed, requests
from tests.requirements.doors import HttpWire, Outer, World, eras, greeting_request, hosted, origin

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
older, newer = eras.values()
info = "io.modelcontextprotocol/serverInfo"
client_info = "io.modelcontextprotocol/clientInfo"
hints = ("ttlMs", "cacheScope")
lists = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
read_hints = {
    "pdpp://schema": 30_000,
    "pdpp://stream/messages": 30_000,
    "pdpp://grant": 0,
    "pdpp://record/{record}": 0,
}


@pytest.fixture
async def http(anyio_backend: str) -> AsyncGenerator[httpx2.AsyncClient]:
    async with AsyncExitStack() as stack:
        app = hosted(World())
        await stack.enter_async_context(app.run())
        transport = httpx2.ASGITransport(app=Outer(app))
        yield await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url=origin)
        )


async def answered(http: httpx2.AsyncClient, era: str, method: str, params: Json) -> Json:
    return (await HttpWire(http, era).post(method, params)).json()


@pytest.mark.req("4.11")
async def test_only_hints_and_identity_tell_the_eras_apart(http: httpx2.AsyncClient) -> None:
    tools = [("tools/call", {"name": tool, "arguments": placed(given)}) for tool, given in corpus]
    for method, params in [*tools, *requests]:
        old, new = [await answered(http, era, method, params) for era in eras.values()]
        if "error" in old:
            continue
        assert not {*hints, "resultType"} & set(old["result"])
        assert info not in old["result"].get("_meta", {})
        assert new["result"]["resultType"] == "complete"
        assert new["result"]["_meta"][info]["name"] == "pdpp-personal-server"
        assert (hints[0] in new["result"]) is (method in lists or method == "resources/read")


async def test_an_unknown_resource_and_an_unknown_tool_are_told_by_era(
    http: httpx2.AsyncClient,
) -> None:
    unknown: list[tuple[str, Json]] = [
        ("resources/read", {"uri": "pdpp://nothing"}),
        ("tools/call", {"name": "list_streams", "arguments": {}}),
        ("tools/call", {"name": "schema", "arguments": "text"}),
        ("prompts/get", {"name": "timeline", "arguments": {}}),
    ]
    wanted = {older: [(200, -32002), *[(200, -32602)] * 3], newer: [(400, -32602)] * 4}
    for era in eras.values():
        answers = [await HttpWire(http, era).post(*asked) for asked in unknown]
        told = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
        assert told == wanted[era]


async def test_a_failed_tool_is_a_result_in_both_eras(http: httpx2.AsyncClient) -> None:
    params: Json = {"name": "fetch", "arguments": {"id": "bad"}}
    for era in eras.values():
        answer = await HttpWire(http, era).post("tools/call", params)
        assert answer.status_code == 200
        assert answer.json()["result"]["isError"] is True


async def test_lists_may_be_kept_by_all_and_reads_by_their_reader(http: httpx2.AsyncClient) -> None:
    for method in lists:
        result = (await answered(http, newer, method, {}))["result"]
        assert [result[name] for name in hints] == [300_000, "public"]
    found = (await answered(http, newer, *greeting_request(newer)))["result"]
    assert [found[name] for name in hints] == [300_000, "public"]
    hits = {"name": "search", "arguments": {"query": "Lisbon"}}
    rows = (await answered(http, newer, "tools/call", hits))["result"]["structuredContent"]
    field = next(e["uri"] for row in rows["results"] for e in row["content_ladder"])
    record = "pdpp://record/" + record_handle()
    uris = {uri.replace("pdpp://record/{record}", record): ms for uri, ms in read_hints.items()}
    for uri, ms in {**uris, field: 0}.items():
        result = (await answered(http, newer, "resources/read", {"uri": uri}))["result"]
        assert [result[name] for name in hints] == [ms, "private"], uri


def record_handle() -> str:
    from pdpp_mcp_server.handles import RecordRef, record_uri  # noqa: PLC0415

    return record_uri(RecordRef("cin_a", "messages", "m1")).removeprefix("pdpp://record/")


async def test_the_capabilities_are_the_same_four(http: httpx2.AsyncClient) -> None:
    for era in eras.values():
        found = (await answered(http, era, *greeting_request(era)))["result"]
        offered = found["capabilities"]
        extensions = {"extensions"} if era == newer else set[str]()
        assert {"tools", "resources", "prompts", "completions"} | extensions == set(offered)
        flags = json.dumps(offered)
        assert "true" not in flags
        assert found["instructions"]


async def test_hints_of_the_request_choose_a_format_and_nothing_else(
    http: httpx2.AsyncClient,
) -> None:
    params: Json = {"name": "search", "arguments": {"query": "Lisbon"}}
    plain = (await answered(http, newer, "tools/call", params))["result"]
    hinted = [
        HttpWire(http, older, extra_meta={"openai/locale": "en"}),
        HttpWire(http, older, headers={"User-Agent": "openai-mcp/1.0.0"}),
        HttpWire(http, newer, extra_meta={client_info: {"name": "ChatGPT", "version": "1"}}),
    ]
    for wire in hinted:
        found = await wire.request("tools/call", params)
        assert found["structuredContent"] == plain["structuredContent"]
        assert [block["type"] for block in found["content"]] == ["text"]
        told = json.loads(found["content"][0]["text"])
        shown = [{name: row[name] for name in ("id", "title", "url")} for row in told["results"]]
        assert shown == told["results"]
    assert len(plain["content"]) > 1
