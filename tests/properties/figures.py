"""What the reference expects of aggregates and stream lists."""

from __future__ import annotations

import calendar
import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, cast
from zoneinfo import ZoneInfo

from tests.properties.hits import holds_all, searchable
from tests.properties.meaning import comparable, first_day, moment, rendered_time
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
from tests.properties.timeline import common_time, zoned_filters
from tests.properties.worlds import NAMES

NUMBERS = ("integer", "number")
ZONES = {"UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata"}


def expected_aggregate(reader: Reader, ask: Ask) -> Json:
    sent = ask.scalars
    slips = _combination_errors(sent)
    if slips:
        raise Refused(*slips)
    if "across" in sent:
        sources = _taking_part(reader, ask)
    else:
        sources = reader.select(sent, ask.stream)
        errors = _aggregate_errors(reader, sources, ask)
        if errors:
            raise Refused(*errors)
    rows = filtered(reader, sources, zoned_filters(sources[0], ask))
    if "q" in sent:
        rows = [row for row in rows if holds_all(row, sent["q"])]
    answer: Json = {"filtered_record_count": len(rows)}
    sides = _sides(sources, sent, rows)
    if not sides:
        value = _measure(sources[0], rows, sent["metric"], sent.get("field"))
        return answer | {"value": value} | _value_count(sources[0], rows, sent)
    for name in ("then_by", "sort"):
        if name in sent:
            answer[name] = sent[name]
    return answer | _grouped(sources[0], sides, rows, sent)


def _combination_errors(sent: dict[str, str]) -> list[Error]:
    slips = {
        "field": (sent["metric"] == "count") == ("field" in sent),
        "time_zone": sent.get("time_zone", "UTC") not in ZONES,
        "then_by": "then_by" in sent
        and ("group_by_time" in sent or sent.get("group_by") in (None, sent["then_by"])),
        "bin": "bin" in sent and "group_by" not in sent,
        "sort": "sort" in sent and not {"group_by", "group_by_time"} & sent.keys(),
        "across": "across" in sent and "connection_id" in sent,
    }
    return [(400, "invalid_request", name) for name, wrong in slips.items() if wrong]


def _taking_part(reader: Reader, ask: Ask) -> list[Source]:
    sources = reader.select_everywhere(ask.scalars, ask.stream)
    errors = [_aggregate_errors(reader, [source], ask) for source in sources]
    usable = [source for source, found in zip(sources, errors, strict=True) if not found]
    if not usable:
        raise Refused(*errors[0])
    return usable


def _aggregate_errors(reader: Reader, sources: list[Source], ask: Ask) -> list[Error]:
    source, sent = sources[0], ask.scalars
    metric = sent["metric"]
    errors = filter_errors(reader, sources, ask.filters)
    if metric == "count" and not source.raw["query"].get("aggregations", {}).get("count"):
        errors.append((400, "invalid_request", "metric"))
    checks = [("field", _measured(source, metric))] if "field" in sent else []
    checks += [(name, _groupable(source)) for name in ("group_by", "then_by")]
    checks.append(("group_by_time", _declared(source, "group_by_time")))
    for param, usable in checks:
        name = sent.get(param)
        if name is None or (name == "connection_id" and param in ("group_by", "then_by")):
            continue
        found = reader.field_errors(sources, name, param)
        if not found and name not in usable:
            found = [(400, "invalid_request", param)]
        errors += found
    timed = sent.get("group_by_time")
    dated = timed in source.properties and source.kind(timed or "") == "date"
    if dated and sent["granularity"] in ("minute", "hour", "hour_of_day"):
        errors.append((400, "invalid_request", "granularity"))
    stepped = sent.get("group_by", "")
    is_number = stepped in source.properties and source.kind(stepped) in NUMBERS
    if "bin" in sent and not is_number:
        errors.append((400, "invalid_request", "bin"))
    if "q" in sent and not all(searchable(each) for each in sources):
        errors.append((400, "invalid_request", "q"))
    return errors


def _declared(source: Source, kind: str) -> list[str]:
    return source.raw["query"].get("aggregations", {}).get(kind, [])


