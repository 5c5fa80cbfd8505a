"""Schema bodies: full rows, compact rows, and the budget of the compact body.

Rule: rows are made from the declaration and the grant; compact rows say the same in flags.
Source: docs/contract/resource-server.md 6.3, 6.4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast
from urllib.parse import quote

import msgspec

from pdpp_kernel.aggregations import FIGURE_WORDS
from pdpp_kernel.declaration import Property, Semantics
from pdpp_kernel.operators import FilterFlag, Operator, operators_of
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import (
    AnyObject,
    ConnectionId,
    Count,
    Instant,
    RoutePath,
    WireObject,
    Word,
    Yes,
)
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.domain.disclosure import TokenName
from personal_server.domain.envelope import UnavailableConnections
from personal_server.domain.skipped_sources import MODE_NOT_AVAILABLE
from personal_server.domain.stream_schema import value_types
from personal_server.enforcement.capabilities import (
    Capability,
    Constraints,
    ExpandCapability,
    FieldCapabilities,
    SearchCapability,
    SortCapability,
    constraints_of,
    expand_capabilities,
    field_capabilities,
    search_capability,
    sort_capability,
    usable_metrics,
    usable_views,
)
from personal_server.enforcement.queries import DEFAULT_LIMIT, MAX_LIMIT
from personal_server.reading.freshness import ShownFreshness
from personal_server.reading.schema import ConnectorEntry, Glance, StreamEntry
from personal_server.resource_server.envelopes import (
    ListOf,
    Meta,
    SelfLink,
    ShownSource,
    StreamLabel,
    shown_source,
)

MAX_COMPACT_BYTES = 256 * 1024
COUNT_KINDS = ("none", "estimated", "exact")


_TEXT_OPERATORS = frozenset(operators_of(FilterFlag.TEXT))
_UNSAFE = re.compile(r"\s+|[;,\[\]{}=]")


class Bearer(WireObject, kw_only=True):
    """Who is asking, and on which terms."""

    token_kind: TokenName
    scope: str
    grant_id: str | None = None
    grant_package_id: str | None = None
    client_id: str | None
    grant_ids: Sequence[str] | None = None
    expires_at: str | msgspec.UnsetType | None = msgspec.UNSET
    access_mode: str | None = None
    purpose_code: str | None = None
    purpose_description: str | None = None
    manage_url: str | None = None


class PageLimits(WireObject):
    """How many items a page holds."""

    default_limit: Count
    max_limit: Count


LIMITS = PageLimits(default_limit=DEFAULT_LIMIT, max_limit=MAX_LIMIT)


class AggregateCapability(WireObject):
    """The metrics of a stream that this token can use."""

    metrics: Sequence[str]


class ShownField(WireObject, kw_only=True):
    """A field of a stream, and what may be done with it."""

    type: str | None = None
    role: str | None = None
    schema: AnyObject | bool
    granted: bool
    exact_filter: Capability
    range_filter: Capability
    sort: Capability
    lexical_search: Capability
    semantic_search: Capability
    aggregation: Mapping[str, Capability]


class GrantedConnection(WireObject):
    """A connection on which a stream is granted."""

    connection_id: ConnectionId
    display_name: str | None = None
    grant_id: str | None = None


class StreamMetadata(WireObject, kw_only=True, tag_field="object", tag="stream_metadata"):
    """A stream in full."""

    component: ClassVar = "StreamMetadata"

    name: Word
    display: StreamLabel
    primary_key: Sequence[Word]
    cursor_field: Word | None
    consent_time_field: Word | None
    semantics: Semantics
    schema: AnyObject
    selection: AnyObject
    views: Sequence[AnyObject]
    relationships: Sequence[AnyObject]
    query: AnyObject
    sort: SortCapability
    count: Sequence[str]
    search: SearchCapability
    aggregate: AggregateCapability
    limits: PageLimits
    freshness: ShownFreshness
    constraints: Constraints
    field_capabilities: Mapping[str, ShownField]
    expand_capabilities: Sequence[ExpandCapability]
    granted_connections: Sequence[GrantedConnection]


class SingleStream(StreamMetadata, kw_only=True):
    """One stream."""

    component: ClassVar = "SingleStream"

    links: SelfLink
    meta: Meta


class CompactView(WireObject):
    """A view in few words."""

    id: Word
    fields: Sequence[Word]


class ShownGlance(WireObject, kw_only=True):
    """What of a stream's records is visible."""

    component: ClassVar = "Glance"

    records: Count
    more: Yes | None = None
    time_field: Word | None = None
    earliest: str | None = None
    latest: str | None = None
    collected_at: Instant | None = None


