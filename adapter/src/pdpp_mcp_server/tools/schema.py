"""schema: the index of what a grant covers, one stream in full, or its raw JSON Schema.

Source: docs/contract/mcp-adapter.md 10.1, 3.6.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments, given_parameters, parse_arguments
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.schema import field_schema_lines, index_text, stream_text
from pdpp_mcp_server.read_refusals import refusal
from pdpp_mcp_server.reads import (
    SCHEMA_PATH,
    answer,
)
from pdpp_mcp_server.rs_client.answers import error_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, compact, is_object
from pdpp_mcp_server.rs_client.port import RsResponse
from pdpp_mcp_server.safe_text import quoted
from pdpp_mcp_server.schema_document import (
    CatalogRow,
    all_connections,
    catalog_rows,
    compact_catalog,
    each_row,
    full_schema,
    legend_for,
    scoped_to,
    without_alias,
)

INDEX_MEMBERS = (
    "name",
    "display_name",
    "primary_key",
    "cursor_field",
    "consent_time_field",
    "granted_connections",
    "reduced",
)
FIGURES = ("constraints", "fields_left_out", "visible")
REDUCTIONS = (
    ((*INDEX_MEMBERS, *FIGURES), contract.SCHEMA_STRUCTURED_AIM),
    (INDEX_MEMBERS, contract.SCHEMA_STRUCTURED_AIM),
    (("name", "granted_connections"), contract.CEILING),
    (("name",), contract.CEILING),
)
ENVELOPE_CHARS = 1_000
"""Room for what stands beside `data`; as many bytes as characters."""
SHOWN_CANDIDATES = 12


async def schema(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, _ = parse_arguments("schema", raw, check_shape)
    if arguments.get("detail") == "full":
        return await _full(call, arguments)
    catalog, request_id = await read_compact(call, arguments)
    if "stream" in arguments:
        return _stream(arguments, catalog, request_id)
    return _index(catalog, request_id)


def check_shape(arguments: Arguments) -> None:
    """The shape check of this tool.

    Raises: ToolError invalid_request.
    """
    if arguments.get("detail") == "full" and "stream" not in arguments:
        raise ToolError(
            "invalid_request",
            "Full detail needs a stream: after the compact index call schema(stream, connection_id,"
            ' detail:"full").',
            param="detail",
            next_call=NextCall("schema", {}),
        )


async def read_compact(call: ToolCall, arguments: Arguments) -> tuple[Json, str | None]:
    """The compact catalog, made here when the server does not make it, scoped as asked.

    Raises: ToolError.
    """
    scope = given_parameters(arguments, "stream", "connection_id")
    response = await answer(call, SCHEMA_PATH, (("view", "compact"), *scope), arguments)
    if response.status == 400 and error_of(response).get("param") in {None, "view"}:
        response = await answer(call, SCHEMA_PATH, scope, arguments)
    body = _body(call, response, arguments)
    scoped = scoped_to(without_alias(body), arguments.get("stream"), arguments.get("connection_id"))
    return compact_catalog(scoped, scoped="stream" in arguments), response.request_id


def _body(call: ToolCall, response: RsResponse, arguments: Arguments) -> Json:
    if not response.ok:
        raise refusal(call, response, arguments)
    if not is_object(response.body):
        message = "The resource server gave no schema document."
        again = NextCall("schema", arguments)
        raise ToolError("rs_invalid_response", message, next_call=again)
    return response.body


def _index(catalog: Json, request_id: str | None) -> Outcome:
    rows = catalog_rows(catalog)
    following: list[NextCall] = []
    if rows:
        following.append(NextCall("schema", {"stream": rows[0].name}, "fields of one stream"))
    data = index_data(catalog)
    face = index_text(catalog, text.next_lines(following))
    warnings = text.server_warnings(catalog)
    return _outcome(data, warnings, following, face, request_id, rows)


def index_data(catalog: Json) -> Json:
    """The catalog without per-field members, as small as it has to be.

    Raises: ToolError result_too_large.
    """
    is_long = len(catalog_rows(catalog)) > contract.SCHEMA_ROWS_WITH_FIGURES
    for members, limit_chars in REDUCTIONS[1:] if is_long else REDUCTIONS:
        found = _reduced(catalog, members)
        written = compact(found)
        if (
            len(written) <= limit_chars - ENVELOPE_CHARS
            and len(written.encode()) <= contract.SCHEMA_STRUCTURED_BYTES - ENVELOPE_CHARS
        ):
            return found
    first = next(iter(all_connections(catalog)), None)
    raise ToolError(
        "result_too_large",
        "The names of this grant alone pass the limit; narrow with `connection_id`.",
        param="connection_id",
        next_call=NextCall("schema", {"connection_id": first}) if first else None,
    )


def _reduced(catalog: Json, members: tuple[str, ...]) -> Json:
    return each_row(catalog, lambda row: {name: row[name] for name in members if name in row})


def _stream(arguments: Arguments, catalog: Json, request_id: str | None) -> Outcome:
    rows = catalog_rows(catalog)
    if not rows:
        return _not_found(arguments, catalog, request_id)
    following = [_query_call(arguments["stream"], rows)]
    face = stream_text(arguments["stream"], rows, catalog, text.next_lines(following))
    warnings = text.server_warnings(catalog)
    outcome = _outcome(stream_data(catalog), warnings, following, face, request_id, rows)
    if outcome.sizes[1] > contract.CEILING:
        raise _too_wide(arguments, rows)
    return outcome


def stream_data(catalog: Json) -> Json:
    """The scoped body as sent, plus the legend of its flags."""
    flags = [
        str(value)
        for row in catalog_rows(catalog)
        for value in as_object(row.row.get("field_capabilities")).values()
    ]
    return {**catalog, "field_capability_legend": legend_for(flags)}


def _too_wide(arguments: Arguments, rows: list[CatalogRow]) -> ToolError:
    """The refusal of a stream whose rows pass the limit: one source of it, or one record."""
    first = _query_call(arguments["stream"], rows).arguments
    narrower = NextCall("query_records", {**first, "limit": 1})
    message = "This stream has too many fields to list; one record shows them."
    if len(rows) > 1 and "connection_id" in first:
        narrower = NextCall("schema", {**arguments, "connection_id": first["connection_id"]})
        message = f"{len(rows)} sources have this stream, too many to describe at once; name one."
    return ToolError("result_too_large", message, param="stream", next_call=narrower)


def _query_call(stream: str, rows: list[CatalogRow]) -> NextCall:
    """A first read of a stream."""
    first = rows[0].connections[:1]
    scope = {"connection_id": first[0].connection_id} if first else {}
    return NextCall("query_records", {"stream": stream, **scope, "limit": 10}, "first records")


def _not_found(arguments: Arguments, catalog: Json, request_id: str | None) -> Outcome:
    shown = quoted(arguments["stream"])
    warning = {"code": "stream_not_found", "message": f"This access has no stream {shown}."}
    following = [NextCall("schema", {}, "every granted stream")]
    face = text.joined(
        [f"schema {shown}: sources=0; connections=0"],
        text.warning_lines(text.all_warnings(catalog, [warning])),
        text.next_lines(following),
    )
    warnings = text.all_warnings(catalog, [warning])
    return _outcome(stream_data(catalog), warnings, following, face, request_id, [])


async def _full(call: ToolCall, arguments: Arguments) -> Outcome:
    query = (("detail", "full"), *given_parameters(arguments, "stream", "connection_id"))
    response = await answer(call, SCHEMA_PATH, query, arguments)
    body = without_alias(_body(call, response, arguments))
    scoped = scoped_to(body, arguments["stream"], arguments.get("connection_id"))
    rows = catalog_rows(scoped)
    if not rows:
        return _not_found(arguments, scoped, response.request_id)
    _refuse_several(arguments, rows)
    data, warnings = full_schema(scoped)
    following = [_query_call(arguments["stream"], rows)]
    closing = [*text.warning_lines(warnings), *text.next_lines(following)]
    reserved = text.length(closing) + len("omitted=9999\n")
    projected = catalog_rows(compact_catalog(scoped, scoped=True))
    face = stream_text(arguments["stream"], projected, scoped, [], reserved)
    room = contract.SCHEMA_TEXT_LIMIT - len(face) - 1 - reserved
    face = text.joined([face], field_schema_lines(rows, room), closing)
    return _outcome(data, warnings, following, face, response.request_id, rows)


def _refuse_several(arguments: Arguments, rows: list[CatalogRow]) -> None:
    """A server that answers full detail for several sources is answered for.

    Raises: ToolError ambiguous_schema_detail.
    """
    found = {c.connection_id: (c, row) for row in rows for c in row.connections}
    if "connection_id" in arguments or len(found) <= 1:
        return
    candidates: list[Json] = []
    for connection, row in list(found.values())[:SHOWN_CANDIDATES]:
        entry: Json = {"connection_id": connection.connection_id}
        entry["connector_key"] = row.connector_key
        grant = connection.grant_id or row.connector.get("grant_id")
        optional = {"grant_id": grant, "display_name": connection.display_name}
        entry.update({name: value for name, value in optional.items() if value})
        candidates.append({**entry, "has_stream": True})
    raise ToolError(
        "ambiguous_schema_detail",
        f"{len(found)} sources have this stream; name one for full detail.",
        param="connection_id",
        next_call=NextCall("schema", {"stream": arguments["stream"]}),
        members={
            "retry_with": "connection_id",
            "available_connections": candidates,
            "available_connection_count": len(found),
            "available_connections_truncated": len(found) > len(candidates),
            "available_connections_omitted": len(found) - len(candidates),
            "discovery_hint": "Call `schema` to list every stream with its connections.",
        },
    )


def _outcome(
    data: Json,
    warnings: list[Json],
    following: list[NextCall],
    face: str,
    request_id: str | None,
    rows: Sequence[CatalogRow],
) -> Outcome:
    calls = [item.as_json() for item in following]
    structured: Json = {"next": calls, "warnings": warnings, "data": data}
    if len(face) > contract.SEEN:
        from pdpp_mcp_server.faces.long_texts import schema_both_ends  # noqa: PLC0415 (few)

        face = schema_both_ends(face, following, warnings)
    return Outcome(structured, face, request_id=request_id, rows=len(rows))
