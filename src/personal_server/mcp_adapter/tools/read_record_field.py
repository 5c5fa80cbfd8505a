"""read_record_field: a bounded window of one text field, and the way on and back.

Source: docs/contract/mcp-adapter.md 10.6; docs/decisions.md C22. Windows come from the field-window
route only.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.arguments import legal_or_none, parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces.field_window import Asked, render_window
from personal_server.mcp_adapter.handles import (
    RecordRef,
    WindowCursor,
    field_key,
    format_id,
    parse_cursor,
    short_digest,
)
from personal_server.mcp_adapter.reads import answer, refusal
from personal_server.mcp_adapter.tools.fetch import record_of, record_path
from personal_server.rs_client.answers import error_of
from personal_server.rs_client.json_values import Json, as_object, as_text, is_object
from personal_server.rs_client.port import Query, RsResponse

choosing = ("offset_chars", "q", "before_chars", "after_chars")
window_names = (*choosing, "limit_chars")
tool_name = "read_record_field"


async def read_record_field(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    asked = parse_arguments(published_contract().tools[tool_name], raw, check_shape)
    record, cursor = check_shape(asked)
    window = Asked(record, asked, cursor)
    return await read_window(call, window)


async def read_window(call: Call, window: Asked) -> Outcome:
    """Read one window, for the tool and for the resource alike.

    Raises: ToolError.
    """
    path = (*record_path(window.record), "field-window")
    response = await answer(call, path, window_query(window), window.arguments)
    if not response.ok:
        raise _refused(call, response, window)
    body = response.body
    if not is_object(body) or not isinstance(as_object(body.get("window")).get("text"), str):
        raise ToolError(
            "rs_invalid_response",
            "The resource server gave no window.",
            next_call=NextCall(tool_name, window.arguments),
        )
    _check_digest(body, window)
    return render_window(call, body, window, response.request_id)


def check_shape(asked: dict[str, Any]) -> tuple[RecordRef, WindowCursor | None]:
    """Record and cursor of a call, or the first refusal.

    Raises: ToolError.
    """
    record = _record(asked)
    _check_window(asked)
    return record, _cursor(asked, record)


def _record(asked: dict[str, Any]) -> RecordRef:
    parts = [name for name in ("stream", "record_id") if name in asked]
    if "id" in asked:
        if parts:
            rest = _less(asked, *parts)
            raise _identity_error(parts[0], "`id` excludes `stream` and `record_id`.", _legal(rest))
        return record_of(asked, _legal)
    for name in ("connection_id", "stream", "record_id"):
        if name not in asked:
            message = "Name the record by `id`, or by connection_id, stream and record_id together."
            raise _identity_error("id" if not parts else name, message, _by_id(asked))
    return RecordRef(asked["connection_id"], asked["stream"], asked["record_id"])


def _by_id(asked: dict[str, Any]) -> NextCall | None:
    """The same call with stream and key in one id, when both are given."""
    stream, key = asked.get("stream"), asked.get("record_id")
    if stream is None or key is None:
        return None
    rest = _less(asked, "stream", "record_id")
    return _legal({"id": format_id(RecordRef(None, stream, key)), **rest})


def _identity_error(param: str, message: str, advice: NextCall | None) -> ToolError:
    return ToolError("invalid_arguments", message, param=param, next_call=advice)


def _check_window(asked: dict[str, Any]) -> None:
    chosen = [name for name in choosing if name in asked]
    if "cursor" in asked and chosen:
        message = (
            f"`cursor` continues by itself and excludes choosing a window: leave out {chosen[0]}."
        )
        continued, chosen_anew = _less(asked, *chosen), _less(asked, "cursor")
        raise _selector_error(chosen[0], message, continued, chosen_anew)
    if "q" in asked and "offset_chars" in asked:
        message = "`q` and `offset_chars` each choose a window: use one."
        raise _selector_error("offset_chars", message, _less(asked, "offset_chars"))
    context = [name for name in ("before_chars", "after_chars") if name in asked]
    if context and "q" not in asked:
        message = f"`{context[0]}` goes with `q` only."
        raise _selector_error(context[0], message, _less(asked, *context))


def _selector_error(param: str, message: str, *repairs: dict[str, Any]) -> ToolError:
    code = "invalid_field_window_selector"
    advice = next((call for call in map(_legal, repairs) if call is not None), None)
    return ToolError(code, message, param=param, next_call=advice)


def _cursor(asked: dict[str, Any], record: RecordRef) -> WindowCursor | None:
    if "cursor" not in asked:
        return None
    text = asked["cursor"]
    cursor = parse_cursor(text, field_key(record, asked["field_path"]))
    if cursor is None:
        offset = int(text) if text.isdecimal() and len(text) < 12 else 0
        raise ToolError(
            "invalid_cursor",
            "This cursor is damaged, or belongs to another record or field.",
            param="cursor",
            next_call=NextCall(tool_name, {**_less(asked, "cursor"), "offset_chars": offset}),
        )
    return cursor


def _legal(arguments: dict[str, Any]) -> NextCall | None:
    return legal_or_none(published_contract().tools[tool_name], arguments, check_shape)


def _less(asked: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in names}


def window_query(window: Asked) -> Query:
    """The parameters of the route; only what was given."""
    pairs = [("field", window.field_path)]
    if window.record.connection_id is not None:
        pairs.insert(0, ("connection_id", window.record.connection_id))
    chosen = {name: window.arguments[name] for name in window_names if name in window.arguments}
    if window.cursor is not None:
        chosen = {"limit_chars": window.cursor.limit_chars, **chosen}
        chosen["offset_chars"] = window.cursor.offset_chars
    ordered = [(name, str(chosen[name])) for name in window_names if name in chosen]
    return (*pairs, *ordered)


def _check_digest(body: Json, window: Asked) -> None:
    digest = short_digest(as_text(as_object(body.get("field")).get("digest")))
    if window.cursor is None or not window.cursor.digest or not digest:
        return
    if window.cursor.digest != digest:
        raise ToolError(
            "stale_cursor",
            "The field has changed since this cursor was made; start again.",
            param="cursor",
            next_call=NextCall(tool_name, window.restarted()),
        )


def _refused(call: Call, response: RsResponse, window: Asked) -> ToolError:
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
        return error.with_next(NextCall(tool_name, window.restarted()))
    return error
