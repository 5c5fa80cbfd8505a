"""The published schemas of the tools: `mcp-tools.json` with what rows of the kernel say in it.

`make docs` writes the shape of `filter`, the metrics and the granularities into the document; all
else there is written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pages.parts import ADAPTER
from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.operators import RANGE_OPERATORS, Operator, Takes
from pdpp_kernel.values import ValueKind

TOOLS = ADAPTER / "mcp-tools.json"
MOST_LIST_BYTES = 16_384
"""What a list of tools may take of an agent's window.  Source: docs/contract/mcp-adapter.md 2."""
JSON_TYPES: Mapping[ValueKind, str] = {
    ValueKind.STRING: "string",
    ValueKind.DATE: "string",
    ValueKind.INSTANT: "string",
    ValueKind.INTEGER: "number",
    ValueKind.NUMBER: "number",
    ValueKind.BOOLEAN: "boolean",
}
Schema = dict[str, Any]
EXPLAINED = "Typed, ANDed:"


def tool_document() -> str:
    """The document as it has to be.  Raises: ValueError when the list of tools is too long."""
    document = json.loads(TOOLS.read_text(encoding="utf-8"))
    for tool in document["tools"]:
        _fill(tool["inputSchema"]["properties"])
    listed = json.dumps(document["tools"], separators=(",", ":"), ensure_ascii=False).encode()
    if len(listed) > MOST_LIST_BYTES:
        raise ValueError(f"The list of tools has {len(listed)} bytes, above {MOST_LIST_BYTES}.")
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _fill(properties: Schema) -> None:
    """Put the words of rows into the arguments of a tool that has them."""
    for name, words in (("metric", Metric), ("granularity", Granularity)):
        if name in properties:
            properties[name]["enum"] = [each.value for each in words]
    if "filter" in properties:
        properties["filter"]["additionalProperties"] = condition_schema()
        if properties["filter"]["description"].startswith(EXPLAINED):
            properties["filter"]["description"] = explanation()


def explanation() -> str:
    """What `filter` is, by examples."""
    exact, bounded, further = map(_example, (Operator.EQ, Operator.GTE, Operator.CONTAINS))
    return (
        f"{EXPLAINED} {exact} is exact, {bounded} a range ({', '.join(RANGE_OPERATORS)}), {further}"
        " one of the other operators. Not a string, no brackets in keys."
    )


def _example(operator: Operator) -> str:
    field, value = operator.example
    condition = value if operator is Operator.EQ else {operator.value: value}
    return json.dumps({field: condition}, separators=(",", ":"))


def condition_schema() -> Schema:
    """What stands at a field's name in `filter`: its value, or operators with theirs."""
    named = [each for each in Operator if each is not Operator.EQ]
    return {
        "type": [*json_types(Operator.EQ), "object"],
        "properties": {each.value: value_schema(each) for each in named},
        "additionalProperties": False,
        "minProperties": 1,
    }


def value_schema(operator: Operator) -> Schema:
    """What stands at an operator's word."""
    if operator.takes is Takes.PRESENCE:
        return {"type": "boolean"}
    types = json_types(operator)
    value: Schema = {"type": types[0] if len(types) == 1 else types}
    return {"type": "array", "items": value} if operator.takes is Takes.VALUES else value


def json_types(operator: Operator) -> list[str]:
    """The types of JSON in which values of an operator's kinds are written."""
    written = {JSON_TYPES[kind] for kind in operator.kinds}
    return [each for each in dict.fromkeys(JSON_TYPES.values()) if each in written]
