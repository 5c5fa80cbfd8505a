"""Schema bodies: full rows, compact rows, and the budget of the compact body.

Rule: rows are made from the declaration and the grant; compact rows say the same in flags.
Source: RS contract 6.3, 6.4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

import orjson

from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
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
from personal_server.reading.schema import ConnectorEntry, StreamEntry

MAX_COMPACT_BYTES = 256 * 1024
COUNT_KINDS = ["none", "estimated", "exact"]
LIMITS = {"default_limit": 25, "max_limit": 100}

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
    """The capabilities of a field in one string.  Source: RS contract 6.4, grammar."""
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
