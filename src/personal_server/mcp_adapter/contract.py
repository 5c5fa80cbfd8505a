"""What is published, as data that is loaded once; and how large each thing may be.

Source: docs/contract/mcp-adapter.md 6.1; docs/decisions.md C20, C21, C26.
Units: characters (code points) unless the name says bytes or seconds, or what is counted.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from personal_server.rs_client.json_values import Json, is_object

retired_tools = {
    "list_streams": "schema",
    "fetch_blob": "the resource pdpp://blob/{handle} or REST GET /v1/blobs/{id}",
    "create_event_subscription": "REST /v1/event-subscriptions",
    "list_event_subscriptions": "REST /v1/event-subscriptions",
    "get_event_subscription": "REST /v1/event-subscriptions",
    "update_event_subscription": "REST /v1/event-subscriptions",
    "delete_event_subscription": "REST /v1/event-subscriptions",
    "send_test_event": "REST /v1/event-subscriptions",
}
"""Names that older adapters served, and what stands instead."""

text_aim = 12_000
structured_aim = 32_000
ceiling = 45_000

schema_structured_aim = 32_000
schema_structured_bytes = 60_000
schema_text_aim = 8_000
schema_text_limit = 12_000
schema_connection_lines = 50

document_text = 24_000
document_field = 300
document_fields = 4_000
document_children = 20
json_read_limit = 24_000

error_text = 4_000
error_structured = 6_000
quoted_value = 80
title = 160
label = 80
group_key = 120
excerpt = 200
excerpts_per_hit = 2
unusual_id = 200

string_argument = 2_000
handle_argument = 8_192
list_argument = 100
filter_conditions = 32

previews = (8_000, 2_400, 1_200, 600, 300, 120)
refit_preview = 300
short_preview = 120
shortest_preview = 60
compound_floor = 300
reference = 1_000
"""A reference to bytes up to this size stays as sent."""
refit_rows = 5
page_reads = 3

links = 5
link_uri = 600 - label
"""Beside its name."""
window = 4_096
"""The usual length of a field window."""

prompt_argument = 500
completions = 100
record_resource_bytes = 1024 * 1024
blob_bytes = 5 * 1024 * 1024

tool_seconds = 45.0
aside_seconds = 3.0
"""Deadline of the schema read behind an expand gate or a completion."""


@dataclass(frozen=True, slots=True)
class ToolContract:
    """One tool as published; properties and required are those of its input, in schema order."""

    name: str
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    annotations: Json
    properties: Json
    required: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """Everything that is published about the adapter."""

    instructions: str
    tools: dict[str, ToolContract]


@cache
def published_contract() -> Contract:
    """The document `mcp-tools.json`."""
    text = files("personal_server.mcp_adapter").joinpath("mcp-tools.json").read_text("utf-8")
    document: Any = json.loads(text)
    tools = {row["name"]: _tool(row) for row in document["tools"] if is_object(row)}
    return Contract(document["instructions"], tools)


def _tool(row: Json) -> ToolContract:
    return ToolContract(
        name=row["name"],
        title=row["title"],
        description=row["description"],
        input_schema=row["inputSchema"],
        output_schema=row["outputSchema"],
        annotations=row["annotations"],
        properties=row["inputSchema"]["properties"],
        required=tuple(row["inputSchema"].get("required", ())),
    )


def replacement_of(name: str) -> str | None:
    """What stands instead of a retired tool."""
    known = retired_tools.get(name)
    if known is None and "event" in name and "subscription" in name:
        return "REST /v1/event-subscriptions"
    return known
