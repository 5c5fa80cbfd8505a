"""What the reference expects of time lines and ranges of time: docs/contract/resource-server.md
7.9."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.properties.meaning import day, moment
from tests.properties.reference import Filters, Json, Reader, Refused, Row, Source
from tests.properties.requests import Ask

DAY_NS = 86_400 * 10**9


def time_of(source: Source) -> str | None:
    """The field that says when something was, if it is granted and can be sorted by."""
    role = [n for n, p in source.properties.items() if p.get("x_pdpp_role") == "event-time"]
    raw = source.raw
    consent = raw.get("consent_time_field")
    sortable = {raw.get("cursor_field"), consent, *raw["query"].get("range_filters", {})}
    usable = [n for n in (*role, consent) if n in source.fields and n in sortable]
    return usable[0] if usable else None


def common_time(sources: list[Source]) -> str | None:
    """The same of several sources of one stream: a field that all of them grant."""
    role = [n for n, p in sources[0].properties.items() if p.get("x_pdpp_role") == "event-time"]
    for name in (*role, sources[0].raw.get("consent_time_field")):
        one = [time_of(replace(source, fields=(name or "",))) for source in sources]
        if all(name in source.fields for source in sources) and None not in one:
            return name
    return None


def bounds(ask: Ask) -> tuple[int | None, int | None]:
    """The range that was asked for, in nanoseconds."""
    points: list[int | None] = []
    for name in ("since", "until"):
        text = ask.scalars.get(name)
        point = moment(text)
        if text is not None and point is None:
            raise Refused((400, "invalid_request", name))
        points.append(point)
    return points[0], points[1]


def is_within(row: Row, ask: Ask, name: str | None = None) -> bool:
    """Whether the time of a record lies in the range that was asked for."""
    since, until = bounds(ask)
    name = time_of(row.source) if name is None else name
    at = None if name is None else moment(row.data.get(name))
    if name is None or at is None:
        return False
    # the day that a range begins in lasts
    over = at + DAY_NS if row.source.kind(name) == "date" else at + 1
    return (since is None or since < over) and (until is None or at < until)


def zoned_filters(source: Source, ask: Ask) -> Filters:
    """The conditions, where bare days of a zone are the instants at which they begin or end."""
    zone = ask.scalars.get("time_zone", "UTC")
    return tuple(
        (name, operator, _in_zone(operator, text, zone))
        if operator in ("gte", "gt", "lte", "lt") and source.kind(name) == "date-time"
        else (name, operator, text)
        for name, operator, text in ask.filters
    )


def _in_zone(operator: str, text: str, zone: str) -> str:
    whole = day(text)
    if whole is None:
        return text
    after = operator in ("gt", "lte")
    begun = whole + timedelta(days=after)
    local = datetime(begun.year, begun.month, begun.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    local -= timedelta(microseconds=after)
    return f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond:06}{'999' if after else '000'}Z"


def instant_of(row: Row) -> int | None:
    name = time_of(row.source)
    return None if name is None else moment(row.data.get(name))


def named_sources(reader: Reader, ask: Ask) -> list[Source]:
    """The sources of the named streams; of all without any."""
    _, sources = reader.candidates(ask.scalars)
    for name in ask.streams:
        if reader.authority.kind == "owner":
            if not any(s.stream == name for s in reader.authority.sources):
                raise Refused((404, "not_found", "streams"))
        elif name not in reader.authority.named:
            raise Refused((403, "grant_stream_not_allowed", "streams"))
    return [s for s in sources if not ask.streams or s.stream in ask.streams]


def expected_timeline(reader: Reader, ask: Ask) -> list[Json]:
    """All entries, in order."""
    bounds(ask)
    rows = [row for s in named_sources(reader, ask) for row in reader.visible(s)]
    placed = [
        ((instant_of(row), row.key, row.source.connection, row.source.stream), row)
        for row in rows
        if is_within(row, ask)
    ]
    placed.sort(key=lambda each: each[0], reverse=ask.scalars.get("order", "desc") == "desc")
    return [entry_of(reader, row) for _, row in placed]


def timeless(reader: Reader, ask: Ask) -> set[str]:
    """The streams that cannot take part."""
    _, selected = reader.candidates(ask.scalars)
    held = {source.stream for source in selected}
    absent = set(ask.streams) - held if held else set[str]()
    return absent | {s.stream for s in named_sources(reader, ask) if time_of(s) is None}


def naming(source: Source) -> list[str]:
    """The granted field that says how people call a conversation, where the title does not."""
    properties = source.properties.items()
    titles = [n for n, p in properties if p.get("x_pdpp_role") == "primary-title"]
    shared = [p for _, p in properties if p.get("x_pdpp_role") == "conversation"]
    named = [p.get("x_pdpp_label_field") for p in shared]
    return [n for n in named if n in source.fields and n not in titles]


def authors(source: Source) -> list[str]:
    """The granted fields that say who wrote a record."""
    named = [n for n, p in source.properties.items() if p.get("x_pdpp_role") == "author"]
    return [name for name in named if name in source.fields]


def entry_of(reader: Reader, row: Row) -> Json:
    data: Json = {"at": row.data[time_of(row.source) or ""]}
    named = {"author": authors(row.source), "conversation": naming(row.source)}
    for member, names in named.items():
        texts = [str(row.data[n]) for n in names if row.data.get(n)]
        if texts and texts[0].strip():
            data[member] = texts[0][:200]
    properties = row.source.properties
    title = [n for n, p in properties.items() if p.get("x_pdpp_role") == "primary-title"]
    texts = row.source.raw["query"].get("search", {}).get("lexical_fields", [])
    shown = [row.data.get(n) for n in title if (row.data.get(n) or "").strip()]
    if shown:
        data["title"] = str(shown[0])[:200]
    else:
        rest = [str(row.data[n]) for n in texts if n not in title and row.data.get(n)]
        rest = [text for text in rest if text.strip()]
        if rest:
            data["preview"] = rest[0][:200]
    return {
        "object": "timeline_entry",
        "id": row.key,
        "record_id": row.key,
        "stream": row.source.stream,
        "data": data,
        **reader.identity(row.source),
    }