class Today(WireObject):
    """The owner's calendar."""

    date: str
    time_zone: str


class CompactStream(WireObject, kw_only=True):
    """A stream in few words: what may be done with a field is said in flags."""

    component: ClassVar = "CompactStream"

    name: Word
    display_name: str | None = None
    primary_key: Sequence[Word]
    cursor_field: Word | None
    consent_time_field: Word | None
    sort: SortCapability
    count: Sequence[str]
    views: Sequence[CompactView] | None = None
    search: SearchCapability
    aggregate: AggregateCapability
    limits: PageLimits
    field_capabilities: Mapping[str, Word] | None = None
    expand_capabilities: Sequence[ExpandCapability] | None = None
    granted_connections: Sequence[GrantedConnection] | None = None
    constraints: Constraints | None = None
    fields_left_out: Count | None = None
    visible: ShownGlance | None = None
    freshness: ShownFreshness | None = None
    reduced: Yes | None = None


class StreamCapabilities(WireObject):
    """What may be done with a stream, and where."""

    records: bool
    records_url: RoutePath
    stream_metadata: bool
    metadata_url: RoutePath
    aggregate: bool
    aggregate_url: RoutePath | None
    exact_filters: bool
    range_filters: bool
    expand: bool
    changes_since: bool


class ListedStream(WireObject, tag_field="object", tag="stream"):
    """A stream of a source, over its connections."""

    name: Word
    record_count: Count
    last_updated: Instant | None
    freshness: ShownFreshness
    capabilities: StreamCapabilities


class ListedConnector(WireObject, kw_only=True, tag_field="object", tag="connector"):
    """A source in a list, with its streams."""

    source: ShownSource
    connector_key: Word
    connector_id: Word
    display_name: str
    stream_count: Count
    grant_id: str | None = None
    streams: Sequence[ListedStream]
    granted_connections: Sequence[GrantedConnection]


class ConnectorList(ListOf[ListedConnector]):
    """The sources that a token can read."""

    component: ClassVar = "ConnectorList"


class SchemaConnector(WireObject, kw_only=True, tag_field="object", tag="connector"):
    """A source of a schema, with its stream rows."""

    source: ShownSource
    connector_key: Word
    connector_id: Word
    display_name: str
    declaration_version: Word
    stream_count: Count
    grant_id: str | None = None
    streams: Sequence[StreamMetadata | CompactStream]
    granted_connections: Sequence[GrantedConnection] | None = None


class SchemaBody(WireObject, kw_only=True, tag_field="object", tag="schema"):
    """What a token can read, and how."""

    component: ClassVar = "Schema"

    bearer: Bearer
    connector_count: Count
    stream_count: Count
    unavailable_connections: UnavailableConnections
    unavailable_connection_count: Count | None = None
    connectors: Sequence[SchemaConnector]
    detail: Literal["compact"] | None = None
    today: Today | None = None
    links: SelfLink
    meta: Meta


class ShownStream(WireObject, kw_only=True, tag_field="object", tag="stream"):
    """A stream of a connection, with its number of records."""

    name: Word
    record_count: Count
    last_updated: Instant | None
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None
    connector_id: Word
    source: ShownSource
    freshness: ShownFreshness


class StreamList(ListOf[ShownStream]):
    """Streams by connection."""

    component: ClassVar = "StreamList"


