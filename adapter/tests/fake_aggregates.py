"""Aggregates of the recording server: one number, or groups of it."""

from __future__ import annotations

from typing import Any

from adapter.tests.fake_wire import Answer, Json, Request


def aggregate_answer(stream: str, rows: list[Json], request: Request) -> Answer:
    """The answer over the payloads that passed."""
    metric = request.values("metric")[0]
    name = (request.values("field") or [""])[0]
    body: Json = {
        "object": "aggregation",
        "stream": stream,
        "metric": metric,
        "field": name or None,
        "approximate": False,
        "filtered_record_count": len(rows),
    }
    group = (request.values("group_by") or request.values("group_by_time") or [""])[0]
    if not group:
        body["value"] = _metric(metric, name, rows)
    else:
        body |= _groups(metric, name, group, rows, int((request.values("limit") or ["10"])[0]))
    return Answer(200, {**body, "meta": {"count": {"kind": "none"}, "warnings": []}})


def _metric(metric: str, name: str, rows: list[Json]) -> Any:
    values = [row[name] for row in rows if row.get(name) is not None] if name else []
    match metric:
        case "count":
            return len(rows)
        case "sum":
            return sum(values)
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case _:
            return len(set(values))


def _groups(metric: str, name: str, group: str, rows: list[Json], limit: int) -> Json:
    keyed: dict[Any, list[Json]] = {}
    for row in rows:
        keyed.setdefault(row.get(group), []).append(row)
    ordered = sorted(keyed.items(), key=lambda item: -len(item[1]))
    groups = [
        {"key": key, "count": len(held)}
        | ({} if metric == "count" else {"value": _metric(metric, name, held)})
        for key, held in ordered[:limit]
    ]
    other = sum(len(held) for _, held in ordered[limit:])
    body: Json = {
        "groups": groups,
        "group_count": len(ordered),
        "limit": limit,
        "other_count": other,
    }
    if metric == "sum":
        body["other_value"] = sum(_metric("sum", name, held) for _, held in ordered[limit:])
    return body
