"""What the reference expects of each kind of request, as bodies to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.properties.meaning import moment
from tests.properties.reference import (
    Error,
    Json,
    Reader,
    Refused,
    Row,
    Source,
    filter_errors,
    filtered,
    in_order,
    lowered,
)
from tests.properties.requests import Ask
from tests.properties.timeline import bounds, common_time, is_within


@dataclass
class Listing:
    """The whole list; a page is a stretch of it."""

    records: list[Json]
    count: Json
    window: Json | None


def expected_list(reader: Reader, ask: Ask) -> Listing:
    bounds(ask)
    _check_cut(ask)
    sources = reader.select(ask.scalars, ask.stream)
    errors = filter_errors(reader, sources, ask.filters)
    ranged = [name for name in ("since", "until") if name in ask.scalars]
    if ranged and common_time(sources) is None:
        errors.append((400, "invalid_request", ranged[0]))
    errors += _sort_errors(reader, sources, ask.scalars)
    errors += _cut_errors(reader, sources, ask)
    errors += _expand_errors(reader, sources, ask)
    if errors:
        raise Refused(*errors)
    rows = filtered(reader, sources, ask.filters)
    if ranged:
        rows = [row for row in rows if is_within(row, ask, common_time(sources))]
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
            side = relation.get("foreign_key_on", "target")
            holders = {"self": [source], "target": [child], "both": [source, child]}[side]
            granted = all(relation["foreign_key"] in holder.fields for holder in holders)
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
    side = relation.get("foreign_key_on", "target")
    value = row.key if side == "target" else row.data.get(key)
    rows = [
        found
        for found in reader.visible(child)
        if value is not None and value == (found.key if side == "self" else found.data.get(key))
    ]
    cursor = child.raw.get("cursor_field")
    rows = in_order(rows, cursor if cursor in child.fields else None, False)
    records = [reader.record(found) for found in rows]
    if not many:
        return records[0] if records else None
    declared = next(e for e in row.source.raw["query"]["expand"] if e["name"] == name)
    limit: int = dict(ask.limits).get(name) or declared["default_limit"]
    answer: Json = {"object": "list", "data": records[:limit], "has_more": len(records) > limit}
    if len(records) > limit:
        answer["url"] = (
            f"/v1/streams/{child.stream}/records?filter%5B{key}%5D={quote(str(value))}"
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
        match = lowered(value).find(lowered(query))
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
