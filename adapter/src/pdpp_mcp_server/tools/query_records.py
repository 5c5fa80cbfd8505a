"""query_records: one page of one stream, or of the time line of all.

Source: docs/contract/mcp-adapter.md 10.2.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server.arguments import (
    Arguments,
    filter_query,
    given_parameters,
    parse_arguments,
    require_operators,
    without,
)
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.content_ladder import links_of, without_twin
from pdpp_mcp_server.faces.meant_calls import meant_calls
from pdpp_mcp_server.faces.mixed_units import unit_calls, unit_lines
from pdpp_mcp_server.faces.near_calls import near_calls
from pdpp_mcp_server.faces.near_values import NEAR_POINTER, near_lines
from pdpp_mcp_server.faces.page_layout import Renderer
from pdpp_mcp_server.faces.page_table import PageTable
from pdpp_mcp_server.faces.record_identity import RecordPlace
from pdpp_mcp_server.faces.records import RowItem
from pdpp_mcp_server.rs_client.answers import meta_of
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.tools.expansion import encode_expand, pass_expand_gate
from pdpp_mcp_server.tools.pages import PageRead, RecordPage, ShownPage, read_page, without_link

OF_A_STREAM = ("view", "sort", "count", "changes_since")
OF_ONE_STREAM = ("fields", "filter", "expand", "expand_limit", *OF_A_STREAM)
PLAIN_NAMES = ("cursor", "since", "until", "order", "connection_id", *OF_A_STREAM)
UNTRUSTED = ("/data/data/*/data", "/data/data/*/expanded", "/data/meta/units/*", "/page/data")


async def query_records(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, query = parse_arguments("query_records", raw, check_shape)
    await require_operators(call, arguments)
    stream, connection = arguments.get("stream"), arguments.get("connection_id")
    await _require_capabilities(call, arguments)
    path, declared = ("v1", "timeline"), frozenset[str]()
    if stream is not None:
        path = ("v1", "streams", stream, "records")
        described = await pass_expand_gate(call, arguments, stream, connection)
        declared = described.binary_fields
    scope = RecordPlace(stream or "", connection, declared)

    def renderer(table: PageTable) -> Renderer:
        return lambda row, number: RowItem(call, row, scope, str(number), table)

    render = partial(_render, call, arguments)
    query = await call.dated(query)
    how = PageRead(
        path, query, renderer, render, lay_out=lambda rows: PageTable.of(call, rows, scope)
    )
    return await read_page(call, arguments, how)


async def _require_capabilities(call: ToolCall, arguments: Arguments) -> None:
    stream = arguments.get("stream")
    if stream is None:
        if not await call.takes(ReadCapability.TIMELINE):
            raise _needs_stream("query_records needs `stream`.")
        return
    for name in ("since", "until"):
        if name in arguments:
            await call.require(ReadCapability.TIMES, name, stream=stream)
    if {"changes_since", "filter"} <= arguments.keys():
        await call.require(ReadCapability.CHANGES_FILTER, "filter", stream=stream)
    if arguments.get("changes_since") == "now":
        await call.require(ReadCapability.CHANGES_INSTANT, "changes_since", stream=stream)


def _needs_stream(message: str) -> ToolError:
    return ToolError(
        "invalid_arguments",
        message,
        param="stream",
        expected="a non-empty string",
        next_call=NextCall("schema", {}),
    )


def check_shape(arguments: Arguments) -> Query:
    """The shape checks of this tool, in their order, and the parameters that pass them.

    Raises: ToolError invalid_arguments, invalid_filter, invalid_expand.
    """
    if "stream" not in arguments:
        for name in OF_ONE_STREAM:
            if name in arguments:
                raise _needs_stream(f"`{name}` needs `stream`; the time line of all takes none.")
    if "fields" in arguments and "view" in arguments:
        raise ToolError(
            "invalid_arguments",
            "`fields` and `view` exclude each other.",
            param="view",
            repairs=(without(arguments, "view"),),
        )
    conditions, relations = filter_query(arguments), encode_expand(arguments)
    fields = tuple(("fields", name) for name in arguments.get("fields", ()))
    return (*given_parameters(arguments, *PLAIN_NAMES), *fields, *conditions, *relations)


def _render(call: ToolCall, arguments: Arguments, shown: ShownPage) -> Outcome:
    page = shown.page
    near = page.near
    following = _next_calls(arguments, page)
    if near:
        following += near_calls("query_records", arguments, near)
    elif not following:
        following = meant_calls("query_records", arguments, page.body)
    if page.all_warnings:
        from pdpp_mcp_server.faces.occurrence_calls import occurrence_calls  # noqa: PLC0415 (few)

        following = [*following, *unit_calls("query_records", arguments, page.body)]
        following += occurrence_calls("query_records", arguments, page.body)
    units = unit_lines(page.body) if meta_of(page.body).get("units") else []
    stream = arguments.get("stream")
    line = [] if stream else [text.fact("timeline", arguments.get("order", "desc"))]
    facts = [f"records={len(shown.blocks)}", *line, *page.facts]
    ladder = shown.ladder
    ids = [block.id for block in shown.blocks]
    face = text.joined(
        [text.head_line("query_records", stream, facts, shown.first_id)],
        page.notes,
        text.fenced([*units, *shown.lines, *near_lines(near)], call.nonce),
    )
    return Outcome(
        structured={
            "next": [item.as_json() for item in following],
            "warnings": page.all_warnings,
            **({} if page.table.id_prefix else {"record_ids": ids}),
            "content_ladder": [without_twin(entry) for entry in ladder],
            "notice": text.NOTICE,
            **({"near": near} if near else {}),
            **({"page": page.table.page} if page.table.page else {}),
            "data": without_link(shown.data),
        },
        text=text.leading_on(face, following, page.all_warnings),
        links=links_of(call, ladder),
        untrusted=(*UNTRUSTED, NEAR_POINTER),
        request_id=page.request_id,
        page_reads=shown.reads,
        rows=len(shown.blocks),
    )


def _next_calls(arguments: Arguments, page: RecordPage) -> list[NextCall]:
    """The next page, or the call that resumes a change feed."""
    if page.cursor is not None:
        return [text.next_page("query_records", arguments, page.cursor)]
    if page.bookmark is None or "stream" not in arguments:
        return []
    later = {**without(arguments, "cursor"), "changes_since": page.bookmark}
    shown = f"{text.SAME_CALL} changes_since = next_changes_since, without cursor"
    return [NextCall("query_records", later, "changes after this point", shown)]
