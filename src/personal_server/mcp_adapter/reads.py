"""One read of the resource server → its body, or a typed refusal with the way on.

Source: docs/contract/mcp-adapter.md 3.5, 5.2, 5.3. Codes of the resource server pass unchanged; no
other credential and no wider scope is ever tried.
"""

from collections.abc import Mapping
from typing import Any

import anyio

from personal_server.mcp_adapter import contract
from personal_server.mcp_adapter.arguments import expected as expected_filter
from personal_server.mcp_adapter.arguments import legal_or_none, no_shape
from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.handles import parse_id
from personal_server.mcp_adapter.safe_text import label
from personal_server.rs_client.answers import error_of
from personal_server.rs_client.json_values import Json, as_list, as_object, as_text, is_object
from personal_server.rs_client.port import (
    Path,
    Query,
    RsFailure,
    RsInvalidResponse,
    RsResponse,
    RsTimeout,
)

# The way on after a refusal of the resource server: what it expected, and the call that works.
#
# Source: docs/contract/mcp-adapter.md 5.1, 5.2; docs/contract/resource-server.md 2.1. A next call
# is complete and legal and never asks for more than was asked for.


never_retried = frozenset({"field_not_granted", "grant_stream_not_allowed", "insufficient_scope"})
ended_codes = frozenset({"grant_revoked", "grant_expired", "grant_invalid"})
hopeless = never_retried | ended_codes
order_names = ("sort", "order")
droppable = frozenset({*order_names, "count", "time_zone"})
"""Arguments that restrict nothing: without them a call asks for no more."""
beginning = "beginning"
largest_limit = 100
named_values = 12


def expectation(error: Json) -> str | None:
    """What would have been legal, when the server says it."""
    for name, words in (("allowed_values", "one of"), ("suggestions", "perhaps")):
        values = [label(str(value)) for value in as_list(error.get(name))]
        if values:
            more = " ..." if len(values) > named_values else ""
            return f"{words} {', '.join(values[:named_values])}{more}"
    return expected_filter if error.get("code") == "invalid_filter" else None


def next_call(tool: str, error: Json, status: int, asked: Mapping[str, Any]) -> NextCall | None:
    """The call that heals a refusal, if there is one."""
    code = str(error["code"])
    if code in hopeless:
        return None
    recovery = error.get("recovery")
    if is_object(recovery) and recovery:
        known = published_contract().tools.get(tool)
        return legal_or_none(known, _recovered(asked, recovery), no_shape) if known else None
    if code.startswith("ambiguous_"):
        return NextCall("schema", {} if tool == "schema" else _stream_scope(asked))
    if code == "connection_not_found":
        return NextCall("schema", {})
    if code == "unsupported_search_mode" or _lacks_the_mode(status, asked):
        return NextCall(tool, {**_less(asked, "cursor"), "mode": "lexical"})
    repaired = _repaired(tool, code, error, asked)
    if repaired is None and status == 400 and tool != "schema":
        return NextCall("schema", _described_stream(asked))
    return repaired


def _stream_scope(asked: Mapping[str, Any]) -> Json:
    stream = as_text(asked.get("stream"))
    return {"stream": stream} if stream else {}


def _described_stream(asked: Mapping[str, Any]) -> Json:
    """The stream a call is about, by name, by id, or as the only one searched."""
    streams = as_list(asked.get("streams"))
    if len(streams) == 1:
        return {"stream": streams[0]}
    if "id" not in asked:
        return _stream_scope(asked)
    try:
        return {"stream": parse_id(str(asked["id"])).stream}
    except ToolError:
        return {}


def _recovered(asked: Mapping[str, Any], recovery: Json) -> Json:
    names = {**asked, **recovery}
    return {name: value for name, value in names.items() if value is not None}


def _repaired(tool: str, code: str, error: Json, asked: Mapping[str, Any]) -> NextCall | None:
    param = error.get("param")
    if code in {"invalid_cursor", "cursor_expired"}:
        return _restarted(tool, asked)
    if code == "invalid_expand":
        return NextCall(tool, _less(asked, "expand", "expand_limit"))
    if param == "limit" and "limit" in asked:
        return NextCall(tool, {**asked, "limit": min(int(asked["limit"]), largest_limit)})
    if code == "invalid_request" and param in droppable and param in asked:
        return NextCall(tool, _less(asked, *(order_names if param in order_names else (param,))))
    return None


def _lacks_the_mode(status: int, asked: Mapping[str, Any]) -> bool:
    """Whether a server has no route for the mode that was asked for."""
    return status == 404 and asked.get("mode", "lexical") != "lexical"


def _restarted(tool: str, asked: Mapping[str, Any]) -> NextCall | None:
    """The first page, of the change feed too."""
    if "cursor" in asked:
        return NextCall(tool, _less(asked, "cursor"))
    if asked.get("changes_since", beginning) == beginning:
        return None
    return NextCall(tool, {**asked, "changes_since": beginning})


def _less(asked: Mapping[str, Any], *names: str) -> Json:
    return {name: value for name, value in asked.items() if name not in names}


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
        with anyio.move_on_after(contract.aside_seconds):
            response = await call.port.get(("v1", "schema"), compact_query)
            if response.status == 400:
                response = await call.port.get(("v1", "schema"), query)
            return as_object(response.body) if response.ok else None
    except RsFailure:
        return None
    return None
