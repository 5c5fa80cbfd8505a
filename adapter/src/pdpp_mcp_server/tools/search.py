"""search: hits over all granted sources, merged and ranked by the resource server.

Source: docs/contract/mcp-adapter.md 10.4; docs/decisions.md C5, C7, C8, C19. One call; never more
hits than limit.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server import contract
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
from pdpp_mcp_server.faces.content_ladder import links_of
from pdpp_mcp_server.faces.hits import READ_ON, HitItem, HitTable, source_mix_lines
from pdpp_mcp_server.faces.mail_operators import MailFiles, mail_files
from pdpp_mcp_server.faces.meant_calls import meant_calls
from pdpp_mcp_server.faces.near_calls import near_calls
from pdpp_mcp_server.faces.near_values import NEAR_POINTER, near_lines
from pdpp_mcp_server.faces.page_layout import Renderer
from pdpp_mcp_server.faces.page_table import PageTable
from pdpp_mcp_server.faces.record_identity import RecordPlace
from pdpp_mcp_server.faces.relaxed_words import (
    held_as_written,
    relaxed_facts,
    relaxed_notes,
    relaxed_sentence,
)
from pdpp_mcp_server.faces.sign_searches import refuses_signs, signs_as_filter
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of, count_of, meta_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, objects_in
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import escaped_json
from pdpp_mcp_server.tools.pages import PageRead, RecordPage, ShownPage, read_page

ROUTES = {
    "auto": ("v1", "search"),
    "lexical": ("v1", "search"),
    "semantic": ("v1", "search", "semantic"),
    "hybrid": ("v1", "search", "hybrid"),
}
USE_LINE = (
    'use: fetch {"id":"<id as shown>"}; add connection_id only for a hit that shows it'
    " on its own line"
)
UNTRUSTED = (
    "/data/data/*/title",
    "/data/data/*/author",
    "/data/data/*/conversation",
    "/data/data/*/snippet",
    "/data/data/*/evidence_excerpts",
    "/results/*/title",
    "/results/*/url",
)


async def search(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, query = parse_arguments("search", raw, check_shape)
    await require_operators(call, arguments)
    for name in ("since", "until"):
        if name in arguments:
            await call.require(ReadCapability.TIMES, name)
    if arguments.get("sort", "relevance") != "relevance":
        await call.require(ReadCapability.SEARCH_SORT, "sort")
    if arguments.get("exact"):
        await call.require(ReadCapability.SEARCH_EXACT, "exact")
    streams = arguments.get("streams", ())
    scope = RecordPlace(streams[0] if len(streams) == 1 else "", arguments.get("connection_id"))

    def renderer(table: PageTable) -> Renderer:
        hits = table if isinstance(table, HitTable) else HitTable()
        return lambda hit, number: HitItem(call, hit, scope, number, hits)

    mode = arguments.get("mode", "auto")
    if mode == "lexical" and await call.takes(ReadCapability.SEARCH_MODE):
        query = (*query, ("mode", "words"))
    path, query = ROUTES[mode], await call.dated(query)
    render = partial(_render, call, arguments, await mail_files(call, arguments))
    closing = len(USE_LINE) + len(READ_ON)
    how = PageRead(path, query, renderer, render, closing, contract.HITS_CHARS, HitTable.of_hits)
    try:
        return await read_page(call, arguments, how)
    except ToolError as refused:
        if refuses_signs(refused, arguments):
            refused.with_next(await signs_as_filter(call, arguments))
        raise


def check_shape(arguments: Arguments) -> Query:
    """The shape checks of this tool and its parameters.

    Raises: ToolError invalid_arguments, invalid_filter.
    """
    words = arguments.get("query", arguments.get("q"))
    if not isinstance(words, str) or not words.strip():
        raise ToolError("invalid_arguments", "search needs words in `query`.", param="query")
    if arguments.get("q", words) != words:
        raise ToolError(
            "invalid_arguments",
            "`q` is an alias of `query`; the two differ.",
            param="q",
            repairs=(without(arguments, "q"),),
        )
    if arguments.get("mode", "auto") not in ROUTES:
        expected = f"one of {', '.join(ROUTES)}"
        message = f"`mode` must be {expected}."
        repaired = without(arguments, "mode")
        raise ToolError(
            *("invalid_arguments", message), param="mode", expected=expected, repairs=(repaired,)
        )
    conditions = filter_query(arguments)
    streams = tuple(("streams", name) for name in arguments.get("streams", ()))
    plain = given_parameters(arguments, "since", "until", "cursor", "connection_id")
    if arguments.get("sort", "relevance") != "relevance":  # what every server does unasked
        plain = (*plain, ("sort", arguments["sort"]))
    if arguments.get("exact"):
        plain = (*plain, ("exact", "true"))
    return (("q", words), *streams, *plain, *conditions)


def _render(
    call: ToolCall, arguments: Arguments, files: MailFiles | None, shown: ShownPage
) -> Outcome:
    page = shown.page
    following: list[NextCall] = []
    if page.cursor is not None:
        following.append(text.next_page("search", arguments, page.cursor))
    near = page.near
    following += near_calls("search", arguments, near)
    if not near:
        following += meant_calls("search", arguments, page.body, files)
    if page.all_warnings:
        from pdpp_mcp_server.faces.occurrence_calls import occurrence_calls  # noqa: PLC0415 (few)

        following += occurrence_calls("search", arguments, page.body)
    stated = _stated_mix(page)
    mix = stated or _counted_mix(page)
    structured: Json = {
        "next": [item.as_json() for item in following],
        "warnings": page.all_warnings,
        "results": [block.result for block in shown.blocks],
        **({"near": near} if near else {}),
        **({"source_mix": mix} if mix and not stated else {}),
        "notice": text.NOTICE,
        **({"page": page.table.page} if page.table.page else {}),
        "data": _envelope(shown),
    }
    is_narrowed = bool({"streams", "connection_id"} & arguments.keys())
    if call.openai:
        face = _json_face(shown, following, near, is_narrowed=is_narrowed)
    else:
        face = _text_face(call, shown, mix, near, is_narrowed=is_narrowed)
        face = text.leading_on(face, following, structured["warnings"])
    return Outcome(
        structured=structured,
        text=face,
        links=links_of(call, shown.ladder),
        untrusted=(*UNTRUSTED, NEAR_POINTER),
        request_id=page.request_id,
        page_reads=shown.reads,
        rows=len(shown.blocks),
    )


def _envelope(shown: ShownPage) -> Json:
    """The envelope; of many hits without addresses, which repeat the call and its cursor."""
    table, is_followed = shown.page.table, as_text(shown.data.get("next_cursor"))
    is_lean = isinstance(table, HitTable) and table.is_lean
    return (
        without(shown.data, "links")
        if is_lean and (is_followed or not shown.page.more)
        else shown.data
    )


def _text_face(
    call: ToolCall,
    shown: ShownPage,
    mix: list[Json],
    near: list[Json],
    *,
    is_narrowed: bool,
) -> str:
    page = shown.page
    facts = [f"hits={len(shown.blocks)}", *relaxed_facts(page.body), *page.facts]
    return text.joined(
        [text.head_line("search", None, facts, shown.first_id)],
        source_mix_lines(mix),
        [*page.notes, *relaxed_notes(page.body, is_narrowed=is_narrowed)],
        text.fenced([*held_as_written(shown.lines, page.body), *near_lines(near)], call.nonce),
        _use_lines(shown),
    )


def _use_lines(shown: ShownPage) -> list[str]:
    """How to go on from a hit, and from an excerpt where the hits do not say it themselves."""
    table = shown.page.table
    lines = [USE_LINE] if shown.blocks else []
    is_lean = isinstance(table, HitTable) and table.is_lean
    is_said_once = is_lean and any(block.ladder for block in shown.blocks)
    return [*lines, READ_ON] if lines and is_said_once else lines


def _json_face(
    shown: ShownPage, following: list[NextCall], near: list[Json], *, is_narrowed: bool
) -> str:
    """The form that clients built on the search-and-fetch contract parse; it names no sources."""
    page = shown.page
    results = [as_object(block.result) for block in shown.blocks]
    body: Json = {}
    count = count_of(page.body)
    warnings = page.all_warnings
    if page.more:
        body["has_more"] = True
    if page.cursor is not None:
        body["next_cursor"] = page.cursor
    if count is not None:
        body["count"] = {"kind": count[0], "value": count[1]}
    if warnings:
        body["warnings"] = warnings
    empty = as_object(meta_of(page.body).get("empty"))
    if empty:
        body["empty"] = empty
    relaxed = relaxed_sentence(page.body, is_narrowed=is_narrowed)
    if relaxed:
        body["relaxed"] = relaxed
    if near:
        body["near"] = near
    if following:
        body["next"] = [item.as_json() for item in following]
    shown_hits = [{name: hit[name] for name in ("id", "title", "url")} for hit in results]
    # last, so that a host that cuts a result keeps the cursor
    return escaped_json({**body, "results": shown_hits})


def _stated_mix(page: RecordPage) -> list[Json]:
    meta = meta_of(page.body)
    package = as_object(meta.get("package"))
    return objects_in(meta.get("source_mix")) or objects_in(package.get("source_mix"))


def _counted_mix(page: RecordPage) -> list[Json]:
    """From which connections the hits come, when there are several."""
    hits = {connection_of(hit): hit for hit in page.rows}
    counted = Counter(connection_of(hit) for hit in page.rows)
    if len(counted) < 2:
        return []
    mix: list[Json] = []
    for connection, count in counted.most_common():
        hit = hits[connection]
        row: Json = {"connection_id": connection, "connector_key": connector_key_of(hit)}
        name = as_text(hit.get("display_name"))
        mix.append({**row, **({"display_name": name} if name else {}), "count": count})
    return mix
