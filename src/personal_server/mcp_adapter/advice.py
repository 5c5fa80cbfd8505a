"""The way on after a refusal of the resource server: what it expected, and the call that works.

Source: MCP adapter contract 5.1, 5.2; resource-server contract 2.1. A next call is complete and
legal and never asks for more than was asked for.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.arguments import legal_or_none, no_shape
from personal_server.mcp_adapter.cleaning import label
from personal_server.mcp_adapter.contract import contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.filters import expected as expected_filter
from personal_server.mcp_adapter.handles import parse_id
from personal_server.rs_client.json_values import Json, as_list, as_text, is_object

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
        known = contract().tools.get(tool)
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
