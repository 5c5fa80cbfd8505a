"""A refused read as a tool error: what was wrong, what is expected, and the call that works.

Source: docs/contract/mcp-adapter.md 3.5, 5.1 to 5.3. Codes of the resource server pass unchanged. A
next call is complete and legal and never asks for more than was asked for.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from pdpp_kernel.operators import Operator
from pdpp_kernel.values import instant_or_day_ns
from pdpp_mcp_server.arguments import EXPECTED_FILTER, Arguments, legal_call, without
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.handles import format_id, parse_id
from pdpp_mcp_server.rs_client.answers import error_of
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object, as_text, is_object
from pdpp_mcp_server.rs_client.port import RsResponse
from pdpp_mcp_server.safe_text import label

NEVER_RETRIED = frozenset({"field_not_granted", "grant_stream_not_allowed", "insufficient_scope"})
NO_STREAM = "grant_stream_not_allowed"
GRANTED_NAMES = frozenset({NO_STREAM, "field_not_granted", "unknown_field"})
"""Refusals of a name, which tell what is granted instead."""


ENDED_CODES = frozenset({"grant_revoked", "grant_expired", "grant_invalid"})
NO_CONNECTION = "connection_not_found"
# The same of a record that is gone, hidden or was never there.
NO_RECORD = "not_found"
RECORD_NAMES = ("id", "record_id")
PAUSED_CODE = "grant_paused"
PAUSED_ACCESS = "Tell the person; there is nothing to approve and nothing to repeat now."
MORE_ACCESS = "The person must approve more access; do not retry."
ENDED_ACCESS = "The person must approve access again, or choose another source."


ORDER_NAMES = ("sort", "order")
DROPPABLE = frozenset({*ORDER_NAMES, "count", "time_zone"})
"""Arguments that restrict nothing: without them a call asks for no more."""


BEGINNING = "beginning"
TIMES = frozenset({"since", "until"})
A_DAY = re.compile(r"(\d{4})(?:[-/.](\d{1,2}))?(?:[-/.](\d{1,2}))?")
A_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)? ?([Zz]|[+-]\d\d:?\d\d)?"
)
# What an operator asks of a month or year: which side of it, with which operator.
_BOUNDS = {
    Operator.GTE.value: (Operator.GTE, False),
    Operator.GT.value: (Operator.GTE, True),
    Operator.LT.value: (Operator.LT, False),
    Operator.LTE.value: (Operator.LT, True),
}
LARGEST_LIMIT = 100
NAMED_VALUES = 12
# Where the arguments of a tool name fields; the `sort` of others is one of a few words.
_NAMING = {
    "query_records": ("fields", "filter", "sort"),
    "aggregate": ("field", "filter", "group_by", "then_by", "group_by_time"),
}
_NAMING_ELSEWHERE = ("fields", "filter")
# As the server says them, and as tools do.
NO_MODE = "unsupported_search_mode"
MODES = {"words": "lexical", "meaning": "semantic"}


def refusal(call: ToolCall, response: RsResponse, arguments: Arguments) -> ToolError:
    """The server's own refusal, with its code and a hint."""
    error = error_of(response)
    code = str(error["code"])
    members = without(error, "code", "message")
    members["origin"] = "resource_server"
    members["http_status"] = response.status
    if response.request_id:
        members["request_id"] = response.request_id
    if response.retry_after_seconds is not None:
        members["retry_after_seconds"] = response.retry_after_seconds
    if code.startswith("ambiguous_"):
        members["discovery_hint"] = "Call `schema` to list every stream with its connections."
    message: str = error["message"]
    advice = _advice(call, error, response.status)
    if advice:
        message += f" {advice}" if message.endswith((".", "!", "?")) else f". {advice}"
    expected = expectation(error)
    if expected is not None:
        members.setdefault("expected", expected)
    following = next_call(call.tool, error, response.status, arguments)
    return ToolError(code, message, members=members, next_call=following)


def _advice(call: ToolCall, error: Json, status: int) -> str:
    code = str(error["code"])
    if code in NEVER_RETRIED:
        return "" if as_list(error.get("suggestions")) else MORE_ACCESS
    if code == PAUSED_CODE:
        return PAUSED_ACCESS
    if code == NO_CONNECTION:
        return ENDED_ACCESS if as_list(error.get("unavailable_connections")) else ""
    if code in ENDED_CODES:
        return ENDED_ACCESS
    return f"Run `pdpp connect {call.provider_url}` to approve again." if status == 401 else ""


