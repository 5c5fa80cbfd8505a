"""A refusal in both faces.

Source: docs/contract/mcp-adapter.md 5.1, 5.3. At most 4,000 characters of text and 6,000 of
structure: labels go first, then members that no rule names, then entries from the end of their
list; JSON is never cut.
"""

import re

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import Outcome
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.text import joined, unavailable_lines
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    compact,
    objects_in,
)
from pdpp_mcp_server.safe_text import clean_json, label, one_line

MESSAGE_CHARS = 600
KEPT_MEMBERS = (
    "type",
    "code",
    "message",
    "param",
    "origin",
    "http_status",
    "request_id",
    "retry_after_seconds",
    "retry_with",
    "next_call",
)
CANDIDATE_LIMIT = 12
LISTS = ("available_connections", "unavailable_connections")
COUNTS = (
    "available_connection_count",
    "available_connections_truncated",
    "available_connections_omitted",
    "unavailable_connection_count",
)
IN_BRACKETS = re.compile(r"^(filter|expand_limit)\[([^\[\]]+)\](?:\[\w+\])?$")
A_TIME = re.compile(r"\b(since|until|changes_since)=([^\s&]+?)(?=\.?(?:\s|$))")
CONDITION = re.compile(r"\bfilter\[([^\[\]]+)\](?:\[(\w+)\])?=([^\s&]+)")


def render_refusal(error: ToolError) -> Outcome:
    """Both faces of one refusal, within their budgets."""
    body = _bounded(error.error)
    if not _fits(body):
        body = {name: body[name] for name in KEPT_MEMBERS if name in body}
    if not _fits(body):
        body.pop("next_call", None)
    return Outcome(structured={"error": body}, text=_text(body), is_error=True)


def _fits(body: Json) -> bool:
    """Whether both faces are within their budgets."""
    is_structured = len(compact(body)) <= contract.ERROR_STRUCTURED
    return is_structured and len(_text(body)) <= contract.ERROR_TEXT


def _bounded(error: Json) -> Json:
    body = dict(error)
    body["message"] = one_line(_as_arguments(str(body.get("message", ""))), MESSAGE_CHARS)
    if isinstance(body.get("param"), str):
        body["param"] = IN_BRACKETS.sub(r"\1.\2", body["param"])
    for name in ("code", "type", "param", "request_id", "guidance", "next_step"):
        if isinstance(body.get(name), str):
            body[name] = one_line(body[name], 200)
    for name in LISTS:
        if name in body:
            rows = objects_in(body[name])
            body = _with_entries(body, name, [_entry(row) for row in rows], CANDIDATE_LIMIT)
    return _smaller(body)


def _as_arguments(message: str) -> str:
    """What a server says in the words of its queries, in those of the tools."""
    return A_TIME.sub(r'\1 "\2"', CONDITION.sub(_condition, message))


def _condition(found: re.Match[str]) -> str:
    field, operator, value = found.groups()
    return f"filter {compact({field: {operator: value} if operator else value})}"


def _smaller(body: Json) -> Json:
    """Drop what is only nice to have, in a fixed order, until both faces fit."""
    for name in reversed(LISTS):
        if name in body and not _fits(body):
            rows = objects_in(body[name])
            body[name] = [{k: v for k, v in row.items() if k != "display_name"} for row in rows]
    for name in sorted(body, key=lambda member: -len(compact(body[member]))):
        if _fits(body):
            break
        if name not in {*KEPT_MEMBERS, *COUNTS, *LISTS}:
            del body[name]
    for name in reversed(LISTS):
        while body.get(name) and not _fits(body):
            body = _with_entries(body, name, body[name], len(body[name]) - 1)
    return body


def _with_entries(body: Json, name: str, rows: list[Json], limit: int) -> Json:
    """With the first of those entries, and what is said of how many there are."""
    body = {**body, name: rows[:limit]}
    if len(rows) <= limit:
        return body
    counted = f"{name.removesuffix('s')}_count"
    total = max(as_count(body.get(counted)) or 0, len(rows))
    body[counted] = total
    if name == "available_connections":
        body |= {f"{name}_truncated": True, f"{name}_omitted": total - limit}
    return body


def _entry(row: Json) -> Json:
    return {
        ("connection_id" if name == "connector_instance_id" else name): one_line(value, 80)
        if name == "display_name" and isinstance(value, str)
        else value
        for name, value in row.items()
    }


def _text(body: Json) -> str:
    return joined(
        [f"error {label(str(body['code']))}: {body['message']}"],
        _named(body, ("param", "expected")),
        [f"example: {clean_json(body['example'])}"] if "example" in body else [],
        _named(body, ("retry_with",)),
        _connection_lines(body),
        unavailable_lines(objects_in(body.get("unavailable_connections"))),
        [f"retry_after: {body['retry_after_seconds']}"] if "retry_after_seconds" in body else [],
        _named(body, ("next_step", "request_id")),
        _next(body),
    )


def _named(body: Json, names: tuple[str, ...]) -> list[str]:
    return [f"{name}: {one_line(body[name], 400)}" for name in names if as_text(body.get(name))]


def _connection_lines(body: Json) -> list[str]:
    rows = objects_in(body.get("available_connections"))
    if not rows:
        return []
    lines = [f"connection: {' | '.join(_parts(row))}" for row in rows]
    total = body.get("available_connection_count", len(rows))
    omitted = body.get("available_connections_omitted", 0)
    return [*lines, f"connections: shown={len(rows)}; total={total}; omitted={omitted}"]


def _parts(row: Json) -> list[str]:
    named = (connection_of(row), connector_key_of(row), as_text(row.get("display_name")))
    parts = [label(part) for part in named if part]
    if as_text(row.get("grant_id")):
        parts.append(f"grant={label(row['grant_id'])}")
    if isinstance(row.get("has_stream"), bool):
        parts.append(f"has_stream={'true' if row['has_stream'] else 'false'}")
    return parts


def _next(body: Json) -> list[str]:
    call = as_object(body.get("next_call"))
    return [f"next: {call['tool']} {clean_json(call['arguments'])}"] if call else []
