"""Schema, connector and stream routes.  Source: docs/contract/resource-server.md 6."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import orjson

from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import Warning, render_unavailable
from personal_server.domain.stream_schema import value_types
from personal_server.enforcement.capabilities import (
    AGGREGATIONS,
    MODE_NOT_AVAILABLE,
    FieldCapabilities,
    constraints_of,
    expand_capabilities,
    field_capabilities,
    search_capability,
    sort_capability,
    usable_metrics,
    usable_views,
)
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.expansion import reach
from personal_server.enforcement.queries import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    SchemaQuery,
    StreamQuery,
)
from personal_server.errors import InvalidRequest
from personal_server.reading.freshness import least_of
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.reading.schema import (
    ConnectorEntry,
    Described,
    StreamEntry,
    StreamSummary,
    describe_schema,
    describe_stream,
    grouped,
    summarize_streams,
)
from personal_server.resource_server.envelopes import list_body, object_body
from personal_server.resource_server.read_parameters import selectors_of, snapshot_of
from personal_server.web.parameters import Parameters
from personal_server.web.requests import Request
from personal_server.web.responses import Reply

# Schema bodies: full rows, compact rows, and the budget of the compact body.
#
# Rule: rows are made from the declaration and the grant; compact rows say the same in flags.
# Source: docs/contract/resource-server.md 6.3, 6.4.


MAX_COMPACT_BYTES = 256 * 1024
COUNT_KINDS = ["none", "estimated", "exact"]
LIMITS = {"default_limit": DEFAULT_LIMIT, "max_limit": MAX_LIMIT}

_UNSAFE = re.compile(r"\s+|[;,\[\]{}=]")

Row = dict[str, object]


def bearer_of(authority: ReadAuthority) -> Row:
    """Who is asking, and on which terms."""
    kind = authority.kind
    if kind is TokenKind.OWNER:
        return {"token_kind": kind.value, "scope": "owner", "client_id": authority.client_id}
    if kind is TokenKind.PACKAGE:
        reference = authority.package_id or ""
        members: Row = {
            "token_kind": kind.value,
            "scope": "package",
            "grant_package_id": authority.package_id,
            "client_id": authority.client_id,
            "grant_ids": list(authority.grant_ids),
        }
    else:
        reference = authority.grant_ids[0]
        members = {
            "token_kind": kind.value,
            "scope": "grant",
            "grant_id": reference,
            "client_id": authority.client_id,
        }
    return {**members, **_access(authority), "manage_url": f"/owner/access/{quote(reference)}"}


def package_meta(authority: ReadAuthority) -> Row:
    """`meta.package` of schema bodies; nothing for other tokens."""
    if authority.kind is not TokenKind.PACKAGE:
        return {}
    partial = bool(authority.unavailable)
    return {"package": {"member_count": len(authority.grant_ids), "partial": partial}}


def connector_row(authority: ReadAuthority, entry: ConnectorEntry, streams: Sequence[Row]) -> Row:
    """One source with its stream rows."""
    source = entry.first
    row: Row = {
        "object": "connector",
        "source": {"kind": source.source.kind, "id": source.source.id},
        "connector_key": source.connector_key,
        "connector_id": source.connector_key,
        "display_name": source.source_name,
        "declaration_version": source.declaration_version,
        "stream_count": len(streams),
    }
    if authority.kind is TokenKind.PACKAGE:
        row["grant_id"] = source.grant_id
    row["streams"] = list(streams)
    return row


def full_row(authority: ReadAuthority, entry: StreamEntry) -> Row:
    """A stream row of the full body."""
    source = entry.first
    stream = source.declared
    return {
        "object": "stream_metadata",
        "name": stream.name,
        "display": stream.raw.get("display"),
        "primary_key": list(stream.primary_key),
        "cursor_field": stream.cursor_field,
        "consent_time_field": stream.consent_time_field,
        "semantics": stream.semantics.value,
        "schema": stream.raw.get("schema"),
        "selection": {
            "fields": stream.selectable_fields,
            "resources": stream.selectable_resources,
        },
        "views": usable_views(source),
        "relationships": stream.raw.get("relationships", []),
        "query": stream.raw.get("query", {}),
        "sort": sort_capability(source),
        "count": COUNT_KINDS,
        "search": search_capability(source),
        "aggregate": {"metrics": usable_metrics(source)},
        "limits": LIMITS,
        "freshness": entry.freshness,
        "constraints": constraints_of(source),
        "field_capabilities": {f.declared.name: _full_field(f) for f in field_capabilities(source)},
        "expand_capabilities": expand_capabilities(authority, entry.sources),
        "granted_connections": granted_connections(authority, entry.sources),
    }


def compact_row(authority: ReadAuthority, entry: StreamEntry) -> Row:
    """A stream row of the compact body."""
    source = entry.first
    stream = source.declared
    constraints = constraints_of(source)
    row: Row = {
        "name": stream.name,
        "display_name": stream.label,
        "primary_key": list(stream.primary_key),
        "cursor_field": stream.cursor_field,
        "consent_time_field": stream.consent_time_field,
        "sort": sort_capability(source),
        "count": COUNT_KINDS,
        "views": [{"id": view["id"], "fields": view["fields"]} for view in usable_views(source)],
        "search": search_capability(source),
        "aggregate": {"metrics": usable_metrics(source)},
        "limits": LIMITS,
        "field_capabilities": {f.declared.name: flags(f) for f in field_capabilities(source)},
        "expand_capabilities": [
            {name: value for name, value in each.items() if name != "child_parent_key_field"}
            for each in expand_capabilities(authority, entry.sources)
        ],
        "granted_connections": granted_connections(authority, entry.sources),
    }
    if any(value is not None for value in constraints.values()):
        row["constraints"] = constraints
    if entry.freshness is not None:
        row["freshness"] = entry.freshness
    return row


def granted_connections(authority: ReadAuthority, sources: Sequence[ReadableSource]) -> list[Row]:
    """The connections on which a stream is granted."""
    rows: list[Row] = []
    for source in sources:
        row: Row = {"connection_id": source.connection_id}
        if source.display_name is not None:
            row["display_name"] = source.display_name
        if authority.kind is TokenKind.PACKAGE:
            row["grant_id"] = source.grant_id
        rows.append(row)
    return rows


def flags(field: FieldCapabilities) -> str:
    """The capabilities of a field in one string.

    Source: docs/contract/resource-server.md 6.4, grammar.
    """
    declared = field.declared
    kind = declared.type or "|".join(value_types(declared.schema))
    found = [f"t={_clean(kind)}"] if kind else []
    if declared.role:
        found.append(f"role={_clean(declared.role)}")
    if not field.granted:
        return ",".join([*found, "g=false"])
    if field.exact.usable:
        found.append("eq")
    if field.range.usable:
        found.append("r=" + "|".join(field.operators))
    for name, capability in (("lex", field.lexical), ("sem", field.semantic)):
        if capability.usable:
            found.append(name)
        elif capability.declared:
            found.append(f"{name}=unusable:{capability.reason or MODE_NOT_AVAILABLE}")
    usable = [kind for kind in AGGREGATIONS if field.aggregations[kind].usable]
    if usable:
        found.append("a=" + "|".join(usable))
    return ",".join(found) or "declared"


def lift_connections(connector: Row) -> None:
    """Move the most frequent set of connections from the rows to their connector."""
    rows = [row for row in _rows(connector) if row.get("granted_connections")]
    if not rows:
        return
    keys = [orjson.dumps(row["granted_connections"]) for row in rows]
    most, _ = Counter(keys).most_common(1)[0]
    connector["granted_connections"] = orjson.loads(most)
    for row, key in zip(rows, keys, strict=True):
        if key == most:
            del row["granted_connections"]


def fit_budget(body: Row, connectors: Sequence[Row]) -> bool:
    """Shorten rows from the last one up until the body fits; whether any was shortened."""
    excess = len(orjson.dumps(body)) - MAX_COMPACT_BYTES
    reduced = False
    for row in reversed([row for connector in connectors for row in _rows(connector)]):
        if excess <= 0:
            break
        before = len(orjson.dumps(row))
        for name in ("field_capabilities", "expand_capabilities", "views"):
            row.pop(name, None)
        row["reduced"] = reduced = True
        excess -= before - len(orjson.dumps(row))
    return reduced


def _rows(connector: Row) -> list[Row]:
    rows = connector["streams"]
    return rows if isinstance(rows, list) else []  # pyright: ignore[reportUnknownVariableType] -- made by connector_row


def _access(authority: ReadAuthority) -> Row:
    access = authority.access
    if access is None:
        return {}
    members: Row = {
        "expires_at": access.expires_at,
        "access_mode": access.access_mode,
        "purpose_code": access.purpose_code,
    }
    if access.purpose_description is not None:
        members["purpose_description"] = access.purpose_description
    return members


def _full_field(field: FieldCapabilities) -> Row:
    row: Row = {}
    if field.declared.type is not None:
        row["type"] = field.declared.type
    if field.declared.role is not None:
        row["role"] = field.declared.role
    return {
        **row,
        "schema": field.declared.schema,
        "granted": field.granted,
        "exact_filter": field.exact.render(),
        "range_filter": {**field.range.render(), "operators": list(field.operators)},
        "sort": field.sort.render(),
        "lexical_search": field.lexical.render(),
        "semantic_search": field.semantic.render(),
        "aggregation": {kind: c.render() for kind, c in field.aggregations.items()},
    }


def _clean(value: str) -> str:
    return _UNSAFE.sub("_", value)


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
        entry = describe_stream(self._ports, snapshot_of(request), request.authority, query)
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
        return summarize_streams(self._ports, snapshot_of(request), request.authority, query)

    def _unavailable(self, request: Request) -> dict[str, object]:
        return unavailable_meta(request.authority, selectors_of(request.parameters))


def schema_query(sent: Parameters) -> SchemaQuery:
    """The schema that was asked for.

    Source: docs/contract/resource-server.md 6.2.
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
