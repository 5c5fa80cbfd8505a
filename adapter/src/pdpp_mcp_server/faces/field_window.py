"""A window of one field in both faces: exact text in the structure, cleaned text behind the fence.

Source: docs/contract/mcp-adapter.md 10.6.2. `end_chars = start_chars + len(text)`, always.
"""

import re

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.calls import Link, Outcome, ToolCall
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.truncation import cut_position, largest
from pdpp_mcp_server.handles import (
    RecordRef,
    WindowRef,
    format_id,
    window_uri,
)
from pdpp_mcp_server.rs_client.answers import connection_of
from pdpp_mcp_server.rs_client.json_values import Json, as_count, as_object, as_text, compact
from pdpp_mcp_server.safe_text import clean, clean_json, label
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    render_cursor,
    short_digest,
)

LARGEST_LIMIT_CHARS = 16_384
TOOL_NAME = "read_record_field"
SELECTOR_NAMES = ("offset_chars", "q", "before_chars", "after_chars")
"""Arguments that choose a window, as a cursor does."""
UNTRUSTED = ("/window/text", "/window/match/q")
ENVELOPE_CHARS = 2_000
END_OF_FIELD = "end of field"


class WindowRequest(msgspec.Struct, frozen=True):
    """One requested window: the record, the arguments as given, and the cursor among them."""

    record: RecordRef
    arguments: Arguments
    cursor: WindowCursor | None = None

    @property
    def field_path(self) -> str:
        """The path of the field in the record."""
        return str(self.arguments["field_path"])

    @property
    def limit_chars(self) -> int:
        """The length, within what a window may have; around a match, as far as was asked."""
        around = [self.arguments.get(name) for name in ("before_chars", "after_chars")]
        given = self.arguments.get("limit_chars")
        if given is None and self.cursor is not None:
            return self.cursor.limit_chars
        if given is None and around != [None, None]:
            given = len(self.arguments["q"]) + sum(chars or 0 for chars in around)
        return min(int(given), LARGEST_LIMIT_CHARS) if given is not None else contract.WINDOW

    @property
    def offset_chars(self) -> int:
        """Where the window begins."""
        if self.cursor is not None:
            return self.cursor.offset_chars
        return int(self.arguments.get("offset_chars", 0))

    def restarted(self) -> Arguments:
        """The call that reads the same field from its start."""
        return {**without(self.arguments, "cursor", *SELECTOR_NAMES), "offset_chars": 0}


class _ShownWindow(msgspec.Struct, frozen=True):
    """One window as it is shown."""

    record: RecordRef
    field_path: str
    text: str
    start: int
    limit: int
    size: int | None
    follows: bool
    digest: str | None

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def complete(self) -> bool:
        return self.start == 0 and not self.follows

    @property
    def previous(self) -> int | None:
        return max(0, self.start - self.limit) if self.start > 0 else None

    def cursor(self, offset: int) -> str:
        key = field_key(self.record, self.field_path)
        return render_cursor(WindowCursor(key, offset, self.limit, short_digest(self.digest)))

    def uri(self, offset: int) -> str:
        window = WindowRef(self.record, self.field_path, offset, self.limit, self.digest)
        return window_uri(window)


def render_window(
    call: ToolCall, body: Json, request: WindowRequest, request_id: str | None
) -> Outcome:
    """Both faces of one window."""
    shown = _window(body, request)
    wanted = call.link_rule == "always" or (call.links_allowed and not shown.complete)
    linked = wanted and len(shown.uri(shown.start)) <= contract.LINK_URI
    structured = _structured(body, request, shown, linked=linked)
    face = _text(call, structured, shown)
    mime = as_text(structured["field"].get("mime_type")) or "text/plain"
    links = (Link(label(request.field_path), shown.uri(shown.start), mime),) if linked else ()
    return Outcome(structured, face, links, UNTRUSTED, request_id, rows=1)


def _window(body: Json, request: WindowRequest) -> _ShownWindow:
    window, field = as_object(body.get("window")), as_object(body.get("field"))
    received: str = window["text"]
    start = as_count(window.get("start_chars"))
    limit = min(as_count(window.get("limit_chars")) or request.limit_chars, request.limit_chars)
    size = as_count(field.get("size_chars"))
    kept = _fitting(received[:limit], limit)
    begin = max(0, request.offset_chars if start is None else start)
    end = begin + len(kept)
    follows = len(kept) < len(received) or _follows(window, end, size)
    record = RecordRef(
        connection_of(body) or request.record.connection_id,
        request.record.stream,
        request.record.record_id,
    )
    digest = as_text(field.get("digest"))
    return _ShownWindow(record, request.field_path, kept, begin, limit, size, follows, digest)


