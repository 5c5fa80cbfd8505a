"""schema: the index of what a grant covers, one stream in full, or its raw JSON Schema.

Source: docs/contract/mcp-adapter.md 10.1, 3.6.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter import contract
from personal_server.mcp_adapter.arguments import parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces import text
from personal_server.mcp_adapter.faces.schema import field_schema_lines, index_text, stream_text
from personal_server.mcp_adapter.reads import answer, refusal
from personal_server.mcp_adapter.safe_text import quoted
from personal_server.mcp_adapter.schema_document import (
    CatalogRow,
    all_connections,
    catalog_rows,
    compact_catalog,
    full_schema,
    legend_for,
    scoped_to,
    without_alias,
)
from personal_server.rs_client.answers import error_of
from personal_server.rs_client.json_values import Json, as_object, compact, is_object, objects_in
from personal_server.rs_client.port import Query, RsResponse

path = ("v1", "schema")
index_members = (
    "name",
    "display_name",
    "primary_key",
    "cursor_field",
    "consent_time_field",
    "granted_connections",
    "reduced",
)
reductions = (index_members, ("name", "granted_connections"), ("name",))


async def schema(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    asked = parse_arguments(published_contract().tools["schema"], raw, check_shape)
    check_shape(asked)
    if asked.get("detail") == "full":
        return await _full(call, asked)
    catalog, request_id = await read_compact(call, asked)
    if "stream" in asked:
        return _stream(asked, catalog, request_id)
    return _index(catalog, request_id)


async def read_compact(call: Call, asked: Mapping[str, Any]) -> tuple[Json, str | None]:
    """The compact catalog, made here when the server does not make it, scoped as asked.

    Raises: ToolError.
    """
    scope = scope_query(asked)
    response = await answer(call, path, (("view", "compact"), *scope), asked)
    if response.status == 400 and error_of(response).get("param") in {None, "view"}:
        response = await answer(call, path, scope, asked)
    body = _body(call, response, asked)
    scoped = scoped_to(without_alias(body), asked.get("stream"), asked.get("connection_id"))
    return compact_catalog(scoped, scoped="stream" in asked), response.request_id


def scope_query(asked: Mapping[str, Any]) -> Query:
    """The scoping parameters that were given."""
    return tuple((name, asked[name]) for name in ("stream", "connection_id") if name in asked)


def _body(call: Call, response: RsResponse, asked: Mapping[str, Any]) -> Json:
    if not response.ok:
        raise refusal(call, response, asked)
    if not is_object(response.body):
        message = "The resource server gave no schema document."
        again = NextCall("schema", asked)
        raise ToolError("rs_invalid_response", message, next_call=again)
    return as_object(response.body)


def index_data(catalog: Json) -> Json:
    """The catalog without per-field members, as small as it has to be.

    Raises: ToolError result_too_large.
    """
    for members, limit in zip(
        reductions,
        (contract.schema_structured_aim, contract.ceiling, contract.ceiling),
        strict=True,
    ):
        found = _reduced(catalog, members)
        written = compact(found)
        if len(written) <= limit - 1_000 and len(written.encode()) <= 59_000:
            return found
    raise _too_long(catalog)


def _too_long(catalog: Json) -> ToolError:
    """The refusal of an index that no reduction fits."""
    first = next(iter(all_connections(catalog)), None)
    narrower = NextCall("schema", {"connection_id": first}) if first else None
    return ToolError(
        "result_too_large",
        "The names of this grant alone pass the limit; narrow with `connection_id`.",
        param="connection_id",
        next_call=narrower,
    )


def _reduced(catalog: Json, members: tuple[str, ...]) -> Json:
    found = dict(catalog)
    if "connectors" in found:
        found["connectors"] = [
            {**item, "streams": _rows(item, members)} for item in objects_in(found["connectors"])
        ]
    if "streams" in found:
        found["streams"] = _rows(found, members)
    return found


def _rows(holder: Json, members: tuple[str, ...]) -> list[Json]:
    return [
        {name: row[name] for name in members if name in row}
        for row in objects_in(holder.get("streams"))
    ]


def _index(catalog: Json, request_id: str | None) -> Outcome:
    rows = catalog_rows(catalog)
    following = (
        [NextCall("schema", {"stream": rows[0].name}, "fields of one stream")] if rows else []
    )
    structured: Json = {"data": index_data(catalog), "warnings": []}
    face = index_text(catalog, text.next_lines(following))
    structured["next"] = [item.as_json() for item in following]
    return Outcome(structured, face, request_id=request_id, rows=len(rows))


def stream_data(catalog: Json) -> Json:
    """The scoped body as sent, plus the legend of its flags."""
    flags = [
        str(value)
        for row in catalog_rows(catalog)
        for value in as_object(row.row.get("field_capabilities")).values()
    ]
    return {**catalog, "field_capability_legend": legend_for(flags)}


def _stream(asked: Mapping[str, Any], catalog: Json, request_id: str | None) -> Outcome:
    rows = catalog_rows(catalog)
    if not rows:
        return _not_found(asked, catalog, request_id)
    following = [query_call(asked["stream"], rows)]
    face = stream_text(asked["stream"], rows, catalog, text.next_lines(following))
    structured: Json = {"data": stream_data(catalog), "warnings": []}
    structured["next"] = [item.as_json() for item in following]
    if len(compact(structured)) > contract.ceiling:
        raise _too_wide(asked, rows)
    return Outcome(structured, face, request_id=request_id, rows=len(rows))


def _too_wide(asked: Mapping[str, Any], rows: list[CatalogRow]) -> ToolError:
    """The refusal of a stream whose rows pass the limit: one source of it, or one record."""
    first = query_call(asked["stream"], rows)
    narrower = NextCall("query_records", {**first.arguments, "limit": 1})
    message = "This stream has too many fields to list; one record shows them."
    if len(rows) > 1 and "connection_id" in first.arguments:
        narrower = NextCall("schema", {**asked, "connection_id": first.arguments["connection_id"]})
        message = f"{len(rows)} sources have this stream, too many to describe at once; name one."
    return ToolError("result_too_large", message, param="stream", next_call=narrower)


def query_call(stream: str, rows: list[CatalogRow]) -> NextCall:
    """A first read of a stream."""
    first = rows[0].connections[:1] if rows else ()
    scope = {"connection_id": first[0].connection_id} if first else {}
    return NextCall("query_records", {"stream": stream, **scope, "limit": 10}, "first records")


def _not_found(asked: Mapping[str, Any], catalog: Json, request_id: str | None) -> Outcome:
    shown = quoted(asked["stream"])
    warning = {"code": "stream_not_found", "message": f"This access has no stream {shown}."}
    following = [NextCall("schema", {}, "every granted stream")]
    face = text.joined(
        [f"schema {shown}: sources=0; connections=0"],
        text.warning_lines([*text.server_warnings(catalog), warning]),
        text.next_lines(following),
    )
    structured: Json = {"data": stream_data(catalog), "warnings": [warning]}
    structured["next"] = [item.as_json() for item in following]
    return Outcome(structured, face, request_id=request_id, rows=0)


def check_shape(asked: dict[str, Any]) -> None:
    """The shape check of this tool.

    Raises: ToolError invalid_request.
    """
    if asked.get("detail") == "full" and "stream" not in asked:
        raise ToolError(
            "invalid_request",
            "Full detail needs a stream: after the compact index call schema(stream, connection_id,"
            ' detail:"full").',
            param="detail",
            next_call=NextCall("schema", {}),
        )


async def _full(call: Call, asked: dict[str, Any]) -> Outcome:
    query = (("detail", "full"), *scope_query(asked))
    response = await answer(call, path, query, asked)
    body = without_alias(_body(call, response, asked))
    scoped = scoped_to(body, asked["stream"], asked.get("connection_id"))
    rows = catalog_rows(scoped)
    if not rows:
        return _not_found(asked, scoped, response.request_id)
    _refuse_several(asked, rows)
    data, warnings = full_schema(scoped)
    following = [query_call(asked["stream"], rows)]
    closing = [*text.warning_lines(warnings), *text.next_lines(following)]
    reserved = sum(len(line) + 1 for line in closing) + len("omitted=9999\n")
    projected = catalog_rows(compact_catalog(scoped, scoped=True))
    face = stream_text(asked["stream"], projected, scoped, [], reserved)
    room = contract.schema_text_limit - len(face) - 1 - reserved
    face = text.joined([face], field_schema_lines(rows, room), closing)
    structured: Json = {"data": data, "warnings": warnings}
    structured["next"] = [item.as_json() for item in following]
    return Outcome(structured, face, request_id=response.request_id, rows=len(rows))


def _refuse_several(asked: Mapping[str, Any], rows: list[CatalogRow]) -> None:
    """A server that answers full detail for several sources is answered for.

    Raises: ToolError ambiguous_schema_detail.
    """
    found = {c.connection_id: (c, row) for row in rows for c in row.connections}
    if "connection_id" in asked or len(found) <= 1:
        return
    candidates: list[Json] = []
    for connection, row in list(found.values())[:12]:
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
        next_call=NextCall("schema", {"stream": asked["stream"]}),
        members={
            "retry_with": "connection_id",
            "available_connections": candidates,
            "available_connection_count": len(found),
            "available_connections_truncated": len(found) > len(candidates),
            "available_connections_omitted": len(found) - len(candidates),
            "discovery_hint": "Call `schema` to list every stream with its connections.",
        },
    )
