"""aggregate: one number, or groups, computed by the resource server.

Source: MCP adapter contract 10.3; decision C28.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.arguments import legal_or_none, parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.cleaning import label
from personal_server.mcp_adapter.contract import contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces import text
from personal_server.mcp_adapter.faces.groups import group_lines, is_plain_value, value_text
from personal_server.mcp_adapter.reading import read
from personal_server.mcp_adapter.tools.query_records import filter_query
from personal_server.rs_client.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    compact,
    is_list,
    objects_in,
)
from personal_server.rs_client.port import Path, Query

plain_names = ("metric", "field", "group_by", "group_by_time", "granularity", "time_zone")
untrusted = ("/data/groups/*/key", "/data/groups/*/value", "/data/value")


async def aggregate(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render; a list of groups that does not fit is asked for again, shorter.

    Raises: ToolError.
    """
    asked = parse_arguments(contract().tools["aggregate"], raw, check_shape)
    query = check_shape(asked)
    path = ("v1", "streams", asked["stream"], "aggregate")
    limit = asked.get("limit")
    outcome = await _read(call, asked, path, query, limit, 1)
    for reads in (2, 3):
        groups = len(objects_in(as_object(outcome.structured["data"]).get("groups")))
        if _fits(outcome) or groups <= 1:
            break
        limit = _shorter(outcome, groups) if reads == 2 else 1
        outcome = await _read(call, asked, path, query, limit, reads)
    if len(outcome.text) > budgets.text_aim:
        message = "The groups do not fit, however few are asked for; narrow with `filter`."
        raise ToolError("result_too_large", message, param="group_by", next_call=_ungrouped(asked))
    return outcome


def _ungrouped(asked: dict[str, Any]) -> NextCall | None:
    """The same figure over everything."""
    grouping = {"group_by", "group_by_time", "granularity", "time_zone", "limit"}
    return _legal({name: value for name, value in asked.items() if name not in grouping})


async def _read(
    call: Call, asked: dict[str, Any], path: Path, query: Query, limit: int | None, reads: int
) -> Outcome:
    scope = (("limit", str(limit)),) if limit is not None else ()
    response = await read(call, path, (*query, *scope), asked)
    return _faces(call, asked, as_object(response.body), limit, response.request_id, reads)


def _shorter(outcome: Outcome, groups: int) -> int:
    structured = len(compact(outcome.structured))
    share = min(budgets.text_aim / len(outcome.text), budgets.structured_aim / structured)
    return max(1, min(groups - 1, int(groups * share * 0.9)))


def _fits(outcome: Outcome) -> bool:
    structured = len(compact(outcome.structured))
    return len(outcome.text) <= budgets.text_aim and structured <= budgets.structured_aim


def check_shape(asked: dict[str, Any]) -> Query:
    """The shape checks of this tool and its parameters.

    Raises: ToolError invalid_arguments, invalid_filter.
    """
    refused = _contradiction(asked)
    if refused is not None:
        param, message, dropped = refused
        rest = {name: value for name, value in asked.items() if name not in dropped}
        described = NextCall("schema", {"stream": asked["stream"]})
        advice = _legal(rest) if dropped else described
        raise ToolError("invalid_arguments", message, param=param, next_call=advice)
    conditions = filter_query(asked, _legal)
    plain = tuple((name, asked[name]) for name in plain_names if name in asked)
    scope = tuple((name, asked[name]) for name in ("connection_id",) if name in asked)
    return (*plain, *scope, *conditions)


def _contradiction(asked: dict[str, Any]) -> tuple[str, str, tuple[str, ...]] | None:
    if asked["metric"] != "count" and "field" not in asked:
        return "field", f"The metric {asked['metric']} needs `field`.", ()
    if "group_by" in asked and "group_by_time" in asked:
        message = "`group_by` and `group_by_time` exclude each other."
        return "group_by_time", message, ("group_by_time", "granularity", "time_zone")
    if "group_by_time" in asked and "granularity" not in asked:
        return "granularity", "`group_by_time` needs `granularity`.", ()
    for name in ("granularity", "time_zone"):
        if name in asked and "group_by_time" not in asked:
            message = f"`{name}` goes with `group_by_time` only."
            return name, message, ("granularity", "time_zone")
    return None


