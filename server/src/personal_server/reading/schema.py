"""Describing: what a token can see, as rows of sources grouped by stream.

Rule: declarations are not personal data; what is counted or dated is computed from visible
records, and only where it is asked for.
Source: docs/contract/resource-server.md 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.values import NANOSECONDS, percent_of, render_instant
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.stored import Collection
from personal_server.enforcement.authorize import authorize_schema, authorize_stream
from personal_server.enforcement.authorized_reads import glance_plan
from personal_server.enforcement.capabilities import WHOLE
from personal_server.enforcement.queries import SchemaQuery, StreamQuery
from personal_server.enforcement.scopes import scope_of
from personal_server.enforcement.semantic_queries import meaning_fields
from personal_server.enforcement.timeline import time_field
from personal_server.reading.freshness import (
    Freshness,
    ShownFreshness,
    freshness_of,
    least_of,
    source_freshness,
)
from personal_server.reading.ports import ReadPorts, model_of
from personal_server.storage.ports.snapshots import ReadSnapshot

COUNTED_RECORDS = 10_000
"""How far the records of a row are counted."""
MOST_ROWS_WITH_FIGURES = 24


class Glance(msgspec.Struct, frozen=True):
    """What a row's connections show together.

    Shapes: `record_count` is at most `COUNTED_RECORDS`, `has_more` says that there are more;
        `earliest` and `latest` are stored values of `time_field`, which is `None` where none of
        the stream's times is granted; `collected_at_ns` is that of the connection whose last
        successful collection lies farthest back, `None` if one never had any.
    """

    record_count: int
    has_more: bool
    time_field: str | None
    earliest: str | None
    latest: str | None
    collected_at_ns: int | None


class StreamEntry(msgspec.Struct, frozen=True):
    """One stream as several connections offer it alike; `freshness` is the least fresh of them.

    `embedded` percent of its records can be found by meaning, `None`: none ever can.
    """

    sources: tuple[ReadableSource, ...]
    freshness: ShownFreshness | None = None
    glance: Glance | None = None
    embedded: int | None = None

    @property
    def first(self) -> ReadableSource:
        """Any of them: they differ in their connection only."""
        return self.sources[0]


class ConnectorEntry(msgspec.Struct, frozen=True):
    """One source, for packages one member grant of it."""

    streams: tuple[StreamEntry, ...]

    @property
    def first(self) -> ReadableSource:
        """Any of its sources."""
        return self.streams[0].first


class Described(msgspec.Struct, frozen=True):
    """The schema that a token can see, on a day in the owner's time zone."""

    authority: ReadAuthority
    connectors: tuple[ConnectorEntry, ...]
    today: date
    time_zone: str


class StreamSummary(msgspec.Struct, frozen=True):
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
    """The sources that the query keeps; freshness and a glance where the body shows them."""
    sources = authorize_schema(authority, query)
    connectors = grouped(sources)
    if not query.compact or query.stream is not None:
        dated = _dated(ports, snapshot, sources)
        connectors = _each(connectors, lambda entry: _with_freshness(entry, dated))
    rows = sum(len(connector.streams) for connector in connectors)
    if query.compact and (query.stream is not None or rows <= MOST_ROWS_WITH_FIGURES):
        collections = snapshot.collections()
        connectors = _each(connectors, lambda entry: _glanced(snapshot, entry, collections))
    connectors = _each(connectors, lambda entry: _with_share(ports, snapshot, entry))
    now_s = ports.clock() // NANOSECONDS
    time_zone = ports.time_zone()
    today = datetime.fromtimestamp(now_s, ZoneInfo(time_zone)).date()
    return Described(authority, connectors, today, time_zone)


def describe_stream(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: StreamQuery,
) -> StreamEntry:
    """One stream row."""
    sources = authorize_stream(authority, query)
    entry = _with_freshness(StreamEntry(sources), _dated(ports, snapshot, sources))
    return _with_share(ports, snapshot, entry)


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
        member = (source.source.id, source.grant_id or "")
        limits = (source.time_constraint, source.resources, source.only)
        alike = (source.stream, source.fields, *limits)
        connectors.setdefault(member, {}).setdefault(alike, []).append(source)
    return tuple(ConnectorEntry(tuple(_entries(streams))) for streams in connectors.values())


def _entries(streams: Mapping[object, list[ReadableSource]]) -> list[StreamEntry]:
    entries = [StreamEntry(tuple(sources)) for sources in streams.values()]
    return sorted(entries, key=lambda e: (e.first.stream, e.first.connection_id))


def _each(
    connectors: tuple[ConnectorEntry, ...], change: Callable[[StreamEntry], StreamEntry]
) -> tuple[ConnectorEntry, ...]:
    return tuple(ConnectorEntry(tuple(map(change, each.streams))) for each in connectors)


def _glanced(
    snapshot: ReadSnapshot, entry: StreamEntry, collections: Mapping[str, Collection]
) -> StreamEntry:
    """Streams that are computed from others are not: they would have to be made for it."""
    if any(source.made_of is not None for source in entry.sources):
        return entry
    dated = time_field(*entry.sources)
    plan = glance_plan(entry.sources, dated.name if dated else None, COUNTED_RECORDS + 1)
    span = snapshot.span(plan)
    glance = Glance(
        min(span.total, COUNTED_RECORDS),
        span.total > COUNTED_RECORDS,
        plan.span_field,
        span.earliest,
        span.latest,
        _collected_at(entry, collections),
    )
    return replace(entry, glance=glance)


def _with_share(ports: ReadPorts, snapshot: ReadSnapshot, entry: StreamEntry) -> StreamEntry:
    """How much of a stream is embedded: of its visible records, counted while some are not."""
    model = model_of(ports)
    scopes = [scope_of(source) for source in entry.sources if meaning_fields(source)]
    if model is None or not scopes or snapshot.embedding_model() != model:
        return entry
    waiting = snapshot.count_unembedded(scopes)
    if not waiting:
        return replace(entry, embedded=WHOLE)
    records = sum(snapshot.summary(scope).record_count for scope in scopes)
    return replace(entry, embedded=percent_of(records - waiting, records))


def _collected_at(entry: StreamEntry, collections: Mapping[str, Collection]) -> int | None:
    found: list[int] = []
    for source in entry.sources:
        collection = collections.get(source.connection_id)
        if collection is None or collection.last_succeeded_at_ns is None:
            return None
        found.append(collection.last_succeeded_at_ns)
    return min(found)


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
