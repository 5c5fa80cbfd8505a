"""The tools, resources and prompts that the public suite asks a server under test to have.

Source: the "Server Implementation Requirements" of each scenario of the suite.  What needs a
capability that this adapter does not offer has no fixture.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from pdpp_mcp_server.calls import Outcome, ToolCall, ToolFunction
from pdpp_mcp_server.prompts import UnusableArguments
from pdpp_mcp_server.resources import Content, Resource, not_found
from pdpp_mcp_server.sdk_results import call_result
from pdpp_mcp_server.server_offer import (
    PromptFunction,
    ServerOffer,
)

TTL_MS = 300_000
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
KEYWORDS: dict[str, Any] = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixel() -> str:
    """One red pixel as PNG, in base64."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    row = zlib.compress(b"\0\xff\0\0")
    body = _chunk(b"IHDR", head) + _chunk(b"IDAT", row) + _chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def _silence() -> str:
    """One sample of silence as WAV, in base64."""
    form = struct.pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", 1) + b"\x80"
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


PIXEL = types.ImageContent(data=_pixel(), mime_type="image/png")
SOUND = types.AudioContent(data=_silence(), mime_type="audio/wav")


def embedded(uri: str, text: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(resource=resource)


BLOCKS: dict[str, list[types.ContentBlock]] = {
    "test_image_content": [PIXEL],
    "test_audio_content": [SOUND],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        PIXEL,
        embedded(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ],
}
"""What stands beside the text of a result."""


def saying(text: str) -> ToolFunction:
    """A tool that always says the same."""

    async def tool(call: ToolCall, arguments: Mapping[str, Any] | None) -> Outcome:
        del call, arguments
        return Outcome({"said": text}, text)

    return tool


async def failing(call: ToolCall, arguments: Mapping[str, Any] | None) -> Outcome:
    del call, arguments
    raise RuntimeError("This tool intentionally returns an error for testing")


TOOLS: dict[str, ToolFunction] = {
    "test_simple_text": saying("This is a simple text response for testing."),
    "test_image_content": saying("An image:"),
    "test_audio_content": saying("A sound:"),
    "test_embedded_resource": saying("A resource:"),
    "test_multiple_content_types": saying("Multiple content types test:"),
    "test_error_handling": failing,
    "test_logging_tool": saying("What is logged stays with the server."),
    "json_schema_2020_12_tool": saying("Taken."),
}


def render(call: ToolCall, outcome: Outcome) -> tuple[types.CallToolResult, tuple[int, int]]:
    """Our rendering, and the blocks of a fixture after its text."""
    result, sizes = call_result(call, outcome)
    result.content += BLOCKS.get(call.tool, [])
    return result, sizes


def list_tools() -> types.ListToolsResult:
    schemas = {"json_schema_2020_12_tool": KEYWORDS}
    listed = [
        types.Tool(name=name, description="A fixture.", input_schema=schemas.get(name, NOTHING))
        for name in TOOLS
    ]
    return types.ListToolsResult(tools=listed, ttl_ms=TTL_MS, cache_scope="public")


CONTENTS: dict[str, Content] = {
    "test://static-text": Content("text/plain", "This is the content of the static text resource."),
    "test://static-binary": Content("image/png", blob=PIXEL.data),
}
TEMPLATE = "test://template/{id}/data"


async def read_resource(call: ToolCall, uri: str) -> Resource:
    del call
    before, after = TEMPLATE.split("{id}")
    if uri.startswith(before) and uri.endswith(after):
        given = uri.removeprefix(before).removesuffix(after)
        said = {"id": given, "templateTest": True, "data": f"Data for ID: {given}"}
        return Resource((Content("application/json", json.dumps(said)),))
    if uri not in CONTENTS:
        raise not_found()
    return Resource((CONTENTS[uri],))


def list_resources() -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri.removeprefix("test://")) for uri in CONTENTS]
    return types.ListResourcesResult(resources=listed, ttl_ms=TTL_MS, cache_scope="public")


def list_templates() -> types.ListResourceTemplatesResult:
    listed = [types.ResourceTemplate(uri_template=TEMPLATE, name="template")]
    return types.ListResourceTemplatesResult(
        resource_templates=listed, ttl_ms=TTL_MS, cache_scope="public"
    )


def _messages(*contents: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=content) for content in contents]
    )


def _checked(given: Mapping[str, str], *required: str) -> list[str]:
    missing = [name for name in required if name not in given]
    unknown = sorted(set(given) - set(required))
    if missing or unknown:
        raise UnusableArguments(missing, unknown)
    return [given[name] for name in required]


def simple(given: Mapping[str, str]) -> types.GetPromptResult:
    _checked(given)
    return _messages(types.TextContent(text="This is a simple prompt for testing."))


def with_arguments(given: Mapping[str, str]) -> types.GetPromptResult:
    first, second = _checked(given, "arg1", "arg2")
    words = f"Prompt with arguments: arg1='{first}', arg2='{second}'"
    return _messages(types.TextContent(text=words))


def with_resource(given: Mapping[str, str]) -> types.GetPromptResult:
    (uri,) = _checked(given, "resourceUri")
    words = types.TextContent(text="Please process the embedded resource above.")
    return _messages(embedded(uri, "Embedded resource content for testing."), words)


def with_image(given: Mapping[str, str]) -> types.GetPromptResult:
    _checked(given)
    return _messages(PIXEL, types.TextContent(text="Please analyze the image above."))


PROMPTS: dict[str, tuple[PromptFunction, tuple[str, ...]]] = {
    "test_simple_prompt": (simple, ()),
    "test_prompt_with_arguments": (with_arguments, ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": (with_resource, ("resourceUri",)),
    "test_prompt_with_image": (with_image, ()),
}


def list_prompts() -> types.ListPromptsResult:
    listed = [
        types.Prompt(
            name=name,
            description="A fixture.",
            arguments=[
                types.PromptArgument(name=argument, description="A word.", required=True)
                for argument in taken
            ],
        )
        for name, (_, taken) in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=listed, ttl_ms=TTL_MS, cache_scope="public")


FIXTURES = ServerOffer(
    list_tools=list_tools,
    list_resources=list_resources,
    list_templates=list_templates,
    list_prompts=list_prompts,
    tools=TOOLS,
    prompts={name: function for name, (function, _) in PROMPTS.items()},
    read_resource=read_resource,
    render=render,
)
