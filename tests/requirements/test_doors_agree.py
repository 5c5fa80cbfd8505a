"""The same seed through four doors: equal results, but for request ids, nonces and addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from personal_server.rs_client.json_values import is_object
from tests.requirements.doors import (
    Door,
    RpcError,
    StdioDoor,
    World,
    http_door,
    memory_door,
    origin,
    settings_for,
)

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
field: Json = {"id": "cin_a/messages:m8", "field_path": "body"}
corpus: list[tuple[str, Json]] = [
    ("schema", {}),
    ("schema", {"stream": "messages"}),
    ("schema", {"stream": "nothing"}),
    ("schema", {"stream": "messages", "detail": "full"}),
    ("schema", {"stream": "messages", "detail": "full", "connection_id": "cin_a"}),
    ("query_records", {"stream": "messages"}),
    ("query_records", {"stream": "messages", "limit": 2, "count": "exact"}),
    ("query_records", {"stream": "messages", "expand": ["attachments"], "filter": {"id": "m1"}}),
    ("query_records", {"stream": "messages", "changes_since": "beginning"}),
    ("query_records", {"stream": "secrets"}),
    ("query_records", {"stream": "messages", "limit": "2"}),
    ("aggregate", {"stream": "transactions", "metric": "count"}),
    ("aggregate", {"stream": "transactions", "metric": "count", "group_by": "category"}),
    ("aggregate", {"stream": "transactions", "metric": "sum"}),
    ("search", {"query": "invoice"}),
    ("search", {"query": "lisbon", "connection_id": "cin_a"}),
    ("search", {"query": "x", "mode": "semantic"}),
    ("fetch", {"id": "cin_a/messages:m8"}),
    ("fetch", {"id": "cin_a/messages:m9"}),
    ("fetch", {"id": "messages:m1"}),
    ("fetch", {"id": "bad"}),
    ("read_record_field", field),
    ("read_record_field", {**field, "q": "Paragraph 60"}),
    ("read_record_field", {**field, "cursor": "7"}),
]
requests: list[tuple[str, Json]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "pdpp://schema"}),
    ("resources/read", {"uri": "pdpp://grant"}),
    ("resources/read", {"uri": "pdpp://record/xx"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "timeline", "arguments": {"topic": "gardens"}}),
    ("prompts/get", {"name": "timeline", "arguments": {}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "timeline"},
            "argument": {"name": "stream", "value": "m"},
        },
    ),
]
of_an_era = {"ttlMs", "cacheScope", "resultType", "io.modelcontextprotocol/serverInfo"}


def plain(value: Any, url: str) -> Any:
    """Without what may differ."""
    text = json.dumps(value, ensure_ascii=False).replace(url, "https://here")
    text = re.sub(r"req_[A-Za-z0-9]+(\.\d+)?", "req", text)
    text = re.sub(r"(BEGIN|END) [0-9a-f]{12}", r"\1 nonce", text)
    return without_era(json.loads(text))


def without_era(result: Any) -> Any:
    if not is_object(result):
        return result
    found = {name: item for name, item in result.items() if name not in of_an_era}
    if "_meta" in found:
        found["_meta"] = without_era(found["_meta"])
        found["_meta"].pop("pdpp.dev/size", None)  # the address stands in both faces
    return {name: item for name, item in found.items() if item != {}}


async def told(door: Door) -> list[Any]:
    found: list[Any] = []
    for tool, arguments in corpus:
        found.append(plain((await door.call(tool, arguments)).raw, door.provider_url))
    for method, params in requests:
        try:
            found.append(plain(await door.wire.request(method, params), door.provider_url))
        except RpcError as error:
            data = plain(error.data, door.provider_url)
            found.append([error.code in {-32602, -32002}, error.message, data])
    return found


@pytest.mark.req("0.2")
@pytest.mark.req("4.11")
async def test_all_doors_tell_the_same(stdio_process: StdioDoor) -> None:
    async with memory_door(World(), settings_for("auto")) as door:
        wanted = await told(door)
    for name in ("http-2025", "http-2026"):
        async with http_door(name, World(), settings_for("auto")) as door:
            assert await told(door) == wanted, name
    assert await told(stdio_process.door()) == wanted
    assert origin not in json.dumps(wanted)


@pytest.mark.parametrize("name", ["http-2025", "http-2026"])
async def test_no_log_line_holds_what_was_asked_or_said(
    name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("DEBUG")
    behind = World()
    behind.rs.sources[0].streams["messages"]["m8"]["subject"] = "planted-title"
    async with http_door(name, behind) as door:
        await door.call("search", {"query": "planted-title"})
        await door.call("query_records", {"stream": "messages", "filter": {"id": "planted-filter"}})
        await door.call("fetch", {"id": "cin_a/messages:planted-key"})
        await door.call("fetch", {"id": "planted//id"})
    lines = [r.getMessage() for r in caplog.records if r.name == "personal_server.mcp_adapter"]
    assert len(lines) == 5
    assert lines[4].startswith("mcp counts calls=4 ")
    assert "route=/v1/streams/{stream}/records/{record} status=404 outcome=not_found" in lines[2]
    ours = [r.getMessage() for r in caplog.records if r.name.startswith(("personal", "httpx2"))]
    assert not any("planted" in line or "pdpp_at_" in line for line in ours)