def bearer_of(authority: ReadAuthority) -> Bearer:
    """Who is asking, and on which terms."""
    kind = authority.kind
    if kind is TokenKind.OWNER:
        return Bearer(token_kind=kind.value, scope="owner", client_id=authority.client_id)
    if kind is TokenKind.PACKAGE:
        reference = authority.package_id or ""
        return Bearer(
            token_kind=kind.value,
            scope="package",
            grant_package_id=reference,
            client_id=authority.client_id,
            grant_ids=authority.grant_ids,
            **_access(authority, reference),
        )
    reference = authority.grant_ids[0]
    return Bearer(
        token_kind=kind.value,
        scope="grant",
        grant_id=reference,
        client_id=authority.client_id,
        **_access(authority, reference),
    )


def package_meta(authority: ReadAuthority) -> dict[str, object]:
    """`meta.package` of schema bodies; nothing for other tokens."""
    if authority.kind is not TokenKind.PACKAGE:
        return {}
    partial = bool(authority.unavailable)
    return {"package": {"member_count": len(authority.grant_ids), "partial": partial}}


def connector_row(
    authority: ReadAuthority,
    entry: ConnectorEntry,
    streams: Sequence[StreamMetadata] | Sequence[CompactStream],
) -> SchemaConnector:
    """One source with its stream rows."""
    return SchemaConnector(
        **connector_members(authority, entry),
        declaration_version=entry.first.declaration_version,
        stream_count=len(streams),
        streams=streams,
    )


def connector_members(authority: ReadAuthority, entry: ConnectorEntry) -> dict[str, Any]:
    """What full and compact bodies say of a connector."""
    source = entry.first
    return {
        "source": shown_source(source.source.kind, source.source.id),
        "connector_key": source.connector_key,
        "connector_id": source.connector_key,
        "display_name": source.source_name,
        "grant_id": source.grant_id if authority.kind is TokenKind.PACKAGE else None,
    }


def full_row(authority: ReadAuthority, entry: StreamEntry) -> StreamMetadata:
    """A stream row of the full body."""
    source = entry.first
    stream = source.declared
    raw = cast("Mapping[str, Any]", stream.raw)
    return StreamMetadata(
        name=stream.name,
        display=StreamLabel(stream.label, stream.detail),
        primary_key=stream.primary_key,
        cursor_field=stream.cursor_field,
        consent_time_field=stream.consent_time_field,
        semantics=stream.semantics,
        schema=raw["schema"],
        selection={"fields": stream.selectable_fields, "resources": stream.selectable_resources},
        views=[msgspec.structs.asdict(view) for view in usable_views(source)],
        relationships=raw.get("relationships", ()),
        query=raw.get("query", {}),
        sort=sort_capability(source),
        count=COUNT_KINDS,
        search=search_capability(source, entry.embedded),
        aggregate=AggregateCapability(metrics=usable_metrics(source)),
        limits=LIMITS,
        freshness=cast("ShownFreshness", entry.freshness),  # full rows are dated
        constraints=constraints_of(source),
        field_capabilities={
            f.declared.name: _full_field(f) for f in field_capabilities(source, entry.embedded)
        },
        expand_capabilities=expand_capabilities(authority, entry.sources),
        granted_connections=granted_connections(authority, entry.sources),
    )


def compact_row(authority: ReadAuthority, entry: StreamEntry) -> CompactStream:
    """A stream row of the compact body."""
    source = entry.first
    stream = source.declared
    constraints = constraints_of(source)
    return CompactStream(
        name=stream.name,
        display_name=stream.label,
        primary_key=stream.primary_key,
        cursor_field=stream.cursor_field,
        consent_time_field=stream.consent_time_field,
        sort=sort_capability(source),
        count=COUNT_KINDS,
        views=[CompactView(id=view.id, fields=view.fields) for view in usable_views(source)],
        search=search_capability(source, entry.embedded),
        aggregate=AggregateCapability(metrics=usable_metrics(source)),
        limits=LIMITS,
        field_capabilities={
            f.declared.name: flags(f) for f in field_capabilities(source, entry.embedded)
        },
        expand_capabilities=[
            msgspec.structs.replace(each, child_parent_key_field=None)
            for each in expand_capabilities(authority, entry.sources)
        ],
        granted_connections=granted_connections(authority, entry.sources),
        constraints=None if constraints.is_empty else constraints,
        fields_left_out=len(stream.properties) - len(source.fields) or None,
        visible=None if entry.glance is None else _shown_glance(entry.glance),
        freshness=entry.freshness,
    )


