"""Asking the person which connection is meant, where a read could come from several.

Source: docs/contract/mcp-adapter.md 5.4.  A question is a refusal whose next call is none of its
own: what is asked, and between what, stands in the refusal already.
"""

from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least

from pdpp_mcp_server.calls import Outcome
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, objects_in
from pdpp_mcp_server.safe_text import label

CONNECTION = "connection_id"
MESSAGE = "Several of your accounts could answer this. Which one is meant?"
# From this version on a choice carries a title beside each value.
TITLED_CHOICES = "2025-11-25"
ANSWER_SECONDS = 300.0

Context = ServerRequestContext[Any, Any]
Arguments = Mapping[str, Any]


def question_of(
    context: Context, tool: str, outcome: Outcome
) -> types.ElicitRequestFormParams | None:
    """What to ask, if the client puts questions to its person and there is one to put."""
    capabilities = context.session.client_capabilities
    elicits = None if capabilities is None else capabilities.elicitation
    if elicits is None or (elicits.form is None and elicits.url is not None):
        return None
    if not is_version_at_least(context.protocol_version, TITLED_CHOICES):
        return None
    choices = _choices(tool, as_object(outcome.structured.get("error")) or {})
    if not choices:
        return None
    choice = {"type": "string", "title": "Account", "oneOf": choices}
    schema = {"type": "object", "properties": {CONNECTION: choice}, "required": [CONNECTION]}
    return types.ElicitRequestFormParams(message=MESSAGE, requested_schema=schema)


def _choices(tool: str, error: Json) -> list[Json]:
    """The connections that could answer; none where a ready call asks the same without one."""
    following = as_object(error.get("next_call")) or {}
    is_settled = following.get("tool") == tool or error.get("available_connections_truncated")
    if error.get("code") != "ambiguous_connection" or is_settled:
        return []
    rows = objects_in(error.get("available_connections"))
    holders = [row for row in rows if row.get("has_stream") is not False]
    found = [(connection_of(row), _title(row)) for row in holders]
    return [{"const": connection, "title": title} for connection, title in found if connection]


def _title(row: Json) -> str:
    parts = (as_text(row.get("display_name")), connector_key_of(row), connection_of(row))
    return " | ".join(label(part) for part in parts if part)


def comes_back(context: Context) -> bool:
    """Whether the answer comes with the same call, made again."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def with_answer(params: types.CallToolRequestParams) -> Arguments | None:
    """The arguments of a call, with the connection that the person has chosen for it."""
    answer = (params.input_responses or {}).get(CONNECTION)
    chosen = _chosen(answer) if isinstance(answer, types.ElicitResult) else None
    return params.arguments if chosen is None else {CONNECTION: chosen} | (params.arguments or {})


async def ask(context: Context, question: types.ElicitRequestFormParams) -> str | None:
    """The connection that the person chooses; `None` without a way to ask, or an answer."""
    if not context.session.can_send_request:
        return None
    with anyio.move_on_after(ANSWER_SECONDS):
        try:
            answer = await context.session.elicit_form(
                question.message, question.requested_schema, context.request_id
            )
        except (MCPError, ValueError):  # a client that cannot after all is one that was not asked
            return None
        return _chosen(answer)
    return None


def _chosen(answer: types.ElicitResult) -> str | None:
    content = answer.content or {}
    return as_text(content.get(CONNECTION)) if answer.action == "accept" else None
