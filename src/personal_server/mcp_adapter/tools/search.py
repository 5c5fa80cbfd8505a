"""search: hits over all granted sources, merged and ranked by the resource server.

Source: docs/contract/mcp-adapter.md 10.4; docs/decisions.md C5, C7, C8, C19. One call; never more
hits than limit.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.arguments import legal_or_none, parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces import text
from personal_server.mcp_adapter.faces.hits import HitItem
from personal_server.mcp_adapter.faces.page_layout import Frame
from personal_server.mcp_adapter.faces.record_identity import Place
from personal_server.mcp_adapter.faces.records import links_of
from personal_server.mcp_adapter.safe_text import escaped_json
from personal_server.mcp_adapter.tools.pages import Page, PageRead, ShownPage, read_page
from personal_server.mcp_adapter.tools.query_records import filter_query
from personal_server.rs_client.answers import connection_of, connector_key_of, count_of, meta_of
from personal_server.rs_client.json_values import Json, as_object, as_text, compact, objects_in
from personal_server.rs_client.port import Query

routes = {
    "lexical": ("v1", "search"),
    "semantic": ("v1", "search", "semantic"),
    "hybrid": ("v1", "search", "hybrid"),
}
use_line = (
    'use: fetch {"id":"<id as shown>"}; add connection_id only for a hit that shows it'
    " on its own line"
)
untrusted = (
    "/data/data/*/title",
    "/data/data/*/snippet",
    "/data/data/*/evidence_excerpts",
    "/results/*/title",
    "/results/*/url",
)


async def search(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    asked = parse_arguments(published_contract().tools["search"], raw, check_shape)
    query = check_shape(asked)
    streams = asked.get("streams", ())
    place = Place(streams[0] if len(streams) == 1 else "", asked.get("connection_id"))

    def item(hit: Json, number: int) -> HitItem:
        return HitItem(call, hit, place, str(number))

    def frame(page: Page) -> Frame:
        empty = _faces(call, asked, ShownPage(page, [], 1))
        size = len(compact(empty.structured))
        return Frame(size, len(empty.text) + len(use_line), page.cursor is not None)

    path = routes[asked.get("mode", "lexical")]
    shown = await read_page(call, asked, PageRead(path, query, item, frame))
    return _faces(call, asked, shown)


def check_shape(asked: dict[str, Any]) -> Query:
    """The shape checks of this tool and its parameters.

    Raises: ToolError invalid_arguments, invalid_filter.
    """
    words = asked.get("query", asked.get("q"))
    if not isinstance(words, str) or not words.strip():
        raise ToolError("invalid_arguments", "search needs words in `query`.", param="query")
    if asked.get("q", words) != words:
        rest = {name: value for name, value in asked.items() if name != "q"}
        raise ToolError(
            "invalid_arguments",
            "`q` is an alias of `query`; the two differ.",
            param="q",
            next_call=_legal(rest),
        )
    conditions = filter_query(asked, _legal)
    plain = tuple((name, asked[name]) for name in ("cursor", "connection_id") if name in asked)
    streams = tuple(("streams", name) for name in asked.get("streams", ()))
    return (("q", words), *streams, *plain, *conditions)


def _legal(arguments: dict[str, Any]) -> NextCall | None:
    return legal_or_none(published_contract().tools["search"], arguments, check_shape)


def _faces(call: Call, asked: Mapping[str, Any], shown: ShownPage) -> Outcome:
    page = shown.page
    following: list[NextCall] = []
    if page.cursor is not None:
        following.append(NextCall("search", {**asked, "cursor": page.cursor}, "next page"))
    mix = source_mix(page)
    structured: Json = {
        "data": shown.data,
        "results": [block.result for block in shown.blocks],
        "warnings": page.warnings,
        "next": [item.as_json() for item in following],
        "notice": text.notice,
    }
    if mix and not _stated_mix(page):
        structured["source_mix"] = mix
    render = _json_face if call.openai else _text_face
    return Outcome(
        structured=structured,
        text=render(call, shown, following, mix),
        links=links_of(call, shown.ladder),
        untrusted=untrusted,
        request_id=page.request_id,
        page_reads=shown.reads,
        rows=len(shown.blocks),
    )


def _text_face(call: Call, shown: ShownPage, following: list[NextCall], mix: list[Json]) -> str:
    page = shown.page
    blocks = [line for block in shown.blocks for line in block.lines]
    facts = [f"hits={len(shown.blocks)}", *text.page_facts(page.body, page.more, page.cursor)]
    first = shown.blocks[0].id if shown.blocks else None
    nonce = text.unused_nonce(call.nonce, "\n".join(blocks))
    return text.joined(
        [text.head_line("search", None, facts, first)],
        text.source_mix_lines(mix),
        text.warning_lines([*text.server_warnings(page.body), *page.warnings]),
        text.unavailable_lines(text.unavailable_of(page.body)),
        text.recall_lines(page.body),
        text.freshness_lines(page.body),
        text.fenced(blocks, nonce),
        [use_line] if shown.blocks else [],
        text.next_lines(following),
    )


def _json_face(_: Call, shown: ShownPage, following: list[NextCall], mix: list[Json]) -> str:
    """The form that clients built on the search-and-fetch contract parse; it names no sources."""
    del mix
    page = shown.page
    results = [as_object(block.result) for block in shown.blocks]
    body: Json = {
        "results": [{name: hit[name] for name in ("id", "title", "url")} for hit in results]
    }
    count = count_of(page.body)
    warnings = [*text.server_warnings(page.body), *page.warnings]
    if page.more:
        body["has_more"] = True
    if page.cursor is not None:
        body["next_cursor"] = page.cursor
    if count is not None:
        body["count"] = {"kind": count[0], "value": count[1]}
    if warnings:
        body["warnings"] = warnings
    if following:
        body["next"] = [item.as_json() for item in following]
    return escaped_json(body)


def _stated_mix(page: Page) -> list[Json]:
    meta = meta_of(page.body)
    package = as_object(meta.get("package"))
    return objects_in(meta.get("source_mix")) or objects_in(package.get("source_mix"))


def source_mix(page: Page) -> list[Json]:
    """From which connections the hits come: as stated, else counted when there are several."""
    stated = _stated_mix(page)
    if stated:
        return stated
    counted = Counter(connection_of(hit) for hit in page.rows)
    if len(counted) < 2:
        return []
    named = {connection_of(hit): hit for hit in page.rows}
    return [
        _mixed(connection, named[connection], count) for connection, count in counted.most_common()
    ]


def _mixed(connection: str | None, hit: Json, count: int) -> Json:
    row: Json = {"connection_id": connection, "connector_key": connector_key_of(hit)}
    name = as_text(hit.get("display_name"))
    return {**row, **({"display_name": name} if name else {}), "count": count}
