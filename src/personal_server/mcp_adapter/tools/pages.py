"""A page that fits: read it, and when it does not fit, ask for the shorter page it has to be.

Source: docs/contract/mcp-adapter.md 6.4; docs/decisions.md C20. The cursor shown always continues
right after the last row shown, because it comes with the page that is shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from personal_server.mcp_adapter import contract
from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.faces.page_layout import Block, Fitting, Frame, Renderer, fit_page
from personal_server.mcp_adapter.reads import read
from personal_server.rs_client.answers import (
    has_more,
    next_cursor_of,
    page_member,
    rows_of,
    with_rows,
)
from personal_server.rs_client.json_values import Json, as_object
from personal_server.rs_client.port import Path, Query

default_limit = 25
no_cursor_advice = (
    "More exists, but the server gave no cursor: narrow with filter or connection_id."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One answer, its rows within the limit, and what had to be said about it."""

    body: Json
    rows: list[Json]
    more: bool
    cursor: str | None
    warnings: list[Json]
    request_id: str | None


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page and its blocks."""

    page: Page
    blocks: list[Block]
    reads: int

    @property
    def ladder(self) -> list[Json]:
        """Every ladder entry of the page."""
        return [entry for block in self.blocks for entry in block.ladder]

    @property
    def data(self) -> Json:
        """The envelope with the rows as they are shown."""
        return with_rows(self.page.body, [block.row for block in self.blocks])


@dataclass(frozen=True, slots=True)
class PageRead:
    """How a tool reads a page: where, with what, and how long a page without rows is."""

    path: Path
    query: Query
    renderer: Renderer
    frame: Callable[[Page], Frame]


async def read_page(call: Call, asked: Mapping[str, Any], how: PageRead) -> ShownPage:
    """Read and fit a page in at most three reads.

    Raises: ToolError.
    """
    limit: int | None = asked.get("limit")
    page, reads = await _first(call, asked, how, limit)
    wanted = limit or len(page.rows)
    fitting = Fitting(page.rows, how.renderer, how.frame(page))
    fitted = fit_page(fitting)
    while isinstance(fitted, int) and reads < contract.page_reads:
        page = await _page(call, asked, how, _shorter(fitted, reads))
        fitting = fitting.again(page.rows, how.frame(page))
        fitted = fit_page(fitting)
        reads += 1
    while isinstance(fitted, int):
        page = _prefix(page, fitted)
        fitting = fitting.again(page.rows, how.frame(page))
        fitted = fit_page(fitting)
    return ShownPage(_shortened(page, wanted, len(fitted), reads), fitted, reads)


def _shorter(fitted: int, reads: int) -> int:
    """What to ask for: what fits; when the rows changed under us, with room to spare."""
    return fitted if reads == 1 else max(1, fitted // 2)


def _prefix(page: Page, rows: int) -> Page:
    """Fewer rows, of a server that never sent a page that fits; no cursor leads on."""
    advice = _warning("no_cursor", no_cursor_advice)
    warnings = page.warnings if advice in page.warnings else [*page.warnings, advice]
    kept = page.rows[: min(rows, len(page.rows) - 1)]
    body = with_rows({**_without_cursor(page.body), "has_more": True}, kept)
    return Page(body, kept, True, None, warnings, page.request_id)


async def _first(
    call: Call, asked: Mapping[str, Any], how: PageRead, limit: int | None
) -> tuple[Page, int]:
    try:
        return await _page(call, asked, how, limit), 1
    except ToolError as error:
        if error.code != "rs_invalid_response":
            raise
    return await _page(call, asked, how, 1), 2


async def _page(call: Call, asked: Mapping[str, Any], how: PageRead, limit: int | None) -> Page:
    query = how.query if limit is None else (*how.query, ("limit", str(limit)))
    response = await read(call, how.path, query, asked)
    return page_of(as_object(response.body), limit, response.request_id)


def page_of(body: Json, limit: int | None, request_id: str | None = None) -> Page:
    """Read an envelope, ours or a foreign one; never more rows than were asked for."""
    rows = rows_of(body)
    allowed = limit or contract.list_argument
    cursor, more = next_cursor_of(body), has_more(body)
    warnings: list[Json] = []
    if len(rows) > allowed:
        warnings.append(
            _warning("page_cut", f"The server sent {len(rows)} rows, {allowed} are shown.")
        )
        rows, cursor, more = rows[:allowed], None, True
        body = {**_without_cursor(body), "has_more": True}
    if page_member(body, "has_more") is None and cursor is not None:
        more = True
    if more and cursor is None:
        warnings.append(_warning("no_cursor", no_cursor_advice))
    return Page(body, rows, more, cursor if more else None, warnings, request_id)


def _without_cursor(body: Json) -> Json:
    links = as_object(body.get("links"))
    kept = {name: value for name, value in body.items() if name != "next_cursor"}
    return {**kept, "links": {**links, "next": None}} if links else kept


def _shortened(page: Page, wanted: int, shown: int, reads: int) -> Page:
    if reads == 1 or shown >= wanted:
        return page
    text = f"asked for {wanted}, shown {shown} so that the page fits"
    warnings = [*page.warnings, _warning("page_shortened", text)]
    return Page(page.body, page.rows, page.more, page.cursor, warnings, page.request_id)


def _warning(code: str, message: str) -> Json:
    return {"code": code, "message": message}
