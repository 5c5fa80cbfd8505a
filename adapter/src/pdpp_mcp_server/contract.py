"""What is published, as data that is loaded once; and how large each thing may be.

Source: docs/contract/mcp-adapter.md 6.1; docs/decisions.md C20, C21, C26.
Units: characters (code points) unless the name says bytes or seconds, or what is counted.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from pdpp_kernel.result_size import RESULT_CHARS
from pdpp_mcp_server.rs_client.json_values import Json, is_object

TITLE_OF_SERVER = "Personal data"
TTL_MS = 300_000
"""How long a client may keep a list."""

RETIRED_TOOLS = {
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

SEEN = 10_000
"""What a host that cuts results shows of one, at the least."""
TEXT_AIM = 12_000
STRUCTURED_AIM = RESULT_CHARS
CEILING = 45_000

SCHEMA_STRUCTURED_AIM = STRUCTURED_AIM
SCHEMA_STRUCTURED_BYTES = 60_000
SCHEMA_TEXT_AIM = 8_000
SCHEMA_TEXT_LIMIT = 12_000
SCHEMA_CONNECTION_LINES = 50
SCHEMA_ROWS_WITH_FIGURES = 24

DOCUMENT_TEXT = 24_000
DOCUMENT_FIELD = 300
DOCUMENT_FIELDS = 4_000
DOCUMENT_CHILDREN = 20
CHILD_LINE = 120
JSON_READ_LIMIT = 24_000

ERROR_TEXT = 4_000
ERROR_STRUCTURED = 6_000
QUOTED_VALUE = 80
TITLE = 160
LABEL = 80
GROUP_KEY = 120
EXCERPT = 200
LADDER_PER_HIT = 2
UNUSUAL_ID = 200

STRING_ARGUMENT = 2_000
HANDLE_ARGUMENT = 8_192
LIST_ARGUMENT = 100
FILTER_CONDITIONS = 32
FILTER_VALUES = 100
NEAR_VALUES = 5
SHORT_TEXT = 399

PREVIEWS = (8_000, 2_400, 1_200, 600, 300, 120)
REFIT_PREVIEW = 300
SHORT_PREVIEW = 120
SHORTEST_PREVIEW = 60
COMPOUND_FLOOR = 300
REFERENCE = 1_000
"""A reference to bytes up to this size stays as sent."""
REFIT_ROWS = 5
PAGE_READS = 3
PAGE_CHARS = 10_800
HITS_CHARS = 19_000
"""What a page is asked to hold, so that at `REFIT_PREVIEW` both faces keep their aims."""
MEMBER_CHARS = 450
"""What a member that is cut there comes to at most, with its line of the content ladder."""
PAGE_ROWS = 25
"""What a page holds where no limit is asked for."""

LINKS = 5
LINK_URI = 600 - LABEL
"""Beside its name."""
WINDOW = 4_096
"""The usual length of a field window."""

PROMPT_ARGUMENT = 500
COMPLETIONS = 100
RECORD_RESOURCE_BYTES = 1024 * 1024
BLOB_BYTES = 5 * 1024 * 1024
IMAGE_BYTES = 30_000

TOOL_SECONDS = 45.0
ASIDE_SECONDS = 3.0
"""Deadline of the schema read behind an expand gate or a completion."""


class ResultBudget(msgspec.Struct, frozen=True):
    """How long the faces of a result may be for one client; what it has room for grows alike."""

    structured_aim: int = STRUCTURED_AIM

    @property
    def text_aim(self) -> int:
        """Of the text face."""
        return self.scaled(TEXT_AIM)

    @property
    def ceiling(self) -> int:
        """What neither face passes."""
        return max(CEILING, self.structured_aim)

    def scaled(self, chars: int) -> int:
        """What stands for so many characters of the usual budget."""
        return chars * self.structured_aim // STRUCTURED_AIM


class ToolContract(msgspec.Struct, frozen=True):
    """One tool as published; properties and required are those of its input, in schema order."""

    name: str
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    annotations: Json
    properties: Json
    required: tuple[str, ...]

    @property
    def published(self) -> Json:
        """The tool as a list of tools has it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }


class Contract(msgspec.Struct, frozen=True):
    """Everything that is published about the adapter."""

    instructions: str
    tools: dict[str, ToolContract]


@cache
def published_contract() -> Contract:
    """The document `mcp-tools.json`."""
    text = files("pdpp_mcp_server").joinpath("mcp-tools.json").read_text("utf-8")
    document: Any = json.loads(text)
    tools = {row["name"]: _tool(row) for row in document["tools"] if is_object(row)}
    return Contract(document["instructions"], tools)


@cache
def published_types() -> str:
    """The declarations of arguments and results, which `make docs` writes."""
    return files("pdpp_mcp_server").joinpath("pdpp-types.d.ts").read_text("utf-8")


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
    known = RETIRED_TOOLS.get(name)
    if known is None and "event" in name and "subscription" in name:
        return "REST /v1/event-subscriptions"
    return known
