"""A refusal in both faces.

Source: docs/contract/mcp-adapter.md 5.1, 5.3. At most 4,000 characters of text and 6,000 of
structure: labels go first, then entries, then members that no rule names; JSON is never cut.
"""

import re

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import Outcome
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.text import joined, unavailable_lines
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, compact, objects_in
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
IN_BRACKETS = re.compile(r"^(filter|expand_limit)\[([^\[\]]+)\](?:\[\w+\])?$")
A_TIME = re.compile(r"\b(since|until|changes_since)=([^\s&]+?)(?=\.?(?:\s|$))")
CONDITION = re.compile(r"\bfilter\[([^\[\]]+)\](?:\[(\w+)\])?=([^\s&]+)")


def render_refusal(error: ToolError) -> Outcome:
    """Both faces of one refusal, within their budgets."""
    body = _bounded(error.error)
    text = _text(body)
    if len(text) > contract.ERROR_TEXT or len(compact(body)) > contract.ERROR_STRUCTURED:
        body = {name: body[name] for name in KEPT_MEMBERS if name in body}
        text = _text(body)
    if len(text) > contract.ERROR_TEXT or len(compact(body)) > contract.ERROR_STRUCTURED:
        body.pop("next_call", None)
        text = _text(body)
    return Outcome(structured={"error": body}, text=text, is_error=True)


def _bounded(error: Json) -> Json:
    body = dict(error)
    body["message"] = one_line(_as_arguments(str(body.get("message", ""))), MESSAGE_CHARS)
    if isinstance(body.get("param"), str):
        body["param"] = IN_BRACKETS.sub(r"\1.\2", body["param"])
    for name in ("code", "type", "param", "request_id", "guidance", "next_step"):
        if isinstance(body.get(name), str):
            body[name] = one_line(body[name], 200)
    for name in ("available_connections", "unavailable_connections"):
        if name in body:
            body[name] = [_entry(row) for row in objects_in(body[name])[:CANDIDATE_LIMIT]]
    return _smaller(body)


def _as_arguments(message: str) -> str:
    """What a server says in the words of its queries, in those of the tools."""
    return A_TIME.sub(r'\1 "\2"', CONDITION.sub(_condition, message))


def _condition(found: re.Match[str]) -> str:
    field, operator, value = found.groups()
    return f"filter {compact({field: {operator: value} if operator else value})}"


def _smaller(body: Json) -> Json:
    """Drop what is only nice to have, in a fixed order, until the structure fits."""
    if len(compact(body)) <= contract.ERROR_STRUCTURED:
        return body
    for name in ("available_connections", "unavailable_connections"):
        rows = objects_in(body.get(name))
        if rows:
            body[name] = [{k: v for k, v in row.items() if k != "display_name"} for row in rows]
    for name in sorted(body, key=lambda member: -len(compact(body[member]))):
        if len(compact(body)) <= contract.ERROR_STRUCTURED:
            break
        if name not in {*KEPT_MEMBERS, "available_connections", "unavailable_connections"}:
            del body[name]
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
