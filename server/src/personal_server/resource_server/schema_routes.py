"""Schema, connector and stream routes.  Source: docs/contract/resource-server.md 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pdpp_kernel.errors import InvalidRequest
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import (
    name_unavailable,
)
from personal_server.enforcement.capabilities import (
    field_capabilities,
)
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.expansion import reach
from personal_server.enforcement.queries import (
    SchemaQuery,
    StreamQuery,
)
from personal_server.reading.freshness import least_of
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.reading.schema import (
    ConnectorEntry,
    Described,
    StreamSummary,
    describe_schema,
    describe_stream,
    grouped,
    summarize_streams,
)
from personal_server.resource_server.envelopes import (
    SelfLink,
    completed,
    meta_of,
    page_of,
    shown_source,
)
from personal_server.resource_server.read_queries import (
    selectors_of,
    snapshot_of,
)
from personal_server.resource_server.schema_bodies import (
    ConnectorList,
    ListedConnector,
    ListedStream,
    SchemaBody,
    SchemaConnector,
    ShownStream,
    SingleStream,
    StreamCapabilities,
    StreamList,
    Today,
    bearer_of,
    compact_row,
    connector_members,
    connector_row,
    fit_budget,
    full_row,
    granted_connections,
    lift_connections,
    package_meta,
)
from personal_server.web.parameters import Parameters
from personal_server.web.replies import Reply
from personal_server.web.requests import Request

_SHORTENED = Warning(
    "partial_results",
    "Rows without field_capabilities were shortened; pass stream for one of them.",
    param="stream",
)


class SchemaRoutes:
    """The routes that describe sources."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def read_schema(self, request: Request) -> Reply:
        """`GET /v1/schema`."""
        query = schema_query(request.parameters)
        described = describe_schema(self._ports, snapshot_of(request), request.authority, query)
        body = _schema_body(request, described, compact=query.compact)
        if query.compact and query.stream is None and fit_budget(body):
            meta = package_meta(request.authority)
            body.meta = meta_of(request, warnings=[_SHORTENED], meta=meta)
        return Reply(body, disclosed=_glanced(described))

    def read_stream(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}`."""
        query = StreamQuery(request.path["stream"], selectors_of(request.parameters))
        entry = describe_stream(self._ports, snapshot_of(request), request.authority, query)
        return Reply(completed(SingleStream, request, full_row(request.authority, entry)))

    def list_streams(self, request: Request) -> Reply:
        """`GET /v1/streams`."""
        summaries = self._summaries(request)
        rows = [_stream_row(request, summary) for summary in summaries]
        body = page_of(StreamList, request, rows, meta=self._unavailable(request))
        return Reply(body, disclosed=_disclosed(summaries))

    def list_connectors(self, request: Request) -> Reply:
        """`GET /v1/connectors`."""
        summaries = self._summaries(request)
        by_order = {summary.source.order: summary for summary in summaries}
        entries = grouped([summary.source for summary in summaries])
        rows = [_connector_entry(request, entry, by_order) for entry in entries]
        body = page_of(ConnectorList, request, rows, meta=self._unavailable(request))
        return Reply(body, disclosed=_disclosed(summaries))

    def _summaries(self, request: Request) -> list[StreamSummary]:
        query = SchemaQuery(selectors=selectors_of(request.parameters))
        return summarize_streams(self._ports, snapshot_of(request), request.authority, query)

    def _unavailable(self, request: Request) -> dict[str, object]:
        return unavailable_meta(request.authority, selectors_of(request.parameters))


def schema_query(sent: Parameters) -> SchemaQuery:
    """The schema that was asked for.

    Source: docs/contract/resource-server.md 6.2.
    Raises: InvalidRequest.
    """
    view, detail, stream = (
        sent.texts.get("view"),
        sent.texts.get("detail"),
        sent.texts.get("stream"),
    )
    if detail is not None and view not in (None, detail):
        raise InvalidRequest(
            "'detail' and 'view' contradict each other. Send one of them.", param="detail"
        )
    if detail == "full" and stream is None:
        raise InvalidRequest("'detail=full' needs 'stream'.", param="detail", retry_with="stream")
    return SchemaQuery(
        compact="compact" in (view, detail),
        full_detail=detail == "full",
        stream=stream,
        selectors=selectors_of(sent),
    )


def _connector(described: Described, entry: ConnectorEntry, *, compact: bool) -> SchemaConnector:
    authority = described.authority
    if not compact:
        return connector_row(authority, entry, [full_row(authority, e) for e in entry.streams])
    rows = [compact_row(authority, each) for each in entry.streams]
    connector = connector_row(authority, entry, rows)
    lift_connections(connector, rows)
    return connector


def _schema_body(request: Request, described: Described, *, compact: bool) -> SchemaBody:
    connectors = [_connector(described, entry, compact=compact) for entry in described.connectors]
    return SchemaBody(
        bearer=bearer_of(described.authority),
        connector_count=len(connectors),
        stream_count=sum(connector.stream_count for connector in connectors),
        **name_unavailable(described.authority.unavailable),
        connectors=connectors,
        detail="compact" if compact else None,
        today=Today(described.today.isoformat(), described.time_zone) if compact else None,
        links=SelfLink(request.self_link),
        meta=meta_of(request, meta=package_meta(request.authority)),
    )


def _stream_row(request: Request, summary: StreamSummary) -> ShownStream:
    source = summary.source
    return ShownStream(
        name=source.stream,
        record_count=summary.record_count,
        last_updated=summary.last_updated,
        **identity(request.authority, source),
        connector_id=source.connector_key,
        source=shown_source(source.source.kind, source.source.id),
        freshness=summary.freshness.render(),
    )


def _connector_entry(
    request: Request, entry: ConnectorEntry, summaries: Mapping[tuple[str, str], StreamSummary]
) -> ListedConnector:
    rows = [
        _connector_stream(request, [summaries[source.order] for source in stream.sources])
        for stream in entry.streams
    ]
    first_of_each = {s.connection_id: s for each in entry.streams for s in each.sources}
    connections = [first_of_each[cid] for cid in sorted(first_of_each)]
    return ListedConnector(
        **connector_members(request.authority, entry),
        stream_count=len(rows),
        streams=rows,
        granted_connections=granted_connections(request.authority, connections),
    )


def _connector_stream(request: Request, summaries: Sequence[StreamSummary]) -> ListedStream:
    """One stream of a source, over its connections."""
    source = summaries[0].source
    stream = source.declared
    fields = field_capabilities(source)
    path = f"/v1/streams/{quote(stream.name, safe='')}"
    aggregates = stream.aggregations.count or any(
        capability.usable for field in fields for capability in field.aggregations.values()
    )
    expands = any(
        reach(request.authority, s.source, declared).child is not None
        for declared in stream.expansions
        for s in summaries
    )
    updated = [summary.last_updated for summary in summaries if summary.last_updated is not None]
    return ListedStream(
        name=stream.name,
        record_count=sum(summary.record_count for summary in summaries),
        last_updated=max(updated, default=None),
        freshness=least_of(summary.freshness for summary in summaries).render(),
        capabilities=StreamCapabilities(
            records=True,
            records_url=f"{path}/records",
            stream_metadata=True,
            metadata_url=path,
            aggregate=aggregates,
            aggregate_url=f"{path}/aggregate" if aggregates else None,
            exact_filters=any(field.exact.usable for field in fields),
            range_filters=any(field.range.usable for field in fields),
            expand=expands,
            changes_since=all(summary.source.made_of is None for summary in summaries),
        ),
    )


def _glanced(described: Described) -> list[Disclosed]:
    """As those, and which field the dates are of."""
    return [
        Disclosed(source, (glance.time_field,) if glance.time_field else (), 0)
        for connector in described.connectors
        for entry in connector.streams
        if (glance := entry.glance) is not None
        for source in entry.sources
    ]


def _disclosed(summaries: Sequence[StreamSummary]) -> list[Disclosed]:
    """Counts and dates are disclosed, records are not."""
    return [Disclosed(summary.source, (), 0) for summary in summaries]
