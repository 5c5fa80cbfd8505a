"""Reads over MCP as an agent of `pydantic-ai` does; prints what came as JSON.

Usage: python agent.py ORIGIN TOKEN.  The model is one that calls the tools it is told to.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel


async def main(origin: str, token: str) -> None:
    """Every tool, two calls of our own, and a run in which the model calls one."""
    toolset = MCPToolset(f"{origin}/mcp", headers={"Authorization": f"Bearer {token}"})
    async with toolset:
        tools = [tool.name for tool in await toolset.list_tools()]
        page = await toolset.direct_call_tool("query_records", {"stream": "messages", "limit": 3})
        ran = await Agent(TestModel(call_tools=["schema"]), toolsets=[toolset]).run(
            "What is there?"
        )
    called = [
        part.tool_name
        for message in ran.all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]
    print(json.dumps({"tools": sorted(tools), "ids": _ids(page), "called": called}))


def _ids(page: object) -> list[str]:
    assert isinstance(page, dict), page
    return [record["id"] for record in page["data"]["data"]]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