def _shown_glance(glance: Glance) -> ShownGlance:
    at_ns = glance.collected_at_ns
    return ShownGlance(
        records=glance.record_count,
        more=True if glance.has_more else None,
        time_field=glance.time_field,
        earliest=glance.earliest,
        latest=glance.latest,
        collected_at=None if at_ns is None else render_instant(at_ns),
    )


def granted_connections(
    authority: ReadAuthority, sources: Sequence[ReadableSource]
) -> list[GrantedConnection]:
    """The connections on which a stream is granted."""
    named = authority.kind is TokenKind.PACKAGE
    return [
        GrantedConnection(
            connection_id=source.connection_id,
            display_name=source.display_name,
            grant_id=source.grant_id if named else None,
        )
        for source in sources
    ]


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
        found += [Operator.EQ.value, f"f={_more_filters(declared)}"]
    if field.range.usable:
        found.append("r=" + "|".join(field.operators))
    for name, capability in (("lex", field.lexical), ("sem", field.semantic)):
        if capability.usable:
            found.append(name)
        elif capability.declared:
            found.append(f"{name}=unusable:{capability.reason or MODE_NOT_AVAILABLE}")
    usable = [kind for kind in FIGURE_WORDS if field.aggregations[kind].usable]
    if usable:
        found.append("a=" + "|".join(usable))
    return ",".join(found) or "declared"


def lift_connections(connector: SchemaConnector, rows: Sequence[CompactStream]) -> None:
    """Move the most frequent set of connections from the rows to their connector."""
    granted = [row for row in rows if row.granted_connections]
    if not granted:
        return
    keys = [msgspec.json.encode(row.granted_connections) for row in granted]
    most, _ = Counter(keys).most_common(1)[0]
    connector.granted_connections = granted[keys.index(most)].granted_connections
    for row, key in zip(granted, keys, strict=True):
        if key == most:
            row.granted_connections = None


def fit_budget(body: SchemaBody) -> bool:
    """Shorten rows from the last one up until the body fits; whether any was shortened."""
    excess = len(msgspec.json.encode(body)) - MAX_COMPACT_BYTES
    reduced = False
    rows = [row for connector in body.connectors for row in connector.streams]
    for row in reversed([row for row in rows if isinstance(row, CompactStream)]):
        if excess <= 0:
            break
        before = len(msgspec.json.encode(row))
        row.field_capabilities = row.expand_capabilities = row.views = None
        row.reduced = reduced = True
        excess -= before - len(msgspec.json.encode(row))
    return reduced


def _access(authority: ReadAuthority, reference: str) -> dict[str, Any]:
    """The terms that clients are told, and where they are managed."""
    members: dict[str, Any] = {"manage_url": f"/owner/access/{quote(reference)}"}
    access = authority.access
    if access is None:
        return members
    return members | {
        "expires_at": access.expires_at,
        "access_mode": access.access_mode,
        "purpose_code": access.purpose_code,
        "purpose_description": access.purpose_description,
    }


def _full_field(field: FieldCapabilities) -> ShownField:
    return ShownField(
        type=field.declared.type,
        role=field.declared.role,
        schema=field.declared.schema,
        granted=field.granted,
        exact_filter=field.exact,
        range_filter=msgspec.structs.replace(field.range, operators=field.operators),
        sort=field.sort,
        lexical_search=field.lexical,
        semantic_search=field.semantic,
        aggregation=field.aggregations,
    )


def _more_filters(declared: Property) -> str:
    if declared.is_caseless:
        return FilterFlag.NAME.value
    has_parts = set(declared.operators) >= _TEXT_OPERATORS
    return (FilterFlag.TEXT if has_parts else FilterFlag.SET).value


def _clean(value: str) -> str:
    return _UNSAFE.sub("_", value)
