"""read_record_field: a bounded window of one text field, and the way on and back.

Source: docs/contract/mcp-adapter.md 10.6; docs/decisions.md C22. Windows come from the field-window
route only.
"""

from collections.abc import Mapping
from typing import Any

from pdpp_mcp_server.arguments import Arguments, parse_arguments, without
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces.field_window import (
    SELECTOR_NAMES,
    TOOL_NAME,
    WindowRequest,
    render_window,
)
from pdpp_mcp_server.handles import (
    RecordRef,
    format_id,
)
from pdpp_mcp_server.read_refusals import refusal
from pdpp_mcp_server.reads import answer
from pdpp_mcp_server.rs_client.answers import error_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, is_object
from pdpp_mcp_server.rs_client.port import Query, RsResponse
from pdpp_mcp_server.tools.fetch import record_of
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    parse_cursor,
    short_digest,
)

WINDOW_NAMES = (*SELECTOR_NAMES, "limit_chars")


async def read_record_field(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, (record, cursor) = parse_arguments(TOOL_NAME, raw, check_shape)
    return await read_window(call, WindowRequest(record, arguments, cursor))


async def read_window(call: ToolCall, window: WindowRequest) -> Outcome:
    """Read one window, for the tool and for the resource alike.

    Raises: ToolError.
    """
    path = (*window.record.path, "field-window")
    response = await answer(call, path, _query(window), window.arguments)
    if not response.ok:
        raise _refused(call, response, window)
    body = response.body
    if not is_object(body) or not isinstance(as_object(body.get("window")).get("text"), str):
        raise ToolError(
            "rs_invalid_response",
            "The resource server gave no window.",
            next_call=NextCall(TOOL_NAME, window.arguments),
        )
    _check_digest(body, window)
    return render_window(call, body, window, response.request_id)


def check_shape(arguments: Arguments) -> tuple[RecordRef, WindowCursor | None]:
    """Record and cursor of a call, or the first refusal.

    Raises: ToolError.
    """
    record = _record(arguments)
    _check_window(arguments)
    return record, _cursor(arguments, record)


def _record(arguments: Arguments) -> RecordRef:
    parts = [name for name in ("stream", "record_id") if name in arguments]
    if "id" in arguments:
        if parts:
            message = "`id` excludes `stream` and `record_id`."
            raise _identity_error(parts[0], message, without(arguments, *parts))
        return record_of(arguments)
    for name in ("connection_id", "stream", "record_id"):
        if name not in arguments:
            message = "Name the record by `id`, or by connection_id, stream and record_id together."
            raise _identity_error("id" if not parts else name, message, *_by_id(arguments))
    return RecordRef(arguments["connection_id"], arguments["stream"], arguments["record_id"])


def _by_id(arguments: Arguments) -> list[Arguments]:
    """The same call with stream and key in one id, when both are given."""
    if "stream" not in arguments or "record_id" not in arguments:
        return []
    record = RecordRef(None, arguments["stream"], arguments["record_id"])
    return [{"id": format_id(record), **without(arguments, "stream", "record_id")}]


def _identity_error(param: str, message: str, *repairs: Arguments) -> ToolError:
    return ToolError("invalid_arguments", message, param=param, repairs=repairs)


def _check_window(arguments: Arguments) -> None:
    chosen = [name for name in SELECTOR_NAMES if name in arguments]
    if "cursor" in arguments and chosen:
        message = (
            f"`cursor` continues by itself and excludes choosing a window: leave out {chosen[0]}."
        )
        continued, chosen_anew = without(arguments, *chosen), without(arguments, "cursor")
        raise _selector_error(chosen[0], message, continued, chosen_anew)
    if "q" in arguments and "offset_chars" in arguments:
        message = "`q` and `offset_chars` each choose a window: use one."
        raise _selector_error("offset_chars", message, without(arguments, "offset_chars"))
    context = [name for name in ("before_chars", "after_chars") if name in arguments]
    if context and "q" not in arguments:
        message = f"`{context[0]}` goes with `q` only."
        raise _selector_error(context[0], message, without(arguments, *context))


def _selector_error(param: str, message: str, *repairs: Arguments) -> ToolError:
    return ToolError("invalid_field_window_selector", message, param=param, repairs=repairs)


def _cursor(arguments: Arguments, record: RecordRef) -> WindowCursor | None:
    if "cursor" not in arguments:
        return None
    text = arguments["cursor"]
    cursor = parse_cursor(text, field_key(record, arguments["field_path"]))
    if cursor is None:
        offset = int(text) if text.isdecimal() and len(text) < 12 else 0
        raise ToolError(
            "invalid_cursor",
            "This cursor is damaged, or belongs to another record or field.",
            param="cursor",
            next_call=NextCall(TOOL_NAME, {**without(arguments, "cursor"), "offset_chars": offset}),
        )
    return cursor


def _query(window: WindowRequest) -> Query:
    """The parameters of the route; only what was given."""
    chosen = {name: window.arguments[name] for name in WINDOW_NAMES if name in window.arguments}
    if window.cursor is not None:
        chosen = {"limit_chars": window.cursor.limit_chars, **chosen}
        chosen["offset_chars"] = window.cursor.offset_chars
    ordered = ((name, str(chosen[name])) for name in WINDOW_NAMES if name in chosen)
    return (*window.record.scope, ("field", window.field_path), *ordered)


def _check_digest(body: Json, window: WindowRequest) -> None:
    digest = short_digest(as_text(as_object(body.get("field")).get("digest")))
    if window.cursor is None or not window.cursor.digest or not digest:
        return
    if window.cursor.digest != digest:
        raise ToolError(
            "stale_cursor",
            "The field has changed since this cursor was made; start again.",
            param="cursor",
            next_call=NextCall(TOOL_NAME, window.restarted()),
        )


def _refused(call: ToolCall, response: RsResponse, window: WindowRequest) -> ToolError:
    code = str(error_of(response)["code"])
    one_field = {"id": format_id(window.record), "fields": [window.field_path]}
    if response.status in {404, 405} and code.startswith("http_"):
        return ToolError(
            "field_window_unsupported",
            "This resource server has no field windows; `fetch` shows the start of the field.",
            next_call=NextCall("fetch", one_field),
        )
    error = refusal(call, response, window.arguments)
    if code == "field_not_text":
        return error.with_next(NextCall("fetch", one_field))
    if code == "field_not_found":
        return error.with_next(NextCall("fetch", {"id": format_id(window.record)}))
    if code == "query_not_found":
        return error.with_next(NextCall(TOOL_NAME, window.restarted()))
    return error
