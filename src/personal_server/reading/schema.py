"""Describing: what a token can see, as rows of sources grouped by stream.

Rule: declarations are not personal data; what is counted or dated is computed from visible
records, and only where it is asked for.
Source: docs/contract/resource-server.md 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.values import render_instant
from personal_server.enforcement.authorize import authorize_schema, authorize_stream
from personal_server.enforcement.plans import scope_of
from personal_server.enforcement.queries import SchemaQuery, StreamQuery
from personal_server.reading.freshness import (
    Freshness,
    ShownFreshness,
    freshness_of,
    least_of,
    source_freshness,
)
from personal_server.reading.ports import ReadPorts
from personal_server.storage.ports import ReadSnapshot


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One stream as several connections offer it alike; `freshness` is the least fresh of them."""

    sources: tuple[ReadableSource, ...]
    freshness: ShownFreshness | None = None

    @property
    def first(self) -> ReadableSource:
        """Any of them: they differ in their connection only."""
        return self.sources[0]


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """One source, for packages one member grant of it."""

    streams: tuple[StreamEntry, ...]

    @property
    def first(self) -> ReadableSource:
        """Any of its sources."""
        return self.streams[0].first


@dataclass(frozen=True, slots=True)
class Described:
    """The schema that a token can see."""

    authority: ReadAuthority
    connectors: tuple[ConnectorEntry, ...]


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """One (stream, connection) with its number of records and its dates."""

    source: ReadableSource
    record_count: int
    last_updated: str | None
    freshness: Freshness


def describe_schema(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: SchemaQuery,
) -> Described:
    """The sources that the query keeps; freshness where the body shows it."""
    sources = authorize_schema(authority, query)
    connectors = grouped(sources)
    if query.compact and query.stream is None:
        return Described(authority, connectors)
    dated = _dated(ports, snapshot, sources)
    return Described(
        authority,
        tuple(
            ConnectorEntry(tuple(_with_freshness(e, dated) for e in connector.streams))
            for connector in connectors
        ),
    )


def describe_stream(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: StreamQuery,
) -> StreamEntry:
    """One stream row."""
    sources = authorize_stream(authority, query)
    return _with_freshness(StreamEntry(sources), _dated(ports, snapshot, sources))


def summarize_streams(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: SchemaQuery,
) -> list[StreamSummary]:
    """One summary per (stream, connection), in source order."""
    sources = authorize_schema(authority, query)
    now_ns = ports.clock()
    found: list[StreamSummary] = []
    collections = snapshot.collections()
    for source in sources:
        summary = snapshot.summary(scope_of(source))
        newest = summary.last_emitted_at_ns
        collection = collections.get(source.connection_id)
        freshness = freshness_of(source, collection, newest, now_ns)
        updated = None if newest is None else render_instant(newest)
        found.append(StreamSummary(source, summary.record_count, updated, freshness))
    return found


def grouped(sources: Sequence[ReadableSource]) -> tuple[ConnectorEntry, ...]:
    """By source and member grant, then by stream and what is granted of it."""
    connectors: dict[tuple[str, str], dict[object, list[ReadableSource]]] = {}
    for source in sorted(sources, key=lambda s: (s.connector_key, s.grant_id or "", s.order)):
        place = (source.source.id, source.grant_id or "")
        alike = (source.stream, source.fields, source.time_constraint, source.resources)
        connectors.setdefault(place, {}).setdefault(alike, []).append(source)
    return tuple(ConnectorEntry(tuple(_entries(streams))) for streams in connectors.values())


def _entries(streams: Mapping[object, list[ReadableSource]]) -> list[StreamEntry]:
    entries = [StreamEntry(tuple(sources)) for sources in streams.values()]
    return sorted(entries, key=lambda e: (e.first.stream, e.first.connection_id))


def _dated(
    ports: ReadPorts, snapshot: ReadSnapshot, sources: Sequence[ReadableSource]
) -> dict[tuple[str, str], Freshness]:
    collections = snapshot.collections()
    now_ns = ports.clock()
    return {
        s.order: source_freshness(snapshot, ports.capture_times, s, collections, now_ns)
        for s in sources
    }


def _with_freshness(entry: StreamEntry, dated: Mapping[tuple[str, str], Freshness]) -> StreamEntry:
    least = least_of(dated[s.order] for s in entry.sources)
    return StreamEntry(entry.sources, least.render())