def expectation(error: Json) -> str | None:
    """What would have been legal, when the server says it."""
    granted = error.get("code") in GRANTED_NAMES
    legal = "granted here:" if granted else "one of"
    for name, words in (("allowed_values", legal), ("suggestions", "perhaps")):
        values = [label(str(value)) for value in as_list(error.get(name))]
        if error.get("code") == NO_MODE:
            values = [MODES.get(value, value) for value in values]
        if values:
            more = " ..." if len(values) > NAMED_VALUES else ""
            return f"{words} {', '.join(values[:NAMED_VALUES])}{more}"
    return EXPECTED_FILTER if error.get("code") == "invalid_filter" else None


def next_call(tool: str, error: Json, status: int, arguments: Arguments) -> NextCall | None:
    """The call that heals a refusal, if there is one."""
    code = str(error["code"])
    if code in GRANTED_NAMES and as_list(error.get("allowed_values")):
        return _of_granted_names(tool, code, error, arguments)
    if code in NEVER_RETRIED or code in ENDED_CODES or code == PAUSED_CODE:
        return None
    recovery = error.get("recovery")
    if is_object(recovery) and recovery:
        recovered = _recovered(arguments, recovery)
        kept = {name: value for name, value in recovered.items() if value is not None}
        healed = legal_call(tool, kept)
        if healed is not None or not code.startswith("ambiguous_"):
            return healed
    if code.startswith("ambiguous_"):
        return NextCall("schema", {} if tool == "schema" else _stream_scope(arguments))
    if code == NO_CONNECTION:
        return NextCall("schema", {})
    # a 404 may mean that the server has no route for the mode that was asked for
    lacks_mode = status == 404 and arguments.get("mode", "auto") not in ("auto", "lexical")
    if code == NO_MODE or lacks_mode:
        return NextCall(tool, {**without(arguments, "cursor"), "mode": "lexical"})
    repaired = _repaired(tool, code, error, arguments)
    is_lost = code == NO_RECORD and not arguments.keys().isdisjoint(RECORD_NAMES)
    if repaired is None and (is_lost or (status == 400 and tool != "schema")):
        return NextCall("schema", _described_stream(arguments))
    return repaired


def _of_granted_names(tool: str, code: str, error: Json, arguments: Arguments) -> NextCall:
    """The call with names that are granted, else the description that lists them."""
    if code == NO_STREAM:
        return NextCall("schema", {})
    granted = {str(name) for name in as_list(error.get("allowed_values"))}
    renamed = _with_granted_names(tool, arguments, granted)
    healed = None if renamed is None else legal_call(tool, renamed)
    return healed or NextCall("schema", _described_stream(arguments))


def _with_granted_names(tool: str, arguments: Arguments, granted: set[str]) -> Arguments | None:
    """The call with the names of fields as they are spelled, where case and signs alone differ.

    In: `activity_date`, where `Activity_Date` is granted; out: `Activity_Date`. None where nothing
    differs so, or two conditions would be on one field: one of them would be lost.
    """
    spelled: dict[str, list[str]] = {}
    for name in granted:
        spelled.setdefault(_folded(name), []).append(name)

    def known(name: str) -> str:
        is_known = name in granted or name == "connection_id"  # by which records are grouped, too
        twins = [] if is_known else spelled.get(_folded(name), [])
        return twins[0] if len(twins) == 1 else name

    renamed = dict(arguments)
    for argument in _NAMING.get(tool, _NAMING_ELSEWHERE):
        named = arguments.get(argument)
        if named is None:
            continue
        if is_object(named):
            conditions = {known(name): value for name, value in named.items()}
            if len(conditions) < len(named):
                return None
            renamed[argument] = conditions
        elif isinstance(named, str):
            sign = "-" if named.startswith("-") else ""
            renamed[argument] = sign + known(named.removeprefix("-"))
        else:
            renamed[argument] = [known(str(name)) for name in as_list(named)]
    return renamed if renamed != arguments else None


