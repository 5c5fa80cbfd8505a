"""TypeScript declarations of every tool's arguments and results, from what they are made of.

The members of an envelope come from the structs that `/v1` encodes, the rest from the tools'
published schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pages.parts import ADAPTER
from pdpp_mcp_server.contract import ToolContract, published_contract
from personal_server.resource_server.aggregate_route import SingleAggregation
from personal_server.resource_server.reads import (
    RecordList,
    Timeline,
)
from personal_server.resource_server.schema_bodies import SchemaBody
from personal_server.resource_server.search_routes import SearchResults
from personal_server.web.json_schemas import Components

DECLARATIONS = ADAPTER / "pdpp-types.d.ts"
Schema = Mapping[str, Any]

HEAD = """// Written by `make docs` from the structs that results are encoded from.
/** `structuredContent` of a tool: its result, or an error. */
export type Answer<Tool extends keyof Results> = Results[Tool] | { error: ToolError };
/** A page as a tool shows it: what all its rows have alike stands once in `page`. */
export type Lean<Envelope extends { data: unknown[] }> = Omit<Envelope, "data" | "links"> & {
  data: (Partial<Envelope["data"][number]> & { id: string; data?: { [name: string]: unknown } })[];
  links: { self: string; next?: string | null };
};
"""
PAGE_HEAD = """# Types of tools

What a program of [code mode](code-mode.md) gives the tools and gets. An agent reads the same as the resource `pdpp://types`.

"""  # noqa: E501 (a line of Markdown)
DATA = {
    "schema": "Schema",
    "query_records": "Lean<RecordList> | Lean<Timeline>",
    "aggregate": "Aggregation",
    "search": "SearchResults",
}
"""What `data` of a tool's result is."""
NAMED = {
    "next": "NextCall[]",
    "warnings": "Warning[]",
    "content_ladder": "LadderEntry[]",
    "next_call": "NextCall",
}
"""What the adapter's own members hold, where a tool's schema only says that they are objects."""
OWN = """export interface NextCall {
  tool: keyof Arguments;
  arguments: { [name: string]: unknown };
  why?: string;
}
export interface LadderEntry {
  id?: string;
  field_path: string;
  kind: "text" | "json" | "binary";
  status: "truncated" | "omitted" | "binary";
  read?: NextCall;
  uri?: string;
  [name: string]: unknown;
}
"""
ENVELOPES = (SchemaBody, RecordList, Timeline, SingleAggregation, SearchResults)


def types_page() -> str:
    """The declarations as a page."""
    return f"{PAGE_HEAD}```ts\n{declarations()}```\n"


def declarations() -> str:
    """All of it."""
    components = Components()
    for struct in ENVELOPES:
        components.describe(struct)
    tools = list(published_contract().tools.values())
    named = {name: _type(schema) for name, schema in components.schemas.items()}
    named["ToolError"] = _type(_error_of(tools[0]))
    lines = [f"export type {name} = {written};\n" for name, written in named.items()]
    arguments = _members([(tool.name, _type(tool.input_schema), True) for tool in tools])
    results = _members([(tool.name, _result(tool), True) for tool in tools])
    lines.append(f"export interface Arguments {arguments}\nexport interface Results {results}\n")
    return "".join((HEAD, OWN, *lines))


def _result(tool: ToolContract) -> str:
    schema = tool.output_schema
    first = next(each for each in schema["anyOf"] if each["required"] != ["error"])
    own = {name: value for name, value in schema["properties"].items() if name != "error"}
    if tool.name in DATA:
        own["data"] = {"named": DATA[tool.name]}
    if tool.name == "query_records":
        own["page"] = {
            "named": "Partial<Record> & { id_prefix?: string; id_field?: string }",
        }
    return _type({"type": "object", "properties": own, "required": first["required"]})


def _error_of(tool: ToolContract) -> Schema:
    return {**tool.output_schema["properties"]["error"], "additionalProperties": True}


def _type(schema: Schema) -> str:
    """One JSON Schema of ours as a type."""
    if "named" in schema:
        return str(schema["named"])
    if "$ref" in schema:
        return _referred(schema)
    if values := [schema["const"]] if "const" in schema else schema.get("enum"):
        return " | ".join(map(json.dumps, values))
    if "anyOf" in schema and "properties" not in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}) for each in cast("list[str]", kind))
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner or "&" in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema)
    plain = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}
    return {**plain, "null": "null"}.get(str(kind), "unknown")


def _object(schema: Schema) -> str:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    shown = [
        (name, _named(name, member) or _type(member), name in required)
        for name, member in properties.items()
    ]
    more = schema.get("additionalProperties", not properties)
    if more is True:
        shown.append(("[name: string]", "unknown", True))
    elif isinstance(more, dict):
        shown.append(("[name: string]", _type(cast("Schema", more)), True))
    return _members(shown)


def _named(name: str, schema: Schema) -> str | None:
    """What a member holds where its schema says no more than that there are objects."""
    held = schema.get("items", schema)
    is_bare = held.get("type") == "object" and "properties" not in held
    return NAMED.get(name) if is_bare else None


def _members(members: Sequence[tuple[str, str, bool]]) -> str:
    lines = [
        f"  {name}{'' if needed else '?'}: {kind.replace(chr(10), chr(10) + '  ')};\n"
        for name, kind, needed in members
    ]
    return "{\n" + "".join(lines) + "}" if lines else "{}"


def _referred(schema: Schema) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]