def _measured(source: Source, metric: str) -> list[str]:
    if metric in ("sum", "min", "max", "count_distinct", "count"):
        return _declared(source, metric) if metric != "count" else []
    named = [n for kind in ("sum", "min", "max") for n in _declared(source, kind)]
    return [n for n in named if source.kind(n) in NUMBERS]


def _groupable(source: Source) -> list[str]:
    searched = source.raw["query"].get("search", {}).get("lexical_fields", [])
    short = [
        name
        for name, declared in source.properties.items()
        if declared.get("x_pdpp_groupable") is not False
        and (
            (
                source.kind(name) in ("boolean", "string", *NUMBERS)
                and name not in (*searched, *source.raw["primary_key"])
            )
            or _lists_strings(declared)
        )
    ]
    return short + _declared(source, "group_by")


def _lists_strings(declared: Json) -> bool:
    return declared.get("items") == {"type": "string"}


# Values -----------------------------------------------------------------------------------------
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
        return _number(_exact(rows, name))
    if metric == "count_distinct":
        return len({point for point, _ in found})
    if not found:
        return None
    if metric == "avg":
        return _number(_exact(rows, name) / len(found))
    points = sorted(point for point, _ in found)
    if metric == "median":
        middle = points[(len(points) - 1) // 2], points[len(points) // 2]
        return _number(sum(Fraction(repr(each)) for each in middle) / Fraction(2))
    if metric.startswith("p"):
        needed = Fraction(int(metric[1:]) * len(points), 100)
        return next(p for p in points if sum(q <= p for q in points) >= needed)
    extreme = (min if metric == "min" else max)(point for point, _ in found)
    return {"any_of": [value for point, value in found if point == extreme]}


def _value_count(source: Source, rows: list[Row], sent: dict[str, str]) -> Json:
    """Over how many values a sum, a mean or a percentile is."""
    metric, name = sent["metric"], sent.get("field", "")
    if metric not in ("sum", "avg", "median") and not re.fullmatch(r"p\d+", metric):
        return {}
    kind = source.kind(name) or ""
    found = [row for row in rows if comparable(row.data.get(name), kind) is not None]
    return {"value_count": len(found)}


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _exact(rows: list[Row], name: str | None) -> Fraction:
    """The sum as the decimal numbers that were written down."""
    values = [row.data.get(name or "") for row in rows]
    return sum((Fraction(repr(v)) for v in values if v is not None), Fraction(0))


def _rank(source: Source, rows: list[Row], metric: str, name: str | None) -> Any:
    """What groups are ordered by, without rounding."""
    if metric == "sum":
        return _exact(rows, name)
    value = _measure(source, rows, metric, name)
    if metric in ("avg", "median") and value is not None:
        return Fraction(value)
    shown = cast("Json", value)["any_of"][0] if isinstance(value, dict) else value
    is_date = metric in ("min", "max") and name is not None
    rank = comparable(shown, (source.kind(name) if is_date and name else None) or "integer")
    return rank.toordinal() if isinstance(rank, date) else rank


# Groups -----------------------------------------------------------------------------------------
@dataclass
class Side:
    """A way to part rows: `point` is what they have in common, `shown` how it is answered."""

    param: str
    point: Callable[[Row], Any]
    shown: Callable[[Any], Any]
    width: Fraction | None = None
    label: Callable[[Any], str | None] | None = None
    listed: str | None = None

    def points(self, row: Row) -> list[Any]:
        """All that a row has in common with others: of a list each string."""
        if self.listed is None:
            return [self.point(row)]
        return sorted(set(row.data.get(self.listed) or ())) or [None]

    @property
    def is_line(self) -> bool:
        return self.param == "line"

    @property
    def is_natural(self) -> bool:
        return self.param in ("line", "turn") or self.width is not None


def _sides(sources: list[Source], sent: dict[str, str], rows: list[Row]) -> list[Side]:
    sides = [_field_side(sources, sent, n, rows) for n in ("group_by", "then_by") if n in sent]
    return sides + ([_time_side(sources[0], sent)] if "group_by_time" in sent else [])


def _field_side(sources: list[Source], sent: dict[str, str], param: str, rows: list[Row]) -> Side:
    name = sent[param]
    if name == "connection_id":
        return Side(param, lambda row: row.source.connection, lambda p: p, label=NAMES.get)
    kind = sources[0].kind(name) or ""
    if _lists_strings(sources[0].properties[name]):
        return Side(param, lambda _: None, lambda p: p, listed=name)

    def point(row: Row) -> Any:
        return comparable(row.data.get(name), kind)

    if param == "group_by" and "bin" in sent:
        width = Fraction(sent["bin"]) or _width([point(row) for row in rows], kind)

        def low(row: Row) -> Any:
            value = point(row)
            return None if value is None else math.floor(Fraction(repr(value)) / width) * width

        return Side(param, low, lambda p: None if p is None else _number(p), width)

    def shown(found: Any) -> Any:
        return next(row.data.get(name) for row in rows if point(row) == found)

    declared = sources[0].properties[name]
    named = [declared.get(f"x_pdpp_{each}_field") for each in ("label", "mark")]
    label, mark = [
        each if all(each in source.fields for source in sources) else None for each in named
    ]

    def said(found: Any) -> str | None:
        texts = [row.data.get(label) for row in rows if label and point(row) == found is not None]
        known = [text for text in texts if text is not None]
        seen = min(known, key=lambda text: (-known.count(text), text), default=None)
        marks = {row.data.get(mark) for row in rows if mark and point(row) == found}
        if len(marks) != 1 or marks <= {None, "", "person"}:
            return seen
        seen = seen or (found if isinstance(found, str) else None)
        return " ".join([*([seen] if seen else []), f"({marks.pop()})"])

    return Side(param, point, shown, label=said)


def _width(values: list[Any], kind: str) -> Fraction:
    known = [Fraction(repr(value)) for value in values if value is not None]
    span = max(known, default=Fraction(0)) - min(known, default=Fraction(0))
    if span == 0:
        return Fraction(1)
    powers = range(0 if kind == "integer" else -30, 30)
    widths = (digit * Fraction(10) ** power for power in powers for digit in (1, 2, 5))
    return next(width for width in widths if width * 20 >= span)


def _time_side(source: Source, sent: dict[str, str]) -> Side:
    zone = ZoneInfo(sent.get("time_zone", "UTC"))
    name, granularity = sent["group_by_time"], sent["granularity"]
    kind = source.kind(name) or ""

    def turn(row: Row) -> int | None:
        found = comparable(row.data.get(name), kind)
        if found is None:
            return None
        local = found if kind == "date" else datetime.fromtimestamp(found // 10**9, UTC)
        if isinstance(local, datetime):
            local = local.astimezone(zone)
            if granularity == "hour_of_day":
                return local.hour
        return local.weekday()

    if granularity == "weekday":
        names = dict(enumerate(calendar.day_name))
        return Side("turn", turn, lambda p: None if p is None else names[p].lower())
    if granularity == "hour_of_day":
        return Side("turn", turn, lambda p: None if p is None else f"{p:02d}:00")
    size = 16 if granularity in ("minute", "hour") else 10

    def start(row: Row) -> Any:
        text = _bucket(row.data.get(name), kind, granularity, zone)
        return None if text is None else (datetime.fromisoformat(text).timestamp(), text)

    return Side("line", start, lambda p: None if p is None else p[1][:size])


def _grouped(source: Source, sides: list[Side], rows: list[Row], sent: dict[str, str]) -> Json:
    by: dict[Any, list[Row]] = {}
    for row in rows:
        for points in itertools.product(*(side.points(row) for side in sides)):
            by.setdefault(points, []).append(row)
    metric, name = sent["metric"], sent.get("field")
    ranks = {points: _rank(source, members, metric, name) for points, members in by.items()}
    wide = len(sides) > 1 or "group_by_time" in sent or "bin" in sent
    limit = int(sent.get("limit", 100 if wide else 10))
    kept = _kept(sides, ranks, sent, limit)
    rest = [points for points in by if points not in kept]
    answer: Json = {
        "groups": [_group(source, sides, points, by[points], sent) for points in kept],
        "group_count": len(by),
        "limit": limit,
        "other_count": sum(len(by[points]) for points in rest),
    }
    if metric == "sum":
        total = sum((_exact(by[points], name) for points in rest), Fraction(0))
        answer["other_value"] = {"about": float(total)}
    widths = [side.width for side in sides if side.width is not None]
    return answer | ({"bin": _number(widths[0])} if widths else {})


def _group(
    source: Source, sides: list[Side], points: Any, rows: list[Row], sent: dict[str, str]
) -> Json:
    group: Json = {"count": len(rows)}
    for side, point, key, label in zip(
        sides, points, ("key", "then"), ("label", "then_label"), strict=False
    ):
        group[key] = side.shown(point)
        text = side.label(point) if side.label is not None else None
        if text is not None and text:
            group[label] = text
        if side.is_line:
            group["start"] = None if point is None else point[1]
        if side.width is not None:
            group["until"] = None if point is None else _number(point + side.width)
    if sent["metric"] != "count":
        group["value"] = _measure(source, rows, sent["metric"], sent.get("field"))
    return group | _value_count(source, rows, sent)


def _kept(sides: list[Side], ranks: dict[Any, Any], sent: dict[str, str], limit: int) -> list[Any]:
    """The groups that are returned: orders that matter less are made first."""
    lines = [n for n, side in enumerate(sides) if side.is_line]
    times = [n for n, side in enumerate(sides) if side.param in ("line", "turn")]
    texts = sorted(ranks, key=lambda points: _texts(sides, points))
    sort = sent.get("sort")
    if sort is not None:
        down = sort.startswith("-")
        if sort.endswith("value"):
            return _nulls_last(texts, ranks.__getitem__, down)[:limit]
        for n in sorted(range(len(sides)), key=lambda n: (n in times, -n)):
            texts = _nulls_last(texts, lambda points, n=n: points[n], down)
        return texts[:limit]
    if len(sides) == 1 and sides[0].is_natural:
        ordered = _nulls_last(texts, lambda points: points[0], down=False)
        if not lines:
            return ordered[:limit]
        present = [points for points in ordered if points[0] is not None]
        return present[-limit:] + [points for points in ordered if points[0] is None]
    ranked = _nulls_last(texts, ranks.__getitem__, sent["metric"] != "min")
    if not lines:
        return ranked[:limit]
    newest = _nulls_last(ranked, lambda points: points[lines[0]], down=True)[:limit]
    kept = [points for points in ranked if points in newest]
    return _nulls_last(kept, lambda points: points[lines[0]], down=False)


def _texts(sides: list[Side], points: Any) -> list[Any]:
    """Ties: by JSON text, times and steps by their value, nothing last."""
    found: list[Any] = []
    for side, point in zip(sides, points, strict=True):
        text = json.dumps(side.shown(point), ensure_ascii=False).encode()
        found += [point is None, (0 if point is None else point) if side.is_natural else text]
        if side.is_line and point is None:
            found[-1] = (0, "")
    return found


def _nulls_last(groups: list[Any], value: Callable[[Any], Any], down: bool) -> list[Any]:
    present = [points for points in groups if value(points) is not None]
    absent = [points for points in groups if value(points) is None]
    return sorted(present, key=value, reverse=down) + absent


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


def expected_glance(reader: Reader, sources: list[Source]) -> Json:
    """6.4: how many records of a row are visible, and from when to when by a granted time."""
    rows = [row for source in sources for row in reader.visible(source)]
    found: Json = {"records": len(rows)}
    time, (first, *_) = common_time(sources), sources
    is_bounded = first.since is not None or first.until is not None
    if time is None or (is_bounded and first.raw["consent_time_field"] != time):
        return found
    times = [at for row in rows if (at := moment(row.data.get(time))) is not None]
    ends = {"earliest": min(times), "latest": max(times)} if times else {}
    return {**found, "time_field": time, **ends}
