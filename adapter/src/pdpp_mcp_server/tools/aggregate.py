"""aggregate: one number, or groups, computed by the resource server.

Source: docs/contract/mcp-adapter.md 10.3, 8.2; docs/decisions.md C28.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import (
    Arguments,
    filter_query,
    given_parameters,
    legal_call,
    parse_arguments,
    require_operators,
    without,
)
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.meant_calls import meant_calls
from pdpp_mcp_server.faces.mixed_units import in_unit, is_plain_unit, unit_calls
from pdpp_mcp_server.faces.near_calls import near_calls
from pdpp_mcp_server.faces.near_values import NEAR_POINTER, near_in, near_lines, without_near
from pdpp_mcp_server.faces.truncation import binary_facts
from pdpp_mcp_server.reads import read
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    is_list,
    objects_in,
)
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import label, one_line, preview_json

PLAIN_NAMES = (
    "metric",
    "field",
    "group_by",
    "then_by",
    "group_by_time",
    "granularity",
    "time_zone",
    "sort",
    "across",
    "connection_id",
)
GROUPING_NAMES = (
    "group_by",
    "then_by",
    "group_by_time",
    "granularity",
    "time_zone",
    "bin",
    "sort",
    "limit",
)
UNTRUSTED = (
    "/data/groups/*/key",
    "/data/groups/*/label",
    "/data/groups/*/then",
    "/data/groups/*/then_label",
    "/data/groups/*/until",
    "/data/groups/*/value",
    "/data/groups/*/unit",
    "/data/value",
    "/data/unit",
)
DAY = re.compile(r"\d{4}-\d\d-\d\d")
ON_THE_HOUR = re.compile(r"(T00)?(:00)*(Z|[+-]\d\d:\d\d)?")
ISO_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


async def aggregate(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render; a list of groups that does not fit is asked for again, shorter.

    Raises: ToolError.
    """
    arguments, query = parse_arguments("aggregate", raw, check_shape)
    await require_operators(call, arguments)
    for capability, param in _required(arguments):
        await call.require(capability, param, stream=arguments["stream"])
    limit, query = arguments.get("limit"), await call.dated(query)
    outcome = await _read(call, arguments, query, limit, 1)
    for reads in (2, 3):
        groups = len(objects_in(as_object(outcome.structured["data"]).get("groups")))
        share = _share_that_fits(outcome, call.budget)
        if share >= 1 or groups <= 1:
            break
        limit = max(1, min(groups - 1, int(groups * share * 0.9))) if reads == 2 else 1
        outcome = await _read(call, arguments, query, limit, reads)
    if len(outcome.text) > call.budget.text_aim:
        raise ToolError(
            "result_too_large",
            "The groups do not fit, however few are asked for; narrow with `filter`.",
            param="group_by",
            next_call=legal_call("aggregate", without(arguments, *GROUPING_NAMES), check_shape),
        )
    return outcome


async def _read(
    call: ToolCall, arguments: Arguments, query: Query, limit: int | None, reads: int
) -> Outcome:
    path = ("v1", "streams", arguments["stream"], "aggregate")
    scope = (("limit", str(limit)),) if limit is not None else ()
    response = await read(call, path, (*query, *scope), arguments)
    return _faces(call, arguments, as_object(response.body), limit, response.request_id, reads)


def _share_that_fits(outcome: Outcome, budget: contract.ResultBudget) -> float:
    text_chars, structured_chars = outcome.sizes
    return min(budget.text_aim / text_chars, budget.structured_aim / structured_chars)


def check_shape(arguments: Arguments) -> Query:
    """The shape checks of this tool and its parameters.

    Raises: ToolError invalid_arguments, invalid_filter.
    """
    _check_grouping(arguments)
    words = (("q", arguments["query"]),) if "query" in arguments else ()
    steps = (("bin", f"{Decimal(repr(arguments['bin'])):f}"),) if "bin" in arguments else ()
    plain = given_parameters(arguments, *PLAIN_NAMES)
    return (*plain, *steps, *words, *filter_query(arguments))


def _required(arguments: Arguments) -> Iterator[tuple[ReadCapability, str]]:
    """What a resource server has to take for this call, and the argument that needs it."""
    if (further := Metric(arguments["metric"]).capability) is not None:
        yield further, "metric"
    if "granularity" in arguments:
        cyclic = Granularity(arguments["granularity"]).capability
        if cyclic is not None:
            yield cyclic, "granularity"
    if "group_by" in arguments and "group_by_time" in arguments:
        yield ReadCapability.AGGREGATE_GROUPS, "group_by_time"
    for name in ("then_by", "bin", "sort"):
        if name in arguments:
            yield ReadCapability.AGGREGATE_GROUPS, name
    if "time_zone" in arguments and "group_by_time" not in arguments:
        yield ReadCapability.TIME_ZONE, "time_zone"
    if "query" in arguments:
        yield ReadCapability.AGGREGATE_QUERY, "query"
    if "across" in arguments:
        yield ReadCapability.AGGREGATE_ACROSS, "across"


