"""The reference: what docs/contract/resource-server.md says a read answers, by brute force over
plain data.

It shares no code with the server.  Every function follows a section of the contract.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import eq as operator_eq
from operator import ge as operator_ge
from operator import gt as operator_gt
from operator import le as operator_le
from operator import lt as operator_lt
from typing import Any
from urllib.parse import quote

from tests.properties.meaning import comparable, day, kind_of, moment, nanoseconds, rendered_time
from tests.properties.worlds import CONNECTIONS, NAMES, SOURCES, STREAMS, Json, TokenSpec, World


@dataclass
class Stored:
    data: Json
    created_s: int
    changed: dict[str, int] = field(default_factory=dict[str, int])


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def replay(world: World) -> dict[tuple[str, str], dict[str, Stored]]:
    places: dict[tuple[str, str], dict[str, Stored]] = {}
    for write in world.writes:
        rows = places.setdefault((write.connection_id, write.stream), {})
        old = rows.get(write.key)
        if write.data is None:
            rows.pop(write.key, None)
        elif old is None:
            rows[write.key] = Stored(write.data, write.emitted_s)
        else:
            for name in old.data.keys() | write.data.keys():
                was, now = name in old.data, name in write.data
                if was != now or not same(old.data[name], write.data[name]):
                    old.changed[name] = write.emitted_s
            old.data = write.data
    return places


# Authority: docs/contract/resource-server.md 4 ----------------------------------------------------
@dataclass(frozen=True)
class Source:
    grant: str | None
    connection: str
    key: str
    stream: str
    fields: tuple[str, ...]
    since: int | None = None
    until: int | None = None
    resources: frozenset[str] | None = None
    only: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def raw(self) -> Json:
        return STREAMS[self.key, self.stream]

    @property
    def properties(self) -> Json:
        return self.raw["schema"]["properties"]

    def kind(self, name: str) -> str | None:
        return kind_of(self.properties[name])


@dataclass
class Authority:
    kind: str
    sources: list[Source]
    unavailable: dict[str, str]
    named: set[str]


def authority_of(world: World, token: TokenSpec) -> Authority:
    if token.kind == "owner":
        sources = [
            Source(None, cid, key, stream, tuple(raw["schema"]["properties"]))
            for cid, key in CONNECTIONS.items()
            for (source, stream), raw in STREAMS.items()
            if source == key
        ]
        return Authority("owner", ordered(sources), {}, {s.stream for s in sources})
    found: dict[tuple[str, str], tuple[tuple[str, str], Source]] = {}
    unavailable: dict[str, str] = {}
    for grant in token.grants:
        for spec in grant.streams:
            for cid in spec.connections:
                reason = None
                if grant.status != "active":
                    reason = grant.status
                elif cid not in CONNECTIONS:
                    reason = "connection_deleted"
                elif world.statuses[cid] == "revoked":
                    reason = "connection_revoked"
                if reason is not None:
                    known = unavailable.get(cid)
                    if known is None or not known.startswith("grant_"):
                        unavailable[cid] = reason
                    continue
                source = Source(
                    grant.grant_id,
                    cid,
                    grant.source,
                    spec.name,
                    spec.fields,
                    nanoseconds(spec.since) if spec.since else None,
                    nanoseconds(spec.until) if spec.until else None,
                    None if spec.resources is None else frozenset(spec.resources),
                    spec.only,
                )
                issued = (grant.issued, grant.grant_id)
                place = (cid, spec.name)
                if place not in found or found[place][0] < issued:
                    found[place] = (issued, source)
    named = {spec.name for grant in token.grants for spec in grant.streams}
    return Authority(token.kind, ordered([s for _, s in found.values()]), unavailable, named)


def ordered(sources: list[Source]) -> list[Source]:
    return sorted(sources, key=lambda s: (s.connection, s.stream))


Error = tuple[int, str, str | None]


class Refused(Exception):
    """The request is refused with one of these errors (`None`: any param)."""

    def __init__(self, *errors: Error, connections: set[str] | None = None) -> None:
        super().__init__(errors)
        self.errors = errors
        self.connections = connections


@dataclass
class Row:
    source: Source
    key: str
    data: Json
    emitted_s: int


class Reader:
    """One token in one world."""

    def __init__(self, world: World, token: TokenSpec) -> None:
        self.token = token
        self.authority = authority_of(world, token)
        self.places = replay(world)

    def visible(self, source: Source) -> list[Row]:
        rows: list[Row] = []
        for key, stored in self.places.get((source.connection, source.stream), {}).items():
            if source.resources is not None and key not in source.resources:
                continue
            if source.since is not None or source.until is not None:
                at = moment(stored.data.get(source.raw["consent_time_field"]))
                if at is None or (source.since is not None and at < source.since):
                    continue
                if source.until is not None and at >= source.until:
                    continue
            if not all(satisfies(source, stored.data, *limit) for limit in source.only):
                continue
            data = {n: stored.data[n] for n in source.fields if n in stored.data}
            times = [s for n, s in stored.changed.items() if n in source.fields]
            rows.append(Row(source, key, data, max([stored.created_s, *times])))
        return rows

    # 4.5
    def candidates(self, scalars: dict[str, str]) -> tuple[list[Source], list[Source]]:
        found = self.authority.sources
        connector = scalars.get("connector_id")
        if connector is not None:
            found = [s for s in found if connector in (s.key, SOURCES[s.key]["source"]["id"])]
            if not found:
                raise Refused((404, "connection_not_found", "connector_id"))
        narrowed = found
        wanted = scalars.get("connection_id")
        if wanted is not None:
            narrowed = [s for s in found if s.connection == wanted]
            if not narrowed:
                reason = self.authority.unavailable.get(wanted, "")
                if reason.startswith("grant_"):
                    raise Refused((403, reason, "connection_id"))
                raise Refused((404, "connection_not_found", "connection_id"))
        return found, narrowed

    def select_everywhere(self, scalars: dict[str, str], stream: str) -> list[Source]:
        """The sources of a stream, whatever connection they are on."""
        _, narrowed = self.candidates(scalars)
        selected = [s for s in narrowed if s.stream == stream]
        if not selected:
            if self.authority.kind == "owner":
                raise Refused((404, "not_found", None))
            if stream in self.authority.named:
                raise Refused((404, "connection_not_found", None))
            raise Refused((403, "grant_stream_not_allowed", None))
        return selected

    def select(self, scalars: dict[str, str], stream: str) -> list[Source]:
        found, _ = self.candidates(scalars)
        selected = self.select_everywhere(scalars, stream)
        connections = {s.connection for s in found}
        package = self.authority.kind == "mcp_package"
        if package and "connection_id" not in scalars and len(connections) > 1:
            raise Refused((409, "ambiguous_connection", "connection_id"), connections=connections)
        if len({s.key for s in selected}) > 1:
            raise Refused((409, "ambiguous_connection", "connection_id"), connections=connections)
        return selected

    def field_errors(self, sources: list[Source], name: str, param: str) -> list[Error]:
        if name not in sources[0].properties:
            return [(400, "unknown_field", param)]
        if any(name not in s.fields for s in sources):
            return [(403, "field_not_granted", param)]
        return []

    # 2.4
    def record(self, row: Row, shown: set[str] | None = None) -> Json:
        data = {
            n: with_url(v, row.source.connection) if n == "blob_ref" else v
            for n, v in row.data.items()
            if shown is None or n in shown or n in row.source.raw["primary_key"]
        }
        record = {
            "object": "record",
            "id": row.key,
            "record_id": row.key,
            "stream": row.source.stream,
            "data": data,
            "emitted_at": rendered_time(row.emitted_s),
        }
        return record | self.identity(row.source)

    def identity(self, source: Source) -> Json:
        members: Json = {"connection_id": source.connection, "connector_key": source.key}
        if source.connection in NAMES:
            members["display_name"] = NAMES[source.connection]
        if self.authority.kind == "mcp_package":
            members["grant_id"] = source.grant
        return members


def with_url(value: Json, connection: str) -> Json:
    place = quote(value["blob_id"], safe="")
    return {**value, "fetch_url": f"/v1/blobs/{place}?connection_id={connection}"}


# Filters: 7.3 ---------------------------------------------------------------------------------
def read_number(text: str, kind: str) -> int | float | None:
    try:
        value = json.loads(text) if re.fullmatch(r"-?[0-9.eE+-]+", text) else None
    except ValueError:
        return None
    if value is None:
        return None
    if kind == "integer" and value != int(value):
        return None
    return int(value) if kind == "integer" else value


def filter_test(source: Source, name: str, operator: str | None, text: str) -> Any:
    """A predicate on stored values, or `None` for a bad condition."""
    kind = source.kind(name)
    if kind is None:
        return None
    if operator in ("exists", "contains", "starts_with", "in", "ne"):
        return further_test(source, name, operator, text)
    if operator is not None and operator not in source.raw["query"].get("range_filters", {}).get(
        name, ()
    ):
        return None
    bound: Any
    if kind == "date-time":
        whole_day = day(text)
        if whole_day is not None and operator is not None:
            start = nanoseconds(f"{whole_day}T00:00:00Z")
            assert start is not None
            following = start + 86400 * 10**9
            edge = start if operator in ("gte", "lt") else following
            return with_kind(kind, operator_ge if operator in ("gte", "gt") else operator_lt, edge)
        bound = nanoseconds(text)
    elif kind == "date":
        bound = day(text)
    elif kind == "boolean":
        bound = {"true": True, "false": False}.get(text)
    elif kind == "string":
        bound = text
    else:
        bound = read_number(text, kind)
    if bound is None:
        return None
    if operator is None and source.properties[name].get("x_pdpp_caseless"):
        return caseless_test(bound)
    return with_kind(kind, COMPARISONS[operator], bound)


def caseless_test(bound: str) -> Any:
    def holds(value: str | None) -> bool:
        return value is not None and lowered(value) == lowered(bound)

    return holds


def lowered(text: str) -> str:
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def further_test(source: Source, name: str, operator: str, text: str) -> Any:
    if operator == "exists":
        there = {"true": True, "false": False}.get(text)
        return None if there is None else existence_test(there)
    if operator in ("in", "ne"):
        equal = filter_test(source, name, None, text)
        if equal is None or operator == "in":
            return equal
        return difference_test(equal)
    usable = source.kind(name) == "string" and 1 <= len(text) <= 256
    return part_test(operator, text) if usable else None


def existence_test(there: bool) -> Any:
    def holds(value: Any) -> bool:
        return (value is not None) is there

    return holds


def difference_test(equal: Any) -> Any:
    def holds(value: Any) -> bool:
        return value is not None and not equal(value)

    return holds


def part_test(operator: str, part: str) -> Any:
    def holds(value: str | None) -> bool:
        if value is None:
            return False
        place = lowered(value).find(lowered(part))
        return place == 0 if operator == "starts_with" else place >= 0

    return holds


COMPARISONS: dict[str | None, Any] = {
    None: operator_eq,
    "gte": operator_ge,
    "gt": operator_gt,
    "lte": operator_le,
    "lt": operator_lt,
}


def with_kind(kind: str, compare: Any, bound: Any) -> Any:
    def holds(value: Any) -> bool:
        point = comparable(value, kind)
        return point is not None and bool(compare(point, bound))

    return holds


Filters = tuple[tuple[str, str | None, str], ...]


def filter_errors(reader: Reader, sources: list[Source], filters: Filters) -> list[Error]:
    errors: list[Error] = []
    for name, operator, text in filters:
        param = f"filter[{name}]"
        found = reader.field_errors(sources, name, param)
        if not found and filter_test(sources[0], name, operator, text) is None:
            found = [(400, "invalid_filter", param)]
        errors += found
    return errors


def filtered(reader: Reader, sources: list[Source], filters: Filters) -> list[Row]:
    rows = [row for source in sources for row in reader.visible(source)]
    for name, operator in {(name, operator) for name, operator, _ in filters}:
        texts = [text for n, o, text in filters if (n, o) == (name, operator)]
        tests = [filter_test(sources[0], name, operator, text) for text in texts]
        rows = [row for row in rows if any(test(row.data.get(name)) for test in tests)]
    return rows


# 2.3, `outside_time_constraint`: some time outside meets all bounds on the constrained field
FAR = ("0001-01-01", "9999-12-30")


def reaches_outside(source: Source, filters: Filters) -> bool:
    name = source.raw.get("consent_time_field")
    bounds = [
        (operator, text)
        for f, operator, text in filters
        if f == name and operator in (None, "gte", "gt", "lte", "lt")
    ]
    if name is None or not bounds or (source.since is None and source.until is None):
        return False
    is_day = source.kind(name) == "date"
    known = [moment(text) or 0 for _, text in bounds]
    known += [each for each in (source.since, source.until) if each is not None]
    step = 86_400 * 10**9 if is_day else 1
    texts = [text if is_day else f"{text}T00:00:00Z" for text in FAR]
    texts += [written(each + more * step, is_day) for each in known for more in (-1, 0, 1)]
    texts += [written(each + 86_400 * 10**9 - 1, is_day) for each in known]
    tests = [filter_test(source, name, operator, text) for operator, text in bounds]
    outside = [
        text
        for text in texts
        if (source.since is not None and (moment(text) or 0) < source.since)
        or (source.until is not None and (moment(text) or 0) >= source.until)
    ]
    return any(all(test(text) for test in tests) for text in outside)


def written(at_ns: int, is_day: bool) -> str:
    seconds, rest = divmod(at_ns, 10**9)
    shown = datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)
    return f"{shown:%Y-%m-%d}" if is_day else f"{shown:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


# 4.8: as a filter compares
def satisfies(source: Source, data: Json, field_name: str, values: tuple[Any, ...]) -> bool:
    value = data.get(field_name)
    if value is None:
        return False
    if source.properties[field_name].get("x_pdpp_caseless"):
        return any(caseless_test(each)(value) for each in values)
    return value in values


# Order: 7.2 -----------------------------------------------------------------------------------
def in_order(rows: list[Row], name: str | None, descending: bool) -> list[Row]:
    rows = sorted(rows, key=lambda r: (r.key, r.source.connection), reverse=descending)
    if name is None:
        return rows
    kind = rows[0].source.kind(name) if rows else None

    def point(row: Row) -> Any:
        value = comparable(row.data.get(name), kind or "")
        return value[:256] if isinstance(value, str) else value

    valued = [row for row in rows if point(row) is not None]
    empty = [row for row in rows if point(row) is None]
    valued.sort(key=lambda r: (point(r), r.key, r.source.connection), reverse=descending)
    return valued + empty
