"""The six tools and the instructions as data: loaded once, returned as they stand."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from personal_server.rs_client.json_values import Json, as_object, is_object

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


@dataclass(frozen=True, slots=True)
class ToolContract:
    """One tool as published."""

    name: str
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    annotations: Json

    @property
    def properties(self) -> Json:
        """Input properties in schema order."""
        return as_object(self.input_schema.get("properties"))

    @property
    def required(self) -> tuple[str, ...]:
        """Required arguments in schema order."""
        return tuple(self.input_schema.get("required", ()))


@dataclass(frozen=True, slots=True)
class Contract:
    """Everything that is published about the adapter."""

    instructions: str
    tools: dict[str, ToolContract]


@cache
def contract() -> Contract:
    """The published contract."""
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
    )


def tool_names() -> tuple[str, ...]:
    """The six names in their order."""
    return tuple(contract().tools)


def replacement_of(name: str) -> str | None:
    """What stands instead of a retired tool."""
    known = retired_tools.get(name)
    if known is None and "event" in name and "subscription" in name:
        return "REST /v1/event-subscriptions"
    return known
