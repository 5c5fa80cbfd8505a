"""The questions that every door is asked, and what may differ in their answers.

`{a}` and `{b}` stand for two mailboxes, `{c}` for a bank, as the server behind the door names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pdpp_mcp_server.rs_client.json_values import is_object
from tests.requirements.doors import Door, RpcError

Json = dict[str, Any]
places = {"{a}": "cin_a", "{b}": "cin_b", "{c}": "cin_c"}
field: Json = {"id": "{a}/messages:m8", "field_path": "body"}
corpus: list[tuple[str, Json]] = [
    ("schema", {}),
    ("schema", {"stream": "messages"}),
    ("schema", {"stream": "nothing"}),
    ("schema", {"connection_id": "{c}"}),
    ("schema", {"stream": "messages", "detail": "full"}),
    ("schema", {"stream": "messages", "detail": "full", "connection_id": "{a}"}),
    ("query_records", {"stream": "messages"}),
    ("query_records", {"stream": "messages", "connection_id": "{a}", "limit": 2, "count": "exact"}),
    ("query_records", {"stream": "messages", "expand": ["attachments"], "filter": {"id": "m1"}}),
    ("query_records", {"stream": "messages", "changes_since": "beginning"}),
    ("query_records", {"stream": "secrets"}),
    ("query_records", {"stream": "messages", "limit": "2"}),
    ("query_records", {"stream": "messages", "cursor": "nonsense"}),
    ("aggregate", {"stream": "transactions", "metric": "count"}),
    ("aggregate", {"stream": "transactions", "metric": "count", "group_by": "category"}),
    ("aggregate", {"stream": "transactions", "metric": "sum"}),
    ("search", {"query": "invoice"}),
    ("search", {"query": "lisbon", "connection_id": "{a}"}),
    ("search", {"query": "invoice", "mode": "semantic"}),
    ("fetch", {"id": "{a}/messages:m8"}),
    ("fetch", {"id": "{a}/messages:m9"}),
    ("fetch", {"id": "messages:m1"}),
    ("fetch", {"id": "{a}/messages:none"}),
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


def placed(arguments: Json, names: Mapping[str, str] = places) -> Json:
    """The arguments with the connections of a server."""
    text = json.dumps(arguments)
    for place, name in names.items():
        text = text.replace(place, name)
    return json.loads(text)


async def told(door: Door, names: Mapping[str, str] = places) -> list[Any]:
    """Every answer of a door, without what may differ."""
    found: list[Any] = []
    for tool, arguments in corpus:
        found.append(plain((await door.call(tool, placed(arguments, names))).raw, door))
    for method, params in requests:
        try:
            found.append(plain(await door.wire.request(method, params), door))
        except RpcError as error:
            data = plain(error.data, door)
            found.append([error.code in {-32602, -32002}, error.message, data])
    return found


def plain(value: Any, door: Door) -> Any:
    """Without request ids, nonces, addresses, and what belongs to an era."""
    text = json.dumps(value, ensure_ascii=False).replace(door.provider_url, "https://here")
    text = re.sub(r"req_[A-Za-z0-9]+(\.\d+)?", "req", text)
    text = re.sub(r"(BEGIN|END) [0-9a-f]{12}", r"\1 nonce", text)
    return without_era(json.loads(text))


def without_era(result: Any) -> Any:
    """A result as both eras have it."""
    if not is_object(result):
        return result
    found = {name: item for name, item in result.items() if name not in of_an_era}
    if "_meta" in found:
        found["_meta"] = without_era(found["_meta"])
        found["_meta"].pop("pdpp.dev/size", None)  # the address stands in both faces
    return {name: item for name, item in found.items() if item != {}}
