"""Random worlds for the read properties: sources, connections, writes, authorities and requests.

Everything is plain data made from a seed; the reference and the server both start from it.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

STREAM_NOTES: Json = {
    "name": "notes",
    "semantics": "mutable_state",
    "display": {"label": "Notes"},
    "primary_key": ["id"],
    "cursor_field": "at",
    "consent_time_field": "at",
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "at": {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"},
            "day": {"type": ["string", "null"], "format": "date"},
            "title": {"type": ["string", "null"], "x_pdpp_role": "primary-title"},
            "body": {"type": ["string", "null"], "x_pdpp_role": "recipient"},
            "mood": {
                "type": ["string", "null"],
                "x_pdpp_role": "author",
                "x_pdpp_caseless": True,
                "x_pdpp_mark_field": "mood",
            },
            "words": {"type": ["integer", "null"]},
            "cost": {"type": ["number", "null"]},
            "pinned": {"type": ["boolean", "null"]},
            "seen_at": {"type": ["string", "null"], "format": "date-time"},
            "book_id": {
                "type": ["string", "null"],
                "x_pdpp_label_field": "title",
                "x_pdpp_mark_field": "mood",
                "x_pdpp_role": "conversation",
            },
            "labels": {"type": "array"},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}},
            "blob_ref": {"type": "object", "x_pdpp_type": "blob"},
        },
        "required": ["id", "at"],
    },
    "views": [
        {"id": "short", "label": "Short", "fields": ["id", "title"]},
        {"id": "numbers", "label": "Numbers", "fields": ["words", "cost"]},
    ],
    "relationships": [
        {"name": "files", "stream": "files", "foreign_key": "note_id", "cardinality": "has_many"},
        {
            "name": "book",
            "stream": "books",
            "foreign_key": "book_id",
            "foreign_key_on": "self",
            "cardinality": "has_one",
        },
        {
            "name": "shelf",
            "stream": "notes",
            "foreign_key": "book_id",
            "foreign_key_on": "both",
            "cardinality": "has_many",
        },
    ],
    "query": {
        "range_filters": {
            "at": ["gte", "gt", "lte", "lt"],
            "day": ["gte", "lt"],
            "words": ["gte", "gt", "lte", "lt"],
            "cost": ["gte", "lt"],
            "seen_at": ["gte", "gt", "lte", "lt"],
        },
        "expand": [
            {"name": "files", "default_limit": 2, "max_limit": 4},
            {"name": "book"},
            {"name": "shelf", "default_limit": 1, "max_limit": 4},
        ],
        "search": {"lexical_fields": ["title", "body"], "semantic_fields": ["title", "body"]},
        "aggregations": {
            "count": True,
            "sum": ["words", "cost"],
            "min": ["words", "cost", "at", "day"],
            "max": ["words", "cost", "at", "day", "seen_at"],
            "count_distinct": ["mood", "words", "at", "pinned", "seen_at"],
            "group_by": ["mood", "pinned", "words", "cost"],
            "group_by_time": ["at", "day", "seen_at"],
        },
    },
}
STREAM_FILES: Json = {
    "name": "files",
    "semantics": "mutable_state",
    "display": {"label": "Files"},
    "primary_key": ["id"],
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "note_id": {"type": ["string", "null"]},
            "name": {"type": ["string", "null"], "x_pdpp_role": "primary-title"},
            "size": {"type": ["integer", "null"]},
        },
        "required": ["id"],
    },
    "query": {"search": {"lexical_fields": ["name"]}, "aggregations": {"sum": ["size"]}},
}
STREAM_BOOKS: Json = {
    "name": "books",
    "semantics": "mutable_state",
    "display": {"label": "Books"},
    "primary_key": ["id"],
    "cursor_field": "name",
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "name": {"type": ["string", "null"], "x_pdpp_role": "author"},
            "price": {"type": ["number", "null"], "x_pdpp_groupable": False},
        },
        "required": ["id"],
    },
    "query": {"search": {"lexical_fields": ["name"]}, "aggregations": {"count": True}},
}

STREAM_VISITS: Json = {
    "name": "visits",
    "semantics": "mutable_state",
    "display": {"label": "Visits"},
    "primary_key": ["place", "number"],
    "cursor_field": "day",
    "consent_time_field": "day",
    "selection": {"fields": True, "resources": True},
    "schema": {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "number": {"type": "integer"},
            "day": {"type": ["string", "null"], "format": "date", "x_pdpp_role": "event-time"},
            "title": {"type": ["string", "null"]},
            "cost": {"type": ["number", "null"]},
            "pinned": {"type": ["boolean", "null"]},
        },
        "required": ["place", "number"],
    },
    "query": {
        "range_filters": {"day": ["gte", "gt", "lte", "lt"], "number": ["gte", "lt"]},
        "search": {"lexical_fields": ["title"]},
        "aggregations": {
            "count": True,
            "sum": ["cost", "number"],
            "max": ["day"],
            "count_distinct": ["day", "place"],
            "group_by": ["place", "pinned", "number"],
            "group_by_time": ["day"],
        },
    },
}


def declaration(key: str, streams: list[Json]) -> Json:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://connectors.example/{key}"},
        "connector_key": key,
        "declaration_version": "1",
        "display": {"name": key.title()},
        "streams": copy.deepcopy(streams),
    }


SOURCES: dict[str, Json] = {
    "alpha": declaration("alpha", [STREAM_NOTES, STREAM_FILES, STREAM_BOOKS, STREAM_VISITS]),
    "beta": declaration("beta", [STREAM_NOTES, STREAM_FILES]),
}
STREAMS = {
    (key, stream["name"]): stream for key, raw in SOURCES.items() for stream in raw["streams"]
}
DATED = {"notes": "at", "visits": "day"}
NAMES = {"cin_a1": "First", "cin_b2": "Last & least"}
CONNECTIONS = {
    "cin_a1": "alpha",
    "cin_a2": "alpha",
    "cin_a3": "alpha",
    "cin_b1": "beta",
    "cin_b2": "beta",
}
INSTANTS = (
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01T00:00:00.000000001Z",
    "2026-01-02T23:59:59.999Z",
    "2026-01-03T00:00:00Z",
    "2026-03-29T00:30:00Z",
    "2026-03-29T03:30:00+02:00",
    "2026-10-25T00:30:00Z",
    "2026-10-25T01:30:00Z",
    "2025-12-31T20:00:00-05:00",
    "1969-07-20T20:17:40Z",
    "2300-01-01T00:00:00Z",
)
DAYS = ("2026-01-01", "2026-01-02", "2025-12-29", "2026-03-31", "2024-02-29")
LONG_MOODS = ("z" * 300, "z" * 300 + "a")
MOODS = ("calm", "person", "wild", "Ärger", "", "calm ", "\U0001f642", "ﬀ", *LONG_MOODS)
WORDS = (
    "rain",
    "Snow",
    "café",
    "wind",
    "über",
    "e-mail",
    "tea",
    "日本",
    "rainy",
    "rained",
    "winds",
)

INTEGERS = (0, 1, 2, 3, -5, 10**9, 2**53 + 1, 2**62)
NUMBERS = (0, 1, 0.1, 0.2, 2.5, -3.25, 1e-9, 1e15)
POOLS: dict[str, tuple[Any, ...]] = {
    "at": INSTANTS,
    "seen_at": INSTANTS,
    "day": DAYS,
    "mood": MOODS,
    "words": INTEGERS,
    "size": INTEGERS,
    "cost": NUMBERS,
    "price": NUMBERS,
    "pinned": (True, False),
    "book_id": ("b1", "b2", "b3", "b4"),
    "note_id": ("n1", "n2", "n3", "n4"),
    "tags": ([], ["home"], ["home", "Work"], ["Work", "work", "Work"], ["é", "Z" * 300]),
}


def key_of(stream: str, number: int) -> str:
    """The canonical key of the record with that number."""
    if stream == "visits":
        return json.dumps([f"p{number % 3}", str(number)], separators=(",", ":"))
    return f"{stream[0]}{number}"


def stamped(rng: random.Random, marker: int) -> str:
    """A text with a few searchable words and a marker found nowhere else; each third one asks."""
    words = [rng.choice(WORDS) for _ in range(rng.randint(0, 6))]
    words.insert(rng.randint(0, len(words)), f"mk{marker}marx")
    return rng.choice((" ", ", ", "\n")).join(words) + ("" if marker % 3 else "?")


@dataclass
class Write:
    """One write; `data` is `None` for a delete."""

    connection_id: str
    stream: str
    key: str
    data: Json | None
    emitted_s: int


@dataclass
class World:
    """Who has what.  `grants` are plain; `statuses` of connections; `now_s` grows with writes."""

    seed: int
    rng: random.Random
    statuses: dict[str, str]
    writes: list[Write] = field(default_factory=list[Write])
    markers: dict[int, tuple[str, str, str, str]] = field(
        default_factory=dict[int, tuple[str, str, str, str]]
    )
    clock_s: int = 1_780_000_000
    writable: tuple[str, ...] = tuple(CONNECTIONS)

    def write(self, count: int) -> list[Write]:
        """Some more writes."""
        fresh = [self._write() for _ in range(count)]
        self.writes += fresh
        return fresh

    def _write(self) -> Write:
        rng = self.rng
        connection_id = rng.choice(self.writable)
        source = CONNECTIONS[connection_id]
        stream = rng.choice([s for k, s in STREAMS if k == source] + ["notes"])
        key = key_of(stream, rng.randint(1, 9))
        self.clock_s += 1
        data = None if rng.random() < 0.08 else self._record(connection_id, stream, key)
        return Write(connection_id, stream, key, data, self.clock_s)

    def _record(self, connection_id: str, stream: str, key: str) -> Json:
        previous = self.current(connection_id, stream, key)
        if previous is not None and self.rng.random() < 0.6:
            return self._changed(connection_id, stream, key, previous)
        record = {name: self._value(connection_id, stream, key, name) for name in _names(stream)}
        needed = STREAMS["alpha", stream]["schema"]["required"]
        return {n: v for n, v in record.items() if n in needed or self.rng.random() < 0.8}

    def _changed(self, connection_id: str, stream: str, key: str, previous: Json) -> Json:
        name = self.rng.choice([n for n in _names(stream) if n not in ("id", "place", "number")])
        return previous | {name: self._value(connection_id, stream, key, name)}

    def current(self, connection_id: str, stream: str, key: str) -> Json | None:
        """The record as it stands."""
        for each in reversed(self.writes):
            if (each.connection_id, each.stream, each.key) == (connection_id, stream, key):
                return each.data
        return None

    def _value(self, connection_id: str, stream: str, key: str, name: str) -> Any:
        rng = self.rng
        fixed = (*STREAMS["alpha", stream]["schema"]["required"], "labels", "blob_ref")
        if name in ("place", "number"):
            place, number = json.loads(key)
            return place if name == "place" else int(number)
        if name not in fixed and rng.random() < 0.15:
            return None
        if name == "id":
            return key
        if name in POOLS:
            return rng.choice(POOLS[name])
        text = self._marked(connection_id, stream, key, name)
        return {"labels": [text], "blob_ref": {"blob_id": text}}.get(name, text)

    def _marked(self, connection_id: str, stream: str, key: str, name: str) -> str:
        marker = len(self.markers) + 1
        self.markers[marker] = (connection_id, stream, key, name)
        return stamped(self.rng, marker)


def _names(stream: str) -> list[str]:
    return list(STREAMS["alpha", stream]["schema"]["properties"])


def make_world(seed: int, writes: int = 160) -> World:
    rng = random.Random(seed)
    statuses = dict.fromkeys(CONNECTIONS, "active")
    if rng.random() < 0.3:
        statuses[rng.choice(list(CONNECTIONS))] = "revoked"
    world = World(seed, rng, statuses)
    world.write(writes)
    world.writable = tuple(cid for cid, status in statuses.items() if status == "active")
    return world


@dataclass(frozen=True)
class StreamSpec:
    """One stream of a grant."""

    name: str
    connections: tuple[str, ...]
    fields: tuple[str, ...]
    since: str | None = None
    until: str | None = None
    resources: tuple[str, ...] | None = None
    only: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True)
class GrantSpec:
    """One grant."""

    grant_id: str
    source: str
    issued: str
    status: str
    streams: tuple[StreamSpec, ...]


@dataclass(frozen=True)
class TokenSpec:
    """What a token stands for."""

    kind: str
    grants: tuple[GrantSpec, ...] = ()


def make_token(world: World) -> TokenSpec:
    rng = world.rng
    kind = rng.choice(("client", "client", "client", "mcp_package", "mcp_package", "owner"))
    if kind == "owner":
        return TokenSpec(kind)
    count = 1 if kind == "client" else rng.randint(1, 3)
    return TokenSpec(kind, tuple(_grant(rng, i, kind) for i in range(count)))


def _grant(rng: random.Random, index: int, kind: str) -> GrantSpec:
    source = rng.choice(("alpha", "alpha", "beta"))
    names = [stream for key, stream in STREAMS if key == source]
    chosen = rng.sample(names, rng.randint(1, len(names)))
    live = kind == "client" or rng.random() < 0.85
    status = "active" if live else rng.choice(("grant_revoked", "grant_expired"))
    streams = tuple(_stream(rng, source, name) for name in chosen)
    return GrantSpec(f"grt_{index}", source, f"2026-01-0{rng.randint(1, 9)}", status, streams)


def _stream(rng: random.Random, source: str, name: str) -> StreamSpec:
    own = [cid for cid, key in CONNECTIONS.items() if key == source]
    connections = rng.sample(own, rng.randint(1, len(own)))
    if rng.random() < 0.1:
        connections.append("cin_gone")
    properties = list(STREAMS[source, name]["schema"]["properties"])
    fields = {n for n in properties if rng.random() < rng.choice((0.3, 0.7, 1.0))}
    fields |= set(STREAMS[source, name]["primary_key"])
    since, until = None, None
    if name in DATED:
        fields |= {DATED[name]} if rng.random() < 0.85 else set()
        bounds = sorted(
            rng.sample(
                ["2026-01-01T00:00:00Z", "2026-01-03T00:00:00+01:00", "2026-06-01T00:00:00Z"], 2
            )
        )
        since = bounds[0] if rng.random() < 0.4 else None
        until = bounds[1] if rng.random() < 0.3 else None
    resources = None
    if rng.random() < 0.25:
        resources = tuple(key_of(name, n) for n in rng.sample(range(1, 10), rng.randint(1, 6)))
    ordered = tuple(n for n in properties if n in fields)
    only = _limits(rng, name) if rng.random() < 0.4 else ()
    return StreamSpec(name, tuple(connections), ordered, since, until, resources, only)


# What a grant may be limited by: declared, and found by equality (4.8).
LIMITING = {"notes": ("mood", "pinned", "words", "book_id"), "visits": ("pinned",)}


def _limits(rng: random.Random, name: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Fields, granted or not, with some of the values there are; moods in any case."""
    known = LIMITING.get(name, ())
    named = rng.sample(known, min(rng.choice((1, 1, 2)), len(known)))
    found: list[tuple[str, tuple[Any, ...]]] = []
    for field_name in named:
        pool = [v for v in POOLS[field_name] if not isinstance(v, str) or len(v) < 200]
        values = rng.sample(pool, rng.randint(1, max(1, len(pool) - 1)))
        if field_name == "mood" and rng.random() < 0.5:
            values = [value.swapcase() if value.isascii() else value for value in values]
        found.append((field_name, tuple(values)))
    return tuple(found)
