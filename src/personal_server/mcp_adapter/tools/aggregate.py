"""aggregate: one number, or groups, computed by the resource server.

Source: docs/contract/mcp-adapter.md 10.3; docs/decisions.md C28.
"""

import re
from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter import contract
from personal_server.mcp_adapter.arguments import legal_or_none, parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces import text
from personal_server.mcp_adapter.faces.truncation import binary_facts
from personal_server.mcp_adapter.reads import read
from personal_server.mcp_adapter.safe_text import clean_json, label, one_line
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

# Groups of an aggregate as text: every group, its key as JSON, its count and value.
#
# Source: docs/contract/mcp-adapter.md 8.2, 10.3; docs/decisions.md C28.


iso_moment = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


def is_plain_value(value: object) -> bool:
    """Whether a single value may stand outside the fence: a number, a moment, or nothing."""
    if isinstance(value, str):
        return bool(iso_moment.fullmatch(value))
    return value is None or isinstance(value, int | float)


def value_text(value: object) -> str:
    """A value as JSON, strings cut."""
    if isinstance(value, str):
        if iso_moment.fullmatch(value):
            return value
        return clean_json(_cut(value))
    return one_line(clean_json(value), contract.group_key)


def _cut(value: str) -> str:
    facts = binary_facts(value)
    if facts is not None:
        return facts.placeholder
    if len(value) <= contract.group_key:
        return value
    return value[: contract.group_key] + "…"


def group_lines(body: Json, metric: str) -> list[str]:
    """One line for each group, then what the limit left out."""
    lines = [_line(group, metric) for group in objects_in(body.get("groups"))]
    if not lines:
        return []
    if body.get("other_count") is not None:
        rest = f"other_count = {value_text(body['other_count'])} (in groups beyond limit)"
        if body.get("other_value") is not None:
            rest += f"; other_value = {value_text(body['other_value'])}"
        lines.append(rest)
    return lines


def _line(group: Json, metric: str) -> str:
    key = _key(group.get("key"))
    start = as_text(group.get("start"))
    moment = f"start {one_line(start, contract.label)}" if start else ""
    if metric == "count":
        return f"key {key} = {value_text(group.get('count'))}" + (f" ({moment})" if moment else "")
    notes = [f"records {value_text(group.get('count'))}", *([moment] if moment else [])]
    return f"key {key} = {value_text(group.get('value'))} ({'; '.join(notes)})"


def _key(value: object) -> str:
    return clean_json(_cut(value)) if isinstance(value, str) else value_text(value)


plain_names = ("metric", "field", "group_by", "group_by_time", "granularity", "time_zone")
untrusted = ("/data/groups/*/key", "/data/groups/*/value", "/data/value")


async def aggregate(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render; a list of groups that does not fit is asked for again, shorter.

    Raises: ToolError.
    """
    asked = parse_arguments(published_contract().tools["aggregate"], raw, check_shape)
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
    if len(outcome.text) > contract.text_aim:
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
    share = min(contract.text_aim / len(outcome.text), contract.structured_aim / structured)
    return max(1, min(groups - 1, int(groups * share * 0.9)))


def _fits(outcome: Outcome) -> bool:
    structured = len(compact(outcome.structured))
    return len(outcome.text) <= contract.text_aim and structured <= contract.structured_aim


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
    return legal_or_none(published_contract().tools["aggregate"], arguments, check_shape)


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