def _check_grouping(arguments: Arguments) -> None:
    if Metric(arguments["metric"]).takes_field and "field" not in arguments:
        raise _refused(arguments, "field", f"The metric {arguments['metric']} needs `field`.")
    if "then_by" in arguments and "group_by_time" in arguments:
        message = "Groups have two sides at most: `then_by` or `group_by_time`."
        raise _refused(arguments, "then_by", message, "then_by")
    if "then_by" in arguments and arguments["then_by"] == arguments.get("group_by"):
        raise _refused(arguments, "then_by", "`then_by` names another field.", "then_by")
    if "group_by_time" in arguments and "granularity" not in arguments:
        raise _refused(arguments, "granularity", "`group_by_time` needs `granularity`.")
    for needed, dependent in (
        ("group_by_time", ("granularity",)),
        ("group_by", ("then_by", "bin")),
    ):
        for name in dependent:
            if name in arguments and needed not in arguments:
                message = f"`{name}` goes with `{needed}` only."
                raise _refused(arguments, name, message, *dependent)
    if "sort" in arguments and not {"group_by", "group_by_time"} & set(arguments):
        raise _refused(arguments, "sort", "`sort` orders groups; there are none.", "sort")
    if "across" in arguments and "connection_id" in arguments:
        message = "`across` reads every connection; leave `connection_id` out."
        raise _refused(arguments, "across", message, "connection_id")
    if not arguments.get("query", "x").strip():
        raise _refused(arguments, "query", "`query` needs words.", "query")


def _refused(arguments: Arguments, param: str, message: str, *dropped: str) -> ToolError:
    """The way on is the call without what is dropped, or the schema where something is missing."""
    if dropped:
        repairs = (without(arguments, *dropped),)
        return ToolError("invalid_arguments", message, param=param, repairs=repairs)
    schema = NextCall("schema", {"stream": arguments["stream"]})
    return ToolError("invalid_arguments", message, param=param, next_call=schema)


def _faces(
    call: ToolCall,
    arguments: Arguments,
    body: Json,
    limit: int | None,
    request_id: str | None,
    reads: int,
) -> Outcome:
    own: list[Json] = []
    if limit != arguments.get("limit"):
        message = f"shown {limit} groups so that they fit"
        own.append({"code": "page_shortened", "message": message})
    warnings = text.all_warnings(body, own)
    lines, value_fact = _payload(arguments, body)
    beginning = [
        _head(arguments, body, value_fact),
        *text.note_lines(body, warnings),
        *text.freshness_lines(body),
    ]

    def face(near: list[Json], following: list[NextCall]) -> str:
        fence = text.fenced([*lines, *near_lines(near)], call.nonce)
        return text.leading_on(text.joined(beginning, fence), following, warnings)

    near = near_in(body)
    calls = near_calls("aggregate", arguments, near)
    if not is_list(body.get("groups")) or not body["groups"]:
        near, calls = _near_that_fits(arguments, near, face)
    if not near and not calls:
        meant = meant_calls("aggregate", arguments, body)
        calls = meant if len(face([], meant)) <= contract.SHORT_TEXT else []
    following = [*_next_calls(arguments, body, limit), *calls]
    following += unit_calls("aggregate", arguments, body, check_shape)
    if warnings:
        from pdpp_mcp_server.faces.occurrence_calls import occurrence_calls  # noqa: PLC0415 (few)

        following += occurrence_calls("aggregate", arguments, body)
    structured: Json = {"next": [item.as_json() for item in following]}
    structured["warnings"] = warnings
    if near:
        structured["near"] = near
    if lines or near:
        structured["notice"] = text.NOTICE
    structured["data"] = without_near(body)
    untrusted = (*UNTRUSTED, NEAR_POINTER)
    return Outcome(structured, face(near, following), (), untrusted, request_id, page_reads=reads)


def _near_that_fits(
    arguments: Arguments, near: list[Json], face: Callable[[list[Json], list[NextCall]], str]
) -> tuple[list[Json], list[NextCall]]:
    """As many near values as a short text has room for, with the call for them, else without."""
    first = [near[:number] for number in range(len(near), 0, -1)]
    nothing = list[NextCall]()
    offers = [(shown, near_calls("aggregate", arguments, shown)) for shown in first]
    offers += [(shown, nothing) for shown in (*first, [])]
    return next((o for o in offers if len(face(*o)) <= contract.SHORT_TEXT), offers[-1])


def _payload(arguments: Arguments, body: Json) -> tuple[list[str], str | None]:
    """The lines inside the fence, and the value of the head line when it may stand there."""
    if is_list(body.get("groups")):
        return _group_lines(body, str(arguments["metric"])), None
    value, unit = body.get("value"), as_text(body.get("unit"))
    if not _is_plain_value(value):
        return [f"value {_value_text(value)}"], None
    if unit and not is_plain_unit(unit):
        return [f"unit {_key(unit)}"], _value_text(value)
    return [], in_unit(_value_text(value), unit)