def _follows(window: Json, end: int, size: int | None) -> bool:
    if size is not None and as_text(window.get("text")):
        return end < size
    if isinstance(window.get("has_more"), bool):
        return window["has_more"]
    if as_count(window.get("next_offset_chars")) is not None:
        return True
    return window.get("complete") is False and bool(window.get("text"))


def _fitting(received: str, limit: int) -> str:
    most = contract.STRUCTURED_AIM if limit <= contract.WINDOW else contract.CEILING
    room = most - ENVELOPE_CHARS * 4
    if len(compact(received)) <= room:
        return received
    kept = largest(len(received), lambda count: len(compact(received[:count])) <= room)
    return received[: cut_position(received, kept)]


def _structured(body: Json, request: WindowRequest, shown: _ShownWindow, *, linked: bool) -> Json:
    window: Json = {
        "start_chars": shown.start,
        "end_chars": shown.end,
        "limit_chars": shown.limit,
        "complete": shown.complete,
        "next_cursor": shown.cursor(shown.end) if shown.follows else None,
        "previous_cursor": None if shown.previous is None else shown.cursor(shown.previous),
    }
    match = _match(as_object(body.get("window")), request)
    if match is not None:
        window["match"] = match
    window["text"] = shown.text  # last, so that a host that cuts a result keeps the cursors
    record = shown.record
    structured: Json = {
        "record": {
            "id": format_id(record),
            "connection_id": record.connection_id,
            "stream": record.stream,
            "record_id": record.record_id,
        },
        "field": _field(as_object(body.get("field")), request),
    }
    if linked:
        structured["resource"] = {
            "uri": shown.uri(shown.start),
            "next_uri": shown.uri(shown.end) if shown.follows else None,
            "previous_uri": None if shown.previous is None else shown.uri(shown.previous),
        }
    structured["window"] = window
    return structured


def _field(field: Json, request: WindowRequest) -> Json:
    found: Json = {"path": request.field_path, "text_like": field.get("text_like") is not False}
    if as_text(field.get("mime_type")):
        found["mime_type"] = field["mime_type"]
    if as_count(field.get("size_chars")) is not None:
        found["size_chars"] = field["size_chars"]
    if as_text(field.get("digest")):
        found["digest"] = field["digest"]
    return found


def _match(window: Json, request: WindowRequest) -> Json | None:
    begin, end = as_count(window.get("match_start_chars")), as_count(window.get("match_end_chars"))
    if "q" not in request.arguments or begin is None or end is None:
        return None
    return {"q": request.arguments["q"], "start_chars": begin, "end_chars": end}


# A line of the text face that is not record text begins with one of these.
# Whoever reads may end a line at more characters than LF.
_OURS = re.compile(
    r"(?:^|(?<=[\r\x85\u2028\u2029]))(?=(?:BEGIN|END)\b|\[\d|\{"
    r"|(?:next|previous|use|cut|binary|warning|unavailable|ignored|recall|fresh|source_mix|empty"
    r"|near|error|repeated)\b)",
    re.MULTILINE,
)


def set_apart(record_text: str) -> str:
    """Record text of which no line can be taken for one of ours: such a line gets a blank."""
    return _OURS.sub(" ", record_text)


def _text(call: ToolCall, structured: Json, shown: _ShownWindow) -> str:
    visible = clean(shown.text)
    window = structured["window"]
    head: Json = {"id": structured["record"]["id"], "field_path": shown.field_path}
    head.update({name: window[name] for name in ("start_chars", "end_chars")})
    if shown.size is not None:
        head["size_chars"] = shown.size
    head.update({name: window[name] for name in ("complete", "next_cursor", "previous_cursor")})
    match = as_object(window.get("match"))
    if match:
        head["match"] = {name: match[name] for name in ("start_chars", "end_chars")}
    if len(visible) < len(shown.text):
        head["removed_chars"] = len(shown.text) - len(visible)
    calls = [_walk_line(head, "next"), _walk_line(head, "previous")]
    lines = [line for line in calls if line]
    if not shown.follows and not shown.complete:
        lines.insert(0, END_OF_FIELD)
    fence = text.fenced([set_apart(visible)], call.nonce)
    whole = text.joined([clean_json(head)], lines, fence)
    if len(whole) > contract.SEEN:
        from pdpp_mcp_server.faces.long_texts import walked_on  # noqa: PLC0415 (few are so long)

        whole = walked_on(whole, lines)
    return whole


def _walk_line(head: Json, direction: str) -> str | None:
    cursor = as_text(head[f"{direction}_cursor"])
    if cursor is None:
        return None
    arguments = {"id": head["id"], "field_path": head["field_path"], "cursor": cursor}
    return f"{direction}: {TOOL_NAME} {clean_json(arguments)}"
