"""What the reference expects of aggregates and stream lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, cast
from zoneinfo import ZoneInfo

from tests.properties.meaning import comparable, first_day, rendered_time
from tests.properties.reference import (
    Error,
    Json,
    Reader,
    Refused,
    Row,
    Source,
    filter_errors,
    filtered,
)
from tests.properties.requests import Ask

Sums = Callable[[Json], Fraction]
ZONES = {"UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata"}


def expected_aggregate(reader: Reader, ask: Ask) -> Json:
    sent = ask.scalars
    metric, name = sent["metric"], sent.get("field")
    if metric == "count" and name is not None:
        raise Refused((400, "invalid_request", "field"))
    if sent.get("time_zone", "UTC") not in ZONES:
        raise Refused((400, "invalid_request", "time_zone"))
    sources = reader.select(sent, ask.stream)
    errors = _aggregate_errors(reader, sources, ask) + filter_errors(reader, sources, ask.filters)
    if errors:
        raise Refused(*errors)
    rows = filtered(reader, sources, ask.filters)
    answer: Json = {"filtered_record_count": len(rows)}
    source = sources[0]
    if "group_by" in sent:
        return answer | _by_value(source, rows, sent, metric, name)
    if "group_by_time" in sent:
        return answer | _by_time(source, rows, sent, metric, name)
    return answer | {"value": _measure(source, rows, metric, name)}


def _aggregate_errors(reader: Reader, sources: list[Source], ask: Ask) -> list[Error]:
    declared = sources[0].raw["query"].get("aggregations", {})
    sent = ask.scalars
    errors: list[Error] = []
    if sent["metric"] == "count" and not declared.get("count"):
        errors.append((400, "invalid_request", "metric"))
    checks = [("field", sent["metric"])] if "field" in sent else []
    checks += [(name, name) for name in ("group_by", "group_by_time") if name in sent]
    for param, kind in checks:
        found = reader.field_errors(sources, sent[param], param)
        if not found and sent[param] not in declared.get(kind, []):
            found = [(400, "invalid_request", param)]
        errors += found
    timed = sent.get("group_by_time")
    dated = timed in sources[0].properties and sources[0].kind(timed or "") == "date"
    if dated and sent["granularity"] in ("minute", "hour"):
        errors.append((400, "invalid_request", "granularity"))
    return errors


def _measure(source: Source, rows: list[Row], metric: str, name: str | None) -> Any:
    if metric == "count":
        return len(rows)
    assert name is not None
    kind = source.kind(name) or ""
    rows = sorted(rows, key=lambda r: (r.key, r.source.connection))
    found = [
        (comparable(row.data[name], kind), row.data[name])
        for row in rows
        if comparable(row.data.get(name), kind) is not None
    ]
    if metric == "sum":
        total = sum((Fraction(repr(value)) for _, value in found), Fraction(0))
        return int(total) if total.denominator == 1 else float(total)
    if metric == "count_distinct":
        return len({point for point, _ in found})
    if not found:
        return None
    extreme = (min if metric == "min" else max)(point for point, _ in found)
    return {"any_of": [value for point, value in found if point == extreme]}


def rank_of(value: Any, kind: str | None) -> Any:
    shown = cast("Json", value)["any_of"][0] if isinstance(value, dict) else value
    return comparable(shown, kind or "integer")


def _exact(rows: list[Row], name: str | None) -> Fraction:
    """The sum as the decimal numbers that were written down."""
    values = [row.data.get(name or "") for row in rows]
    return sum((Fraction(repr(v)) for v in values if v is not None), Fraction(0))


def _grouped(groups: list[Json], metric: str, limit: int, kept: list[Json], sums: Sums) -> Json:
    rest = [group for group in groups if not any(group is each for each in kept)]
    answer: Json = {
        "groups": kept,
        "group_count": len(groups),
        "limit": limit,
        "other_count": sum(group["count"] for group in rest),
    }
    if metric == "sum":
        total = sum((sums(group) for group in rest), Fraction(0))
        answer["other_value"] = {"about": float(total)}
    return answer


def _group(key: Any, source: Source, rows: list[Row], metric: str, name: str | None) -> Json:
    group: Json = {"key": key, "count": len(rows)}
    if metric != "count":
        group["value"] = _measure(source, rows, metric, name)
    return group


def _by_value(
    source: Source, rows: list[Row], sent: dict[str, str], metric: str, name: str | None
) -> Json:
    by: dict[Any, list[Row]] = {}
    for row in rows:
        by.setdefault(row.data.get(sent["group_by"]), []).append(row)
    groups = [_group(key, source, members, metric, name) for key, members in by.items()]
    kind = source.kind(name) if name else None
    kind = kind if metric in ("min", "max") else "integer"
    sign = -1 if metric != "min" else 1

    def sums(group: Json) -> Fraction:
        return _exact(by[group["key"]], name)

    def place(group: Json) -> tuple[Any, ...]:
        value = group["count"] if metric == "count" else group["value"]
        rank = sums(group) if metric == "sum" else rank_of(value, kind)
        if rank is not None and not isinstance(rank, int | float | Fraction):
            rank = rank.toordinal()
        text = json.dumps(group["key"], ensure_ascii=False).encode()
        return (rank is None, sign * (rank or 0), group["key"] is None, text)

    groups.sort(key=place)
    limit = int(sent.get("limit", 10))
    return _grouped(groups, metric, limit, groups[:limit], sums)


def _by_time(
    source: Source, rows: list[Row], sent: dict[str, str], metric: str, name: str | None
) -> Json:
    zone = ZoneInfo(sent.get("time_zone", "UTC"))
    kind = source.kind(sent["group_by_time"]) or ""
    by: dict[Any, list[Row]] = {}
    for row in rows:
        start = _bucket(row.data.get(sent["group_by_time"]), kind, sent["granularity"], zone)
        by.setdefault(start, []).append(row)
    timed = sorted(
        (s for s in by if s is not None), key=lambda s: datetime.fromisoformat(s).timestamp()
    )
    size = 16 if sent["granularity"] in ("minute", "hour") else 10
    groups = {
        start: _group(start[:size] if start else None, source, by[start], metric, name)
        for start in by
    }
    limit = int(sent.get("limit", 10))
    kept = [groups[start] for start in timed[-limit:]] + [groups[s] for s in by if s is None]
    for start, group in groups.items():
        group["start"] = start

    def sums(group: Json) -> Fraction:
        return _exact(by[group["start"]], name)

    return _grouped(list(groups.values()), metric, limit, kept, sums)


def _bucket(value: Any, kind: str, granularity: str, zone: ZoneInfo) -> str | None:
    point = comparable(value, kind)
    if point is None:
        return None
    if kind == "date":
        found = first_day(point, granularity)
        return datetime(found.year, found.month, found.day, tzinfo=zone).isoformat()
    local = datetime.fromtimestamp(point // 10**9, UTC).astimezone(zone)
    if granularity == "minute":
        return local.replace(second=0, microsecond=0).isoformat()
    if granularity == "hour":
        return local.replace(minute=0, second=0, microsecond=0).isoformat()
    found = first_day(local.date(), granularity)
    return datetime(found.year, found.month, found.day, tzinfo=zone).isoformat()


def expected_streams(reader: Reader, ask: Ask) -> list[tuple[str, str, int, str | None]]:
    _, sources = reader.candidates(ask.scalars)
    rows: list[tuple[str, str, int, str | None]] = []
    for source in sources:
        visible = reader.visible(source)
        newest = max((row.emitted_s for row in visible), default=None)
        dated = None if newest is None else rendered_time(newest)
        rows.append((source.connection, source.stream, len(visible), dated))
    return rows