def _head(arguments: Arguments, body: Json, value: str | None) -> str:
    metric, field = arguments["metric"], arguments.get("field")
    measured = f"{metric}({label(field)})" if field else str(metric)
    title = f"aggregate: {measured} of {label(arguments['stream'])}"
    if is_list(body.get("groups")):
        title += _dimension(arguments, body)
    elif value is not None:
        title += f" = {value}"
    facts = _counts(arguments, body)
    separator = "; " if value is not None else ": "
    return f"{title}{separator}{'; '.join(facts)}" if facts else title


def _dimension(arguments: Arguments, body: Json) -> str:
    sides = [label(arguments[name]) for name in ("group_by", "then_by") if name in arguments]
    if body.get("bin") is not None:
        sides[:1] = [f"{side} in steps of {_value_text(body['bin'])}" for side in sides[:1]]
    if "group_by_time" in arguments:
        zone = as_text(body.get("time_zone")) or arguments.get("time_zone") or "UTC"
        name, granularity = label(arguments["group_by_time"]), arguments["granularity"]
        sides.append(f"{name} per {granularity} ({label(zone)})")
    return f" by {' and '.join(sides)}" if sides else ""


def _counts(arguments: Arguments, body: Json) -> list[str]:
    facts: list[str] = []
    groups = body.get("groups")
    if is_list(groups):
        facts.append(text.fact("groups", len(groups)))
    rest = ("group_count", "other_count", "other_value")
    facts += [
        text.fact(name, _value_text(body[name])) for name in rest if body.get(name) is not None
    ]
    values = as_count(body.get("value_count"))
    if values is not None:
        facts.append(text.fact("values", values))
    records = as_count(body.get("filtered_record_count"))
    if records is not None and (is_list(groups) or Metric(arguments["metric"]).takes_field):
        facts.append(text.fact("records", records))
    if body.get("approximate") is True:
        facts.append(text.fact("approximate", True))
    return facts


def _next_calls(arguments: Arguments, body: Json, limit: int | None) -> list[NextCall]:
    cut = as_count(body.get("other_count")) or 0
    shown = as_count(body.get("limit")) or limit or 10
    if cut <= 0 or shown >= 100 or limit != arguments.get("limit"):
        return []
    return [NextCall("aggregate", {**arguments, "limit": 100}, "more groups")]


def _is_plain_value(value: object) -> bool:
    """Whether a single value may stand outside the fence: a number, a moment, or nothing."""
    if isinstance(value, str):
        return bool(ISO_MOMENT.fullmatch(value))
    return value is None or isinstance(value, int | float)


def _value_text(value: object) -> str:
    """A value as JSON, strings cut."""
    if isinstance(value, str):
        if ISO_MOMENT.fullmatch(value):
            return value
        return preview_json(_cut(value))
    return one_line(preview_json(value), contract.GROUP_KEY)


def _cut(value: str) -> str:
    facts = binary_facts(value)
    if facts is not None:
        return facts.placeholder
    if len(value) <= contract.GROUP_KEY:
        return value
    return value[: contract.GROUP_KEY] + "…"


def _group_lines(body: Json, metric: str) -> list[str]:
    """One line for each group, then what the limit left out."""
    zone = as_text(body.get("time_zone"))
    lines = [_line(group, metric, zone) for group in objects_in(body.get("groups"))]
    if not lines:
        return []
    if body.get("other_count") is not None:
        rest = f"other_count = {_value_text(body['other_count'])} (in groups beyond limit)"
        if body.get("other_value") is not None:
            value = in_unit(_value_text(body["other_value"]), as_text(body.get("unit")))
            rest += f"; other_value = {value}"
        lines.append(rest)
    return lines


def _line(group: Json, metric: str, zone: str | None) -> str:
    key = _side(group, "key", "label")
    if "until" in group:
        key += f" until {_value_text(group['until'])}"
    if "then" in group:
        key += f", {_side(group, 'then', 'then_label')}"
    start = _own_start(group, zone)
    moment = f"start {one_line(start, contract.LABEL)}" if start else ""
    if metric == Metric.COUNT.value:
        return f"key {key} = {_value_text(group.get('count'))}" + (f" ({moment})" if moment else "")
    notes = [f"records {_value_text(group.get('count'))}", *([moment] if moment else [])]
    if group.get("value_count", group.get("count")) != group.get("count"):
        notes.insert(0, f"values {_value_text(group['value_count'])}")
    value = in_unit(_value_text(group.get("value")), as_text(group.get("unit")))
    return f"key {key} = {value} ({'; '.join(notes)})"


def _own_start(group: Json, zone: str | None) -> str | None:
    """When a group begins, where its key does not say it: local hours come twice a year."""
    start = as_text(group.get("start"))
    key = as_text(group.get("then")) or as_text(group.get("key")) or ""
    is_told = start and ON_THE_HOUR.fullmatch(start.removeprefix(key))
    return None if is_told and (DAY.fullmatch(key) or zone == "UTC") else start


def _side(group: Json, name: str, label_name: str) -> str:
    """A key of a group, and how people see it."""
    shown = as_text(group.get(label_name))
    key = _key(group.get(name))
    return f"{key} label {_key(shown)}" if shown else key


def _key(value: object) -> str:
    return preview_json(_cut(value)) if isinstance(value, str) else _value_text(value)
