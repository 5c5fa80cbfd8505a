"""One read of the resource server → its body, or a typed refusal with the way on.

Source: MCP adapter contract 3.5, 5.2, 5.3. Codes of the resource server pass unchanged; no other
credential and no wider scope is ever tried.
"""

from collections.abc import Mapping
from typing import Any

import anyio

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.advice import ended_codes, expectation, never_retried, next_call
from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.rs_client.json_values import Json, as_object, is_object
from personal_server.rs_client.normalize import error_of
from personal_server.rs_client.port import (
    Path,
    Query,
    RsFailure,
    RsInvalidResponse,
    RsResponse,
    RsTimeout,
)

more_access = "The person must approve more access; do not retry."
ended_access = "The person must approve access again, or choose another source."


async def read(call: Call, path: Path, query: Query, asked: Mapping[str, Any]) -> RsResponse:
    """Read one JSON object.

    Raises: ToolError, for every status but success and for every failure of the port.
    """
    response = await answer(call, path, query, asked)
    if not response.ok:
        raise refusal(call, response, asked)
    if not is_object(response.body):
        raise _failure("rs_invalid_response", call, asked)
    return response


async def answer(call: Call, path: Path, query: Query, asked: Mapping[str, Any]) -> RsResponse:
    """Read, whatever the status.

    Raises: ToolError for a failure of the port.
    """
    try:
        return await call.port.get(path, query)
    except RsFailure as failure:
        raise failed(failure, call, asked) from None


def failed(failure: RsFailure, call: Call, asked: Mapping[str, Any]) -> ToolError:
    """The refusal of a read that had no usable answer."""
    if isinstance(failure, RsTimeout):
        return _failure("rs_timeout", call, asked)
    if isinstance(failure, RsInvalidResponse):
        return _failure("rs_invalid_response", call, asked)
    return _failure("rs_unreachable", call, asked)


messages = {
    "rs_timeout": "The resource server did not answer in time.",
    "rs_unreachable": "The resource server could not be reached.",
    "rs_invalid_response": "The resource server gave an answer that is not usable JSON.",
}


def _failure(code: str, call: Call, asked: Mapping[str, Any]) -> ToolError:
    return ToolError(code, messages[code], next_call=NextCall(call.tool, asked))


def refusal(call: Call, response: RsResponse, asked: Mapping[str, Any]) -> ToolError:
    """The server's own refusal, with its code and a hint."""
    error = error_of(response)
    code = str(error["code"])
    members = {name: value for name, value in error.items() if name not in {"code", "message"}}
    members["origin"] = "resource_server"
    members["http_status"] = response.status
    if response.request_id:
        members["request_id"] = response.request_id
    if response.retry_after_seconds is not None:
        members["retry_after_seconds"] = response.retry_after_seconds
    if code.startswith("ambiguous_"):
        members["discovery_hint"] = "Call `schema` to list every stream with its connections."
    advice = _sentence(call, code, response.status)
    message = f"{_as_sentence(error['message'])} {advice}" if advice else error["message"]
    wanted = expectation(error)
    if wanted is not None:
        members.setdefault("expected", wanted)
    hint = next_call(call.tool, error, response.status, asked)
    return ToolError(code, message, members=members, next_call=hint)


def _as_sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _sentence(call: Call, code: str, status: int) -> str:
    if code in never_retried:
        return more_access
    if code in ended_codes or code == "connection_not_found":
        return ended_access
    return f"Run `pdpp connect {call.provider_url}` to approve again." if status == 401 else ""


async def read_catalog(call: Call, query: Query) -> Json | None:
    """The compact schema for a check of ours, live; None when it cannot be had in time."""
    compact_query = (("view", "compact"), *query)
    try:
        with anyio.move_on_after(budgets.aside_seconds):
            response = await call.port.get(("v1", "schema"), compact_query)
            if response.status == 400:
                response = await call.port.get(("v1", "schema"), query)
            return as_object(response.body) if response.ok else None
    except RsFailure:
        return None
    return None
