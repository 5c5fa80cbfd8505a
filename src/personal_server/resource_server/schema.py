"""Schema, connector and stream routes.  Source: RS contract 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import Warning, render_unavailable
from personal_server.enforcement.capabilities import field_capabilities
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.expansion import reach
from personal_server.enforcement.queries import SchemaQuery, StreamQuery
from personal_server.errors import InvalidRequest
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
from personal_server.resource_server.envelopes import list_body, object_body
from personal_server.resource_server.read_parameters import selectors_of, timeout_seconds
from personal_server.resource_server.schema_bodies import (
    Row,
    bearer_of,
    compact_row,
    connector_row,
    fit_budget,
    full_row,
    granted_connections,
    lift_connections,
    package_meta,
)
from personal_server.web.parameters import Parameters
from personal_server.web.requests import Request
from personal_server.web.responses import Reply

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
        described = describe_schema(self._ports, request.authority, query, timeout_seconds(request))
        connectors = [
            _connector(described, entry, compact=query.compact) for entry in described.connectors
        ]
        members = _schema_members(described, connectors, compact=query.compact)
        meta = package_meta(request.authority)
        body = object_body(request, members, meta=meta)
        if query.compact and query.stream is None and fit_budget(body, connectors):
            body = object_body(request, members, warnings=[_SHORTENED.render()], meta=meta)
        return Reply(body)

    def read_stream(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}`."""
        query = StreamQuery(request.path["stream"], selectors_of(request.parameters))
        entry = describe_stream(self._ports, request.authority, query, timeout_seconds(request))
        return Reply(object_body(request, full_row(request.authority, entry)))

    def list_streams(self, request: Request) -> Reply:
        """`GET /v1/streams`."""
        summaries = self._summaries(request)
        rows = [_stream_row(request, summary) for summary in summaries]
        body = list_body(request, rows, meta=self._unavailable(request))
        return Reply(body, disclosed=_disclosed(summaries))

    def list_connectors(self, request: Request) -> Reply:
        """`GET /v1/connectors`."""
        summaries = self._summaries(request)
        by_order = {summary.source.order: summary for summary in summaries}
        entries = grouped([summary.source for summary in summaries])
        rows = [_connector_entry(request, entry, by_order) for entry in entries]
        body = list_body(request, rows, meta=self._unavailable(request))
        return Reply(body, disclosed=_disclosed(summaries))

    def _summaries(self, request: Request) -> list[StreamSummary]:
        query = SchemaQuery(selectors=selectors_of(request.parameters))
        return summarize_streams(self._ports, request.authority, query, timeout_seconds(request))

    def _unavailable(self, request: Request) -> dict[str, object]:
        return unavailable_meta(request.authority, selectors_of(request.parameters))


def schema_query(sent: Parameters) -> SchemaQuery:
    """The schema that was asked for.

    Source: RS contract 6.2.
    Raises: InvalidRequest.
    """
    view, detail, stream = sent.text("view"), sent.text("detail"), sent.text("stream")
    if detail is not None and view not in (None, detail):
        raise InvalidRequest("'detail' and 'view' disagree; send one of them.", param="detail")
    if detail == "full" and stream is None:
        raise InvalidRequest("'detail=full' needs 'stream'.", param="detail", retry_with="stream")
    return SchemaQuery(
        compact="compact" in (view, detail),
        full_detail=detail == "full",
        stream=stream,
        selectors=selectors_of(sent),
    )


def _connector(described: Described, entry: ConnectorEntry, *, compact: bool) -> Row:
    render = compact_row if compact else full_row
    authority = described.authority
    row = connector_row(authority, entry, [render(authority, each) for each in entry.streams])
    if compact:
        lift_connections(row)
    return row


def _schema_members(described: Described, connectors: Sequence[Row], *, compact: bool) -> Row:
    streams = sum(len(entry.streams) for entry in described.connectors)
    members: Row = {
        "object": "schema",
        "bearer": bearer_of(described.authority),
        "connector_count": len(connectors),
        "stream_count": streams,
        **render_unavailable(described.authority.unavailable),
        "connectors": list(connectors),
    }
    if compact:
        members["detail"] = "compact"
    return members


def _stream_row(request: Request, summary: StreamSummary) -> Row:
    source = summary.source
    return {
        "object": "stream",
        "name": source.stream,
        "record_count": summary.record_count,
        "last_updated": summary.last_updated,
        **identity(request.authority, source),
        "connector_id": source.connector_key,
        "source": {"kind": source.source.kind, "id": source.source.id},
        "freshness": summary.freshness.render(),
    }


def _connector_entry(
    request: Request, entry: ConnectorEntry, summaries: Mapping[tuple[str, str], StreamSummary]
) -> Row:
    rows = [
        _connector_stream(request, [summaries[source.order] for source in stream.sources])
        for stream in entry.streams
    ]
    row = connector_row(request.authority, entry, rows)
    del row["declaration_version"]
    first_of_each = {s.connection_id: s for each in entry.streams for s in each.sources}
    connections = [first_of_each[cid] for cid in sorted(first_of_each)]
    row["granted_connections"] = granted_connections(request.authority, connections)
    return row


def _connector_stream(request: Request, summaries: Sequence[StreamSummary]) -> Row:
    """One stream of a source, over its connections."""
    source = summaries[0].source
    stream = source.declared
    fields = field_capabilities(source)
    place = f"/v1/streams/{quote(stream.name, safe='')}"
    aggregates = stream.aggregations.count or any(
        capability.usable for field in fields for capability in field.aggregations.values()
    )
    expands = any(
        reach(request.authority, s.source, declared).child is not None
        for declared in stream.expansions
        for s in summaries
    )
    updated = [summary.last_updated for summary in summaries if summary.last_updated is not None]
    return {
        "object": "stream",
        "name": stream.name,
        "record_count": sum(summary.record_count for summary in summaries),
        "last_updated": max(updated, default=None),
        "freshness": least_of(summary.freshness for summary in summaries).render(),
        "capabilities": {
            "records": True,
            "records_url": f"{place}/records",
            "stream_metadata": True,
            "metadata_url": place,
            "aggregate": aggregates,
            "aggregate_url": f"{place}/aggregate" if aggregates else None,
            "exact_filters": any(field.exact.usable for field in fields),
            "range_filters": any(field.range.usable for field in fields),
            "expand": expands,
            "changes_since": True,
        },
    }


def _disclosed(summaries: Sequence[StreamSummary]) -> list[Disclosed]:
    """Counts and dates are disclosed, records are not."""
    return [Disclosed(summary.source, (), 0) for summary in summaries]