def _folded(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _recovered(arguments: Arguments, recovery: Json) -> Arguments:
    """The call with what the server says in its place, in the id that names a connection, too."""
    connection = as_text(recovery.get("connection_id"))
    if connection is None or "id" not in arguments or "connection_id" in arguments:
        return {**arguments, **recovery}
    try:
        record = parse_id(str(arguments["id"]))
    except ToolError:
        return {**arguments, **recovery}
    if record.connection_id is None:
        return {**arguments, **recovery}
    mended = format_id(record._replace(connection_id=connection))
    return {**arguments, **recovery, "id": mended, "connection_id": None}


def _stream_scope(arguments: Arguments) -> Arguments:
    stream = as_text(arguments.get("stream"))
    return {"stream": stream} if stream else {}


def _described_stream(arguments: Arguments) -> Arguments:
    """The stream a call is about, by name, by id, or as the only one searched; of its source."""
    connection = as_text(arguments.get("connection_id"))
    streams = as_list(arguments.get("streams"))
    scope = {"stream": streams[0]} if len(streams) == 1 else _stream_scope(arguments)
    if "id" in arguments:
        try:
            record = parse_id(str(arguments["id"]))
        except ToolError:
            return {}
        scope, connection = {"stream": record.stream}, record.connection_id or connection
    return {**scope, "connection_id": connection} if scope and connection else scope


def _repaired(tool: str, code: str, error: Json, arguments: Arguments) -> NextCall | None:
    param = error.get("param")
    if code in {"invalid_cursor", "cursor_expired"}:
        return _restarted(tool, arguments)
    if code == "invalid_expand":
        return NextCall(tool, without(arguments, "expand", "expand_limit"))
    if param == "limit" and "limit" in arguments:
        return NextCall(tool, {**arguments, "limit": min(int(arguments["limit"]), LARGEST_LIMIT)})
    if code == "invalid_request" and param in TIMES:
        mended = _with_days(arguments)
        return NextCall(tool, mended) if mended.get(param) != arguments.get(param) else None
    if code == "invalid_filter" and (ranged := _as_range(str(param), arguments)) is not None:
        return legal_call(tool, {**arguments, "filter": ranged})
    if code == "invalid_request" and param in DROPPABLE and param in arguments:
        names = ORDER_NAMES if param in ORDER_NAMES else (param,)
        return NextCall(tool, without(arguments, *names))
    return None


def _with_days(arguments: Arguments) -> Arguments:
    """The call with both its times as the server takes them; of one month or year, all of it."""
    times = {name: str(arguments[name]) for name in TIMES if name in arguments}
    whole = span_of(times.get("since", ""))
    if whole is not None and times["since"] == times.get("until"):
        return {**arguments, "since": whole[0].isoformat(), "until": whole[1].isoformat()}
    return {**arguments, **{name: mended_time(text) or text for name, text in times.items()}}


def _as_range(param: str, arguments: Arguments) -> Json | None:
    """The filter with the day, month or year that a moment was to equal as the range it is."""
    conditions = as_object(arguments.get("filter"))
    name = param.removeprefix("filter[").partition("]")[0]
    asked = conditions.get(name)
    if is_object(asked):
        mended: Json = {}
        for operator, text in asked.items():
            mended |= _as_bound(operator, str(text)) or {operator: text}
        return {**conditions, name: mended} if mended != asked else None
    span = span_of(str(asked))
    if span is None:
        return None
    return {**conditions, name: _stretch(*span)}


def _as_bound(operator: str, text: str) -> Json | None:
    """A month or year as the day that bounds it on the side that an operator asks for."""
    found, span = A_DAY.fullmatch(text), span_of(text)
    if found is None or found[3] or span is None or operator not in _BOUNDS:
        return None
    meant, is_after = _BOUNDS[operator]
    return {meant.value: span[is_after].isoformat()}


def _stretch(first: date, after: date) -> Json:
    """From a day on, before another."""
    return {Operator.GTE.value: first.isoformat(), Operator.LT.value: after.isoformat()}


def span_of(text: str) -> tuple[date, date] | None:
    """The first day of a day, month or year, and the first one after it."""
    found = A_DAY.fullmatch(text)
    if found is None:
        return None
    year, month, day = (int(part) if part else None for part in found.groups())
    try:
        first = date(int(year or 0), month or 1, day or 1)
        if day is not None:
            return first, first + timedelta(days=1)
        after = (first.year, first.month + 1) if month not in (None, 12) else (first.year + 1, 1)
        return first, date(*after, 1)
    except (ValueError, OverflowError):
        return None


def mended_time(text: str) -> str | None:
    """A time as the server takes it, where it is plain what was meant.

    A day or moment without a zone is read as the server reads a day, in UTC; a month or year is its
    first day, so that an `until` ends before it, as it does of a day.
    """
    moment, day = A_MOMENT.fullmatch(text), A_DAY.fullmatch(text)
    if moment is not None:
        at, clock, seconds, offset = moment.groups()
        offset = (offset or "Z").upper()
        offset = offset if ":" in offset or offset == "Z" else f"{offset[:3]}:{offset[3:]}"
        mended = f"{at}T{clock}{seconds or ':00'}{offset}"
    elif day is not None:
        try:
            mended = date(*(int(part or 1) for part in day.groups())).isoformat()
        except ValueError:
            return None
    else:
        return None
    return mended if mended != text and instant_or_day_ns(mended) is not None else None


def _restarted(tool: str, arguments: Arguments) -> NextCall | None:
    """The first page, of the change feed too."""
    if "cursor" in arguments:
        return NextCall(tool, without(arguments, "cursor"))
    if arguments.get("changes_since", BEGINNING) == BEGINNING:
        return None
    return NextCall(tool, {**arguments, "changes_since": BEGINNING})
