"""query_records: one page of one stream.

Source: docs/contract/mcp-adapter.md 10.2.
"""

from collections.abc import Callable, Mapping
from typing import Any

from personal_server.mcp_adapter import contract
from personal_server.mcp_adapter.arguments import (
    advised_filter,
    encode_filter,
    legal_or_none,
    parse_arguments,
)
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces import text
from personal_server.mcp_adapter.faces.page_layout import Frame
from personal_server.mcp_adapter.faces.record_identity import Place
from personal_server.mcp_adapter.faces.records import RowItem, links_of
from personal_server.mcp_adapter.tools.expansion import encode_expand, pass_expand_gate
from personal_server.mcp_adapter.tools.pages import Page, PageRead, ShownPage, read_page
from personal_server.rs_client.answers import page_member
from personal_server.rs_client.json_values import Json, as_text, compact
from personal_server.rs_client.port import Query

plain_names = ("cursor", "view", "sort", "order", "count", "changes_since", "connection_id")
untrusted = ("/data/data/*/data", "/data/data/*/expanded")


async def query_records(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    tool = published_contract().tools["query_records"]
    asked = parse_arguments(tool, raw, check_shape)
    query = check_shape(asked)
    connection = asked.get("connection_id")
    declared = await pass_expand_gate(call, asked, asked["stream"], connection)
    place = Place(asked["stream"], connection, declared)

    def item(row: Json, number: int) -> RowItem:
        return RowItem(call, row, place, str(number))

    def frame(page: Page) -> Frame:
        empty = _faces(call, asked, ShownPage(page, [], 1))
        size = len(compact(empty.structured))
        return Frame(size, len(empty.text), page.cursor is not None)

    path = ("v1", "streams", asked["stream"], "records")
    shown = await read_page(call, asked, PageRead(path, query, item, frame))
    return _faces(call, asked, shown)


def check_shape(asked: dict[str, Any]) -> Query:
    """The shape checks of this tool, in their order, and the parameters that pass them.

    Raises: ToolError invalid_arguments, invalid_filter, invalid_expand.
    """
    if "fields" in asked and "view" in asked:
        rest = _less(asked, "view")
        raise ToolError(
            "invalid_arguments",
            "`fields` and `view` exclude each other.",
            param="view",
            next_call=_legal(rest),
        )
    conditions = filter_query(asked, _legal)
    try:
        relations = encode_expand(asked)
    except ToolError as error:
        raise error.with_next(_legal(_less(asked, "expand", "expand_limit"))) from None
    plain = tuple((name, asked[name]) for name in plain_names if name in asked)
    fields = tuple(("fields", name) for name in asked.get("fields", ()))
    return (*plain, *fields, *conditions, *relations)


def filter_query(
    asked: dict[str, Any], legal: Callable[[dict[str, Any]], NextCall | None]
) -> Query:
    """The filter's parameters; a plainly meant string comes back as a ready call.

    Raises: ToolError invalid_filter.
    """
    if "filter" not in asked:
        return ()
    try:
        return encode_filter(asked["filter"])
    except ToolError as error:
        meant = advised_filter(asked["filter"])
        advice = legal({**asked, "filter": meant}) if meant is not None else None
        raise error.with_next(advice) from None


def _legal(arguments: dict[str, Any]) -> NextCall | None:
    return legal_or_none(published_contract().tools["query_records"], arguments, check_shape)


def _less(asked: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in names}


def next_calls(asked: Mapping[str, Any], page: Page) -> list[NextCall]:
    """The next page, or the call that resumes a change feed."""
    if page.cursor is not None:
        return [NextCall("query_records", {**asked, "cursor": page.cursor}, "next page")]
    bookmark = as_text(page_member(page.body, "next_changes_since"))
    if bookmark is None:
        return []
    later = {**_less(asked, "cursor"), "changes_since": bookmark}
    return [NextCall("query_records", later, "changes after this point")]


def _faces(call: Call, asked: Mapping[str, Any], shown: ShownPage) -> Outcome:
    page = shown.page
    following = next_calls(asked, page)
    structured: Json = {
        "data": shown.data,
        "record_ids": [block.id for block in shown.blocks],
        "content_ladder": shown.ladder,
        "warnings": page.warnings,
        "next": [following_call.as_json() for following_call in following],
        "notice": text.notice,
    }
    blocks = [line for block in shown.blocks for line in block.lines]
    facts = [f"records={len(shown.blocks)}", *text.page_facts(page.body, page.more, page.cursor)]
    first = shown.blocks[0].id if shown.blocks else None
    nonce = text.unused_nonce(call.nonce, "\n".join(blocks))
    face = text.joined(
        [text.head_line("query_records", asked["stream"], facts, first)],
        text.warning_lines([*text.server_warnings(page.body), *page.warnings]),
        text.unavailable_lines(text.unavailable_of(page.body)),
        text.freshness_lines(page.body),
        text.fenced(blocks, nonce),
        text.next_lines(following),
    )
    return Outcome(
        structured=structured,
        text=face,
        links=links_of(call, shown.ladder)[: contract.links],
        untrusted=untrusted,
        request_id=page.request_id,
        page_reads=shown.reads,
        rows=len(shown.blocks),
    )
