"""The Skills extension on the SDK's server: what it declares, and its two methods.

Rule: the three lists that every host reads stay as they are; a skill is found by these methods or
by its address.
Source: docs/contract/mcp-adapter.md 11.2; SEP-2640.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from pdpp_mcp_server.contract import TTL_MS
from pdpp_mcp_server.rs_client.json_values import Json
from pdpp_mcp_server.server import Context
from pdpp_mcp_server.shipped_skills import (
    EXTENSION,
    GET_METHOD,
    LIST_METHOD,
    shipped_skills,
    skill_at,
)


class ListSkillsResult(types.PaginatedResult, types.CacheableResult):
    """The answer to `skills/list`."""

    skills: list[Json]
    result_type: types.ResultType = "complete"


class GetSkillResult(types.CacheableResult):
    """The answer to `skills/get`."""

    skill: Json
    result_type: types.ResultType = "complete"


class GetSkillParams(types.RequestParams):
    """Which skill: the address of its `SKILL.md`."""

    uri: str


def add_skills(server: Server[dict[str, Any]]) -> None:
    """Declare the extension and answer its methods."""
    server.extensions[EXTENSION] = {}
    server.add_request_handler(LIST_METHOD, types.PaginatedRequestParams, _list)
    server.add_request_handler(GET_METHOD, GetSkillParams, _get)


async def _list(context: Context, params: types.PaginatedRequestParams) -> ListSkillsResult:
    del context, params
    entries = [skill.entry for skill in shipped_skills()]
    return ListSkillsResult(skills=entries, ttl_ms=TTL_MS, cache_scope="public")


async def _get(context: Context, params: GetSkillParams) -> GetSkillResult:
    del context
    skill = skill_at(params.uri)
    if skill is None:
        known = ", ".join(skill.uri for skill in shipped_skills())
        raise MCPError(types.INVALID_PARAMS, f"No such skill. Skills: {known}.")
    return GetSkillResult(skill=skill.entry, ttl_ms=TTL_MS, cache_scope="public")
