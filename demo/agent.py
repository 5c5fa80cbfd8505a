"""The agent of the demo: the official MCP client, asking what a person would ask."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from demo.story import Story


class Unexpected(Exception):
    """The demo did not get the answer that it exists to show."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The two faces of a result."""

    text: str
    structured: dict[str, Any]
    is_error: bool


class Agent:
    """One MCP session, through one door."""

    def __init__(self, client: Client, story: Story) -> None:
        self._client = client
        self._story = story

    async def tools(self) -> list[str]:
        """The names of the tools."""
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def ask(
        self, question: str, tool: str, arguments: dict[str, Any], *, refused: bool = False
    ) -> Answer:
        """Ask, show question, call and answer, and insist on the outcome."""
        self._story.ask(question, tool, arguments)
        answer = _answer(await self._client.call_tool(tool, arguments))
        self._story.face(answer.text)
        if answer.is_error is not refused:
            raise Unexpected(f"{tool} was {'answered' if refused else 'refused'}: {answer.text}")
        return answer


@asynccontextmanager
async def over_stdio(command: Path, cache: Path, story: Story) -> AsyncGenerator[Agent, None]:
    """A session with the local adapter, started as a host starts it."""
    server = StdioServerParameters(command=str(command), args=["--cache-root", str(cache)])
    async with Client(stdio_client(server)) as client:
        yield Agent(client, story)


@asynccontextmanager
async def over_http(url: str, token: str, story: Story) -> AsyncGenerator[Agent, None]:
    """A session with the hosted endpoint."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield Agent(client, story)


def _answer(result: CallToolResult) -> Answer:
    text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    return Answer(text, result.structured_content or {}, bool(result.is_error))
