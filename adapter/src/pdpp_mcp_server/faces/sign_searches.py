"""A search for signs alone, such as an emoji: no word index knows them, a filter finds them.

Source: docs/contract/mcp-adapter.md 10.4.
"""

from __future__ import annotations

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.arguments import Arguments
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.handles import connection_scope
from pdpp_mcp_server.reads import read_catalog
from pdpp_mcp_server.rs_client.json_values import as_list, as_object
from pdpp_mcp_server.schema_document import CatalogRow, rows_of_stream

# Where people write most, when no stream was named.
_WRITTEN = "messages"
_TEXTS = ("text", "body")
_WHY = "signs and emoji, by a filter"


def refuses_signs(refused: ToolError, asked: Arguments) -> bool:
    """Whether a search was refused because its query has no letter and no digit."""
    is_of_query = refused.code == "invalid_request" and refused.error.get("param") == "q"
    return is_of_query and not any(map(str.isalnum, _query(asked)))


async def signs_as_filter(call: ToolCall, asked: Arguments) -> NextCall | None:
    """The records whose text has the signs; of several connections how many each has.

    The schema of one stream is read for it.
    """
    named = as_list(asked.get("streams"))
    stream = str(named[0]) if len(named) == 1 else _WRITTEN
    connection_id = asked.get("connection_id")
    scope = (("stream", stream), *connection_scope(connection_id))
    rows = rows_of_stream(await read_catalog(call, scope) or {}, stream, connection_id)
    found = [(row, field) for row in rows if (field := _text_field(row)) is not None]
    if not found:
        return None
    # a chat before mail, whose text is called otherwise
    row, field = min(found, key=lambda each: _TEXTS.index(each[1]))
    signs = {field: {Operator.CONTAINS.value: _query(asked).strip()}}
    meant: Arguments = {"stream": stream, "filter": {**as_object(asked.get("filter")), **signs}}
    accounts = {each.connection_id for each in row.connections}
    if connection_id or len(accounts) == 1:
        times = {name: asked[name] for name in ("since", "until", "limit") if name in asked}
        place = {"connection_id": connection_id or accounts.pop()}
        return NextCall("query_records", {**meant, **place, **times}, _WHY)
    across = {"metric": "count", "across": "connections", "group_by": "connection_id"}
    return NextCall("aggregate", {**meant, **across}, _WHY)


def _query(asked: Arguments) -> str:
    return str(asked.get("query", asked.get("q")))


def _text_field(row: CatalogRow) -> str | None:
    """The field that says what somebody wrote, if a filter may look into it."""
    capabilities = as_object(row.row.get("field_capabilities"))
    return next((name for name in _TEXTS if "f=text" in str(capabilities.get(name))), None)
