"""What the reference expects of each kind of request, as bodies to compare with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from tests.properties.reference import (
    Error,
    Json,
    Reader,
    Refused,
    Row,
    Source,
    bm25,
    comparable,
    filter_errors,
    filter_test,
    filtered,
    first_day,
    hits_in,
    in_order,
    letters,
    moment,
    rendered_time,
    terms_of,
)
from tests.properties.requests import Ask
from tests.properties.worlds import DATED

Sums = Callable[[Json], Fraction]
ZONES = {"UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata"}


@dataclass
class Listing:
    """The whole list; a page is a stretch of it."""

    records: list[Json]
    count: Json
    window: Json | None


def expected_list(reader: Reader, ask: Ask) -> Listing:
    _check_cut(ask)
    sources = reader.select(ask.scalars, ask.stream)
    errors = filter_errors(reader, sources, ask.filters)
    errors += _sort_errors(reader, sources, ask.scalars)
    errors += _cut_errors(reader, sources, ask)
    errors += _expand_errors(reader, sources, ask)
    if errors:
        raise Refused(*errors)
    rows = filtered(reader, sources, ask.filters)
    name, down = _order(sources, ask.scalars)
    rows = in_order(rows, name, down)
    records = [_expanded(reader, ask, row) for row in rows]
    counted = ask.scalars.get("count", "none") != "none"
    count: Json = {"kind": "exact", "value": len(rows)} if counted else {"kind": "none"}
    window = _span(sources, rows) if "window" in ask.scalars else None
    return Listing(records, count, window)


def _check_cut(ask: Ask) -> None:
    if ask.fields and "view" in ask.scalars:
        raise Refused((400, "invalid_request", "view"))


def _order(sources: list[Source], scalars: dict[str, str]) -> tuple[str | None, bool]:
    sort, order = scalars.get("sort"), scalars.get("order")
    if sort is not None:
        return sort.lstrip("-"), sort.startswith("-")
    cursor = sources[0].raw.get("cursor_field")
    if cursor is None or any(cursor not in s.fields for s in sources):
        return None, order == "desc"
    return cursor, order != "asc"


def _sort_errors(reader: Reader, sources: list[Source], scalars: dict[str, str]) -> list[Error]:
    sort, order = scalars.get("sort"), scalars.get("order")
    if sort is None:
        return []
    name = sort.lstrip("-")
    errors = reader.field_errors(sources, name, "sort")
    if errors:
        return errors
    raw = sources[0].raw
    sortable = {raw.get("cursor_field"), raw.get("consent_time_field")}
    sortable |= set(raw["query"].get("range_filters", {}))
    contradicts = order is not None and (order == "desc") != sort.startswith("-")
    return [(400, "invalid_sort", "sort")] if name not in sortable or contradicts else []


def _cut_errors(reader: Reader, sources: list[Source], ask: Ask) -> list[Error]:
    errors = [e for name in ask.fields for e in reader.field_errors(sources, name, "fields")]
    view = ask.scalars.get("view")
    if view is not None:
        for source in sources:
            named = _view(source, view)
            if not named & set(source.fields):
                errors.append((400, "invalid_request", "view"))
    return errors


def _view(source: Source, view: str) -> set[str]:
    views = {v["id"]: set(v["fields"]) for v in source.raw.get("views", [])}
    return views.get(view, set())


def _shown(source: Source, ask: Ask) -> set[str] | None:
    if "view" in ask.scalars:
        return _view(source, ask.scalars["view"])
    return set(ask.fields) or None


# 7.5
def _relations(ask: Ask) -> tuple[str, ...]:
    return ask.expand or tuple(name for name, _ in ask.limits)


def _expand_errors(reader: Reader, sources: list[Source], ask: Ask) -> list[Error]:
    errors: list[Error] = []
    declared = {e["name"]: e for e in sources[0].raw["query"].get("expand", [])}
    for name, limit in ask.limits:
        param = f"expand_limit[{name}]"
        if (ask.expand and name not in ask.expand) or (
            name in declared and not 1 <= limit <= declared[name].get("max_limit", 0)
        ):
            errors.append((400, "invalid_expand", param))
    for name in _relations(ask):
        if name not in declared:
            errors.append((400, "invalid_expand", None))
            continue
        reasons = [_child(reader, source, name)[1] for source in sources]
        if None in reasons:
            continue
        if "field" in reasons:
            errors.append((403, "field_not_granted", "expand"))
        if "stream" in reasons:
            errors.append((403, "grant_stream_not_allowed", "expand"))
    return errors


def _relation(source: Source, name: str) -> Json:
    return next(r for r in source.raw["relationships"] if r["name"] == name)


def _child(reader: Reader, source: Source, name: str) -> tuple[Source | None, str | None]:
    relation = _relation(source, name)
    for child in reader.authority.sources:
        place = (child.connection, child.grant, child.stream)
        if place == (source.connection, source.grant, relation["stream"]):
            holder = source if relation.get("foreign_key_on") == "self" else child
            granted = relation["foreign_key"] in holder.fields
            return (child, None) if granted else (None, "field")
    return None, "stream"


def _expanded(reader: Reader, ask: Ask, row: Row) -> Json:
    record = reader.record(row, _shown(row.source, ask))
    names = _relations(ask)
    if names:
        record["expanded"] = {name: _children(reader, ask, row, name) for name in names}
    return record


def _children(reader: Reader, ask: Ask, row: Row, name: str) -> Any:
    relation = _relation(row.source, name)
    many = relation["cardinality"] == "has_many"
    child, _ = _child(reader, row.source, name)
    if child is None:
        return {"object": "list", "data": [], "has_more": False} if many else None
    key = relation["foreign_key"]
    own = relation.get("foreign_key_on") == "self"
    rows = [
        found
        for found in reader.visible(child)
        if (found.key == row.data.get(key) if own else found.data.get(key) == row.key)
    ]
    cursor = child.raw.get("cursor_field")
    rows = in_order(rows, cursor if cursor in child.fields else None, False)
    records = [reader.record(found) for found in rows]
    if not many:
        return records[0] if records else None
    declared = next(e for e in row.source.raw["query"]["expand"] if e["name"] == name)
    limit: int = dict(ask.limits).get(name) or declared["default_limit"]
    answer: Json = {
        "object": "list",
        "data": records[:limit],
        "has_more": len(records) > limit,
    }
    if len(records) > limit:
        answer["url"] = (
            f"/v1/streams/{child.stream}/records?filter%5B{key}%5D={quote(row.key)}"
            f"&order=asc&connection_id={child.connection}"
        )
    return answer


def _span(sources: list[Source], rows: list[Row]) -> Json:
    name = sources[0].raw.get("consent_time_field")
    granted = name is not None and all(name in s.fields for s in sources)
    dated = [row.data[name] for row in rows if granted and name in row.data]
    instants = [point for text in dated if (point := moment(text)) is not None]
    return {
        "total": len(rows),
        "earliest_at": min(instants, default=None),
        "latest_at": max(instants, default=None),
    }


# 9 --------------------------------------------------------------------------------------------
def the_one(reader: Reader, sources: list[Source], key: str | None) -> Row:
    rows = [row for source in sources for row in reader.visible(source) if row.key == key]
    if not rows:
        raise Refused((404, "not_found", None))
    if len(rows) > 1:
        holders = {row.source.connection for row in rows}
        raise Refused((409, "ambiguous_connection", "connection_id"), connections=holders)
    return rows[0]


def expected_record(reader: Reader, ask: Ask) -> Json:
    sources = reader.select(ask.scalars, ask.stream)
    errors = _cut_errors(reader, sources, ask) + _expand_errors(reader, sources, ask)
    if errors:
        raise Refused(*errors)
    return _expanded(reader, ask, the_one(reader, sources, ask.key))


def expected_window(reader: Reader, ask: Ask) -> Json:
    sent = ask.scalars
    query = sent.get("q")
    if query is None and ("before_chars" in sent or "after_chars" in sent):
        raise Refused((400, "invalid_window", None))
    sources = reader.select(sent, ask.stream)
    name = sent["field"]
    errors = reader.field_errors(sources, name, "field")
    if errors:
        raise Refused(*errors)
    row = the_one(reader, sources, ask.key)
    value = row.data.get(name)
    if value is None:
        raise Refused((404, "field_not_found", "field"))
    if not isinstance(value, str):
        raise Refused((422, "field_not_text", "field"))
    limit = int(sent.get("limit_chars", 4096))
    match: int | None = None
    if query is None:
        start = min(int(sent.get("offset_chars", 0)), len(value))
    else:
        match = _lowered(value).find(_lowered(query))
        if match < 0:
            raise Refused((404, "query_not_found", "q"))
        before, after = sent.get("before_chars"), sent.get("after_chars")
        if "limit_chars" not in sent and (before or after):
            limit = min(16384, int(before or 0) + len(query) + int(after or 0))
        room = max(0, limit - len(query))
        lead = room // 2
        if before is not None:
            lead = min(int(before), room)
        elif after is not None:
            lead = 0
        start = max(0, match - lead)
    text = value[start : start + limit]
    end = start + len(text)
    more = end < len(value)
    return {
        "text": text,
        "start_chars": start,
        "end_chars": end,
        "total_chars": len(value),
        "limit_chars": limit,
        "complete": start == 0 and not more,
        "has_more": more,
        "next_offset_chars": end if more else None,
        "previous_offset_chars": max(0, start - limit) or 0 if start else None,
        "match_start_chars": match,
        "match_end_chars": None if match is None or query is None else match + len(query),
    }


def _lowered(text: str) -> str:
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


# 10 -------------------------------------------------------------------------------------------
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


# 11 -------------------------------------------------------------------------------------------
@dataclass
class Found:
    """One expected hit."""

    row: Row
    score: float
    matched: set[str]


def expected_search(reader: Reader, ask: Ask) -> list[Found]:
    _, sources = reader.candidates(ask.scalars)
    for name in ask.streams:
        if reader.authority.kind == "owner":
            if not any(s.stream == name for s in reader.authority.sources):
                raise Refused((404, "not_found", "streams"))
        elif name not in reader.authority.named:
            raise Refused((403, "grant_stream_not_allowed", "streams"))
    if ask.filters and len(ask.streams) != 1:
        raise Refused((400, "invalid_request", "filter"))
    sources = [s for s in sources if not ask.streams or s.stream in ask.streams]
    sources = [s for s in sources if _searchable(s)]
    usable: list[Source] = []
    errors: list[Error] = []
    for source in sources:
        found = filter_errors(reader, [source], ask.filters)
        errors += found
        if not found:
            usable.append(source)
    if errors and not usable:
        raise Refused(*errors)
    return _ranked(reader, usable, ask)


def _searchable(source: Source) -> list[str]:
    named = source.raw["query"].get("search", {}).get("lexical_fields", [])
    return [name for name in named if name in source.fields]


def _ranked(reader: Reader, sources: list[Source], ask: Ask) -> list[Found]:
    terms = terms_of(ask.scalars["q"])
    frequencies = [0] * len(terms)
    matching: list[tuple[Row, list[int], int, set[str]]] = []
    for source in sources:
        tests = [(n, filter_test(source, n, op, text)) for n, op, text in ask.filters]
        title = next(
            (n for n, p in source.properties.items() if p.get("x_pdpp_role") == "primary-title"),
            None,
        )
        for row in reader.visible(source):
            words = {
                n: letters(row.data[n]) for n in _searchable(source) if row.data.get(n) is not None
            }
            counts = [sum(hits_in(w, term) for w in words.values()) for term in terms]
            for i, count in enumerate(counts):
                frequencies[i] += count > 0
            if not all(counts) or not all(test(row.data.get(n)) for n, test in tests):
                continue
            doubled = words.get(title or "", [])
            weighted = [c + hits_in(doubled, t) for c, t in zip(counts, terms, strict=True)]
            fields = {n for n, w in words.items() if any(hits_in(w, t) for t in terms)}
            matching.append((row, weighted, sum(map(len, words.values())), fields))
    found = [
        Found(row, bm25(weighted, length, frequencies), fields)
        for row, weighted, length, fields in matching
    ]
    return sorted(found, key=_hit_place)


def _hit_place(hit: Found) -> tuple[Any, ...]:
    row = hit.row
    text = row.data.get(DATED.get(row.source.stream, ""))
    at = moment(text) if text is not None else None
    when = row.emitted_s * 10**9 if at is None else at
    return (hit.score, -when, row.source.connection, row.source.stream, row.key)


def first_page(hits: list[Found], limit: int) -> list[Found]:
    best: dict[str, Found] = {}
    for hit in hits:
        best.setdefault(hit.row.source.connection, hit)
    if len(best) > limit:
        return hits[:limit]
    chosen = list(best.values())
    for hit in hits:
        if len(chosen) >= limit:
            break
        if not any(hit is each for each in chosen):
            chosen.append(hit)
    return [hit for hit in hits if any(hit is each for each in chosen)]


# 6.5 ------------------------------------------------------------------------------------------
def expected_streams(reader: Reader, ask: Ask) -> list[tuple[str, str, int, str | None]]:
    _, sources = reader.candidates(ask.scalars)
    rows: list[tuple[str, str, int, str | None]] = []
    for source in sources:
        visible = reader.visible(source)
        newest = max((row.emitted_s for row in visible), default=None)
        dated = None if newest is None else rendered_time(newest)
        rows.append((source.connection, source.stream, len(visible), dated))
    return rows
