"""A page that fits: read it, and when it does not fit, ask for the shorter page it has to be.

Source: docs/contract/mcp-adapter.md 6.4; docs/decisions.md C20. The cursor shown always continues
right after the last row shown, because it comes with the page that is shown.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.near_values import near_in, without_near
from pdpp_mcp_server.faces.page_layout import (
    Block,
    Fitting,
    PageHead,
    Renderer,
    fit_page,
)
from pdpp_mcp_server.faces.page_table import NO_TABLE, PageTable
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.reads import read
from pdpp_mcp_server.rs_client.answers import (
    ROW_PATHS,
    has_more,
    meta_of,
    next_cursor_of,
    page_member,
    rows_of,
    with_rows,
)
from pdpp_mcp_server.rs_client.json_values import Json, as_count, as_object, as_text, compact
from pdpp_mcp_server.rs_client.port import Path, Query

ROW_MEMBERS = frozenset(path[0] for path in ROW_PATHS)
INDEX_PENDING = (
    "records are not in the index of words yet, so hits and near words may be missing;"
    " ask again later."
)
NO_CURSOR_ADVICE = (
    "More exists, but the server gave no cursor: narrow with filter or connection_id."
)


class RecordPage(msgspec.Struct, frozen=True, dict=True):
    """One response, its rows within the limit, and what is to be known about it.

    Shapes: warnings are the adapter's own.
    """

    body: Json
    rows: list[Json]
    more: bool
    cursor: str | None
    warnings: list[Json]
    request_id: str | None
    table: PageTable = NO_TABLE

    @kept_property
    def facts(self) -> list[str]:
        """What the head line says of it."""
        return text.page_facts(self.body, self.more, self.cursor)

    @kept_property
    def notes(self) -> list[str]:
        """The lines between the head line and the rows."""
        return [
            *text.note_lines(self.body, self.all_warnings),
            *text.recall_lines(self.body),
            *text.freshness_lines(self.body),
        ]

    @kept_property
    def all_warnings(self) -> list[Json]:
        """The server's warnings, then the adapter's."""
        return text.all_warnings(self.body, self.warnings)

    @kept_property
    def near(self) -> list[Json]:
        """The near values that the server stated."""
        return near_in(self.body)

    @kept_property
    def envelope(self) -> Json:
        """The response but for its near values, which stand beside it."""
        return without_near(self.body)

    @kept_property
    def bookmark(self) -> str | None:
        """Where a change feed resumes."""
        return as_text(page_member(self.body, "next_changes_since"))


class ShownPage(msgspec.Struct, frozen=True, dict=True):
    """A page and its blocks."""

    page: RecordPage
    blocks: list[Block]
    reads: int

    @kept_property
    def data(self) -> Json:
        """The envelope with the rows as they are shown, and after all else that it says."""
        shown = with_rows(self.page.envelope, [block.row for block in self.blocks])
        return dict(sorted(shown.items(), key=lambda member: member[0] in ROW_MEMBERS))

    @kept_property
    def ladder(self) -> list[Json]:
        """Every ladder entry of the page."""
        return [entry for block in self.blocks for entry in block.ladder]

    @property
    def lines(self) -> list[str]:
        """Every line of the page, for the fence."""
        heading = self.page.table.heading if self.blocks else ()
        return [*heading, *(line for block in self.blocks for line in block.lines)]

    @property
    def first_id(self) -> str | None:
        """The id of the first row, as shown; of a table its first line says it."""
        is_table = self.page.table.columns is not None
        return self.blocks[0].id if self.blocks and not is_table else None


class PageRead(msgspec.Struct, frozen=True):
    """How a tool reads a page: where, with what, and how it shows a row and the whole.

    Units: closing_chars is what `render` adds to the text of a page that has rows.
    """

    path: Path
    query: Query
    renderer: Callable[[PageTable], Renderer]
    render: Callable[[ShownPage], Outcome]
    closing_chars: int = 0
    page_chars: int = contract.PAGE_CHARS
    lay_out: Callable[[Sequence[Json]], PageTable] | None = None

    def laid_out(self, page: RecordPage) -> RecordPage:
        """The page with what its rows have alike."""
        return replace(page, table=self.lay_out(page.rows)) if self.lay_out else page

    def frame(self, page: RecordPage, budget: contract.ResultBudget) -> PageHead:
        """How long both faces of a page are before any row stands in them."""
        bare = self.render(ShownPage(page, [], 1))
        text_chars, structured_chars = bare.sizes
        text_chars += self.closing_chars + text.length(page.table.heading)
        # what a long text says at both ends
        ends = (bare.structured.get(name) for name in ("next", "warnings"))
        text_chars += sum(len(compact(each)) for each in ends)
        return PageHead(structured_chars, text_chars, page.cursor is not None, budget)


async def read_page(call: ToolCall, arguments: Arguments, how: PageRead) -> Outcome:
    """Read, fit and render a page: in one read where the server ends it, else in at most three.

    Raises: ToolError.
    """
    is_ended = await call.takes(ReadCapability.PAGE_SIZE)
    if is_ended:
        page_chars = call.budget.scaled(how.page_chars)
        ending = (("page_chars", str(page_chars)), ("member_chars", str(contract.MEMBER_CHARS)))
        how = replace(how, query=(*how.query, *ending))
    page, reads = await _first(call, arguments, how)
    wanted = arguments.get("limit") or (contract.PAGE_ROWS if is_ended else len(page.rows))
    fitting = Fitting(page.rows, how.renderer(page.table), how.frame(page, call.budget))
    fitted = fit_page(fitting, whole=is_ended)
    while isinstance(fitted, int) and reads < contract.PAGE_READS:
        # when the rows changed under us, with room to spare
        limit = fitted if reads == 1 else max(1, fitted // 2)
        page, before = await _page(call, arguments, how, limit), page
        fitting = _again(fitting, how, page, before, call.budget)
        fitted = fit_page(fitting, whole=is_ended)
        reads += 1
    while isinstance(fitted, int):
        page, before = how.laid_out(_prefix(page, fitted)), page
        fitting = _again(fitting, how, page, before, call.budget)
        fitted = fit_page(fitting, whole=is_ended)
    is_shorter = reads > 1 or (is_ended and page.more)
    if is_shorter and len(fitted) < wanted:
        message = f"asked for {wanted}, shown {len(fitted)} so that the page fits"
        page = replace(page, warnings=[*page.warnings, _warning("page_shortened", message)])
    return how.render(ShownPage(page, fitted, reads))


def _again(
    fitting: Fitting,
    how: PageRead,
    page: RecordPage,
    before: RecordPage,
    budget: contract.ResultBudget,
) -> Fitting:
    renderer = None if page.table == before.table else how.renderer(page.table)
    return fitting.again(page.rows, how.frame(page, budget), renderer)


async def _first(call: ToolCall, arguments: Arguments, how: PageRead) -> tuple[RecordPage, int]:
    try:
        return await _page(call, arguments, how, arguments.get("limit")), 1
    except ToolError as error:
        if error.code != "rs_invalid_response":
            raise
    return await _page(call, arguments, how, 1), 2


async def _page(
    call: ToolCall, arguments: Arguments, how: PageRead, limit: int | None
) -> RecordPage:
    query = how.query if limit is None else (*how.query, ("limit", str(limit)))
    response = await read(call, how.path, query, arguments)
    return how.laid_out(page_of(as_object(response.body), limit, response.request_id))


def page_of(body: Json, limit: int | None, request_id: str | None) -> RecordPage:
    """Read an envelope, ours or a foreign one; never more rows than were asked for."""
    rows = rows_of(body)
    allowed = limit or contract.LIST_ARGUMENT
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
        warnings.append(_warning("no_cursor", NO_CURSOR_ADVICE))
    pending = as_count(as_object(meta_of(body).get("recall")).get("pending_index_count"))
    if pending:
        warnings.append(_warning("index_pending", f"{pending} {INDEX_PENDING}"))
    return RecordPage(body, rows, more, cursor if more else None, warnings, request_id)


def _prefix(page: RecordPage, rows: int) -> RecordPage:
    """Fewer rows, of a server that never sent a page that fits; no cursor leads on."""
    advice = _warning("no_cursor", NO_CURSOR_ADVICE)
    warnings = page.warnings if advice in page.warnings else [*page.warnings, advice]
    kept = page.rows[: min(rows, len(page.rows) - 1)]
    body = with_rows({**_without_cursor(page.body), "has_more": True}, kept)
    return RecordPage(body, kept, True, None, warnings, page.request_id)


def without_link(envelope: Json) -> Json:
    """The envelope without an address that holds nothing but the cursor beside it."""
    links = as_object(envelope.get("links"))
    if "next" not in links or not as_text(envelope.get("next_cursor")):
        return envelope
    kept = {name: link for name, link in links.items() if name != "next"}
    return {name: kept if name == "links" else value for name, value in envelope.items()}


def _without_cursor(body: Json) -> Json:
    links = as_object(body.get("links"))
    kept = {name: value for name, value in body.items() if name != "next_cursor"}
    return {**kept, "links": {**links, "next": None}} if links else kept


def _warning(code: str, message: str) -> Json:
    return {"code": code, "message": message}