def _legal(arguments: dict[str, Any]) -> NextCall | None:
    return legal_or_none(contract().tools["aggregate"], arguments, check_shape)


def _faces(
    call: Call,
    asked: Mapping[str, Any],
    body: Json,
    limit: int | None,
    request_id: str | None,
    reads: int,
) -> Outcome:
    following = _next_calls(asked, body, limit)
    warnings = _warnings(asked, limit)
    blocks, value_fact = _payload(body, asked)
    structured: Json = {"data": body, "warnings": warnings}
    structured["next"] = [item.as_json() for item in following]
    if blocks:
        structured["notice"] = text.notice
    nonce = text.unused_nonce(call.nonce, "\n".join(blocks))
    face = text.joined(
        [_head(asked, body, value_fact)],
        text.warning_lines([*text.server_warnings(body), *warnings]),
        text.unavailable_lines(text.unavailable_of(body)),
        text.freshness_lines(body),
        text.fenced(blocks, nonce),
        text.next_lines(following),
    )
    return Outcome(structured, face, (), untrusted, request_id, page_reads=reads)


def _payload(body: Json, asked: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """The lines inside the fence, and the value of the head line when it may stand there."""
    if is_list(body.get("groups")):
        return group_lines(body, str(asked["metric"])), None
    value = body.get("value")
    if is_plain_value(value):
        return [], value_text(value)
    return [f"value {value_text(value)}"], None


def _head(asked: Mapping[str, Any], body: Json, value: str | None) -> str:
    metric, field = asked["metric"], asked.get("field")
    measured = f"{metric}({label(field)})" if field else str(metric)
    title = f"aggregate: {measured} of {label(asked['stream'])}"
    if is_list(body.get("groups")):
        title += _dimension(asked, body)
    elif value is not None:
        title += f" = {value}"
    facts = [text.fact(name, number) for name, number in _counts(body, asked)]
    separator = "; " if value is not None else ": "
    return f"{title}{separator}{'; '.join(facts)}" if facts else title


def _dimension(asked: Mapping[str, Any], body: Json) -> str:
    if "group_by_time" in asked:
        zone = as_text(body.get("time_zone")) or asked.get("time_zone") or "UTC"
        return f" by {label(asked['group_by_time'])} per {asked['granularity']} ({label(zone)})"
    return f" by {label(asked['group_by'])}" if "group_by" in asked else ""


def _counts(body: Json, asked: Mapping[str, Any]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    groups = body.get("groups")
    if is_list(groups):
        found.append(("groups", len(groups)))
    rest = ("group_count", "other_count", "other_value")
    found += [(name, value_text(body[name])) for name in rest if body.get(name) is not None]
    records = as_count(body.get("filtered_record_count"))
    if records is not None and (is_list(groups) or asked["metric"] != "count"):
        found.append(("records", records))
    if body.get("approximate") is True:
        found.append(("approximate", True))
    return found


def _next_calls(asked: Mapping[str, Any], body: Json, limit: int | None) -> list[NextCall]:
    cut = as_count(body.get("other_count")) or 0
    shown = as_count(body.get("limit")) or limit or 10
    if cut <= 0 or shown >= 100 or limit != asked.get("limit"):
        return []
    return [NextCall("aggregate", {**asked, "limit": 100}, "more groups")]


def _warnings(asked: Mapping[str, Any], limit: int | None) -> list[Json]:
    if limit == asked.get("limit"):
        return []
    return [{"code": "page_shortened", "message": f"shown {limit} groups so that they fit"}]
