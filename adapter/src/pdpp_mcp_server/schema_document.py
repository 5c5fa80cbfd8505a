"""A schema document: its rows, the flags of their fields, and the document narrowed or reduced.

Source: docs/contract/mcp-adapter.md 3.6, 8.2, 10.1; docs/contract/resource-server.md 6.3, 6.4. The
compact view is made here when a server does not make it: same flags, same lifting of shared
connections, same scoping.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from pdpp_kernel.aggregations import FIGURE_WORDS
from pdpp_kernel.operators import RANGE_OPERATORS, FilterFlag, Operator, operators_of
from pdpp_mcp_server import contract
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_list,
    as_object,
    as_text,
    compact,
    is_list,
    is_object,
    objects_in,
)
from pdpp_mcp_server.safe_text import label

SET, TEXT, NAME = FilterFlag
LEGEND = {
    "t": "type",
    "role": "meaning",
    Operator.EQ.value: "exact filter",
    "f": (
        f"more filters: {SET}={', '.join(operators_of(SET))};"
        f" {TEXT}=also {', '.join(operators_of(TEXT))}; {NAME}={TEXT} in any case"
    ),
    "r": "range operators",
    "lex": "lexical search",
    "sem": "semantic search",
    "a": "aggregations",
    "g=false": "not granted",
    "NAME=unusable:WHY": "declared but not usable",
    "declared": "projection only",
}
KNOWN_FLAGS = frozenset(
    {"t", "role", Operator.EQ.value, "f", "r", "lex", "sem", "a", "g", "declared"}
)
BINARY_TYPES = frozenset({"blob", "binary"})
BINARY_ENCODINGS = frozenset({"base64", "base64url"})
RESERVED = re.compile(r"[;,\[\]{}=]|\s+")

KEPT_MEMBERS = (
    "name",
    "display_name",
    "primary_key",
    "cursor_field",
    "consent_time_field",
    "sort",
    "count",
    "views",
    "search",
    "aggregate",
    "limits",
    "constraints",
    "fields_left_out",
    "visible",
    "field_capabilities",
    "expand_capabilities",
    "granted_connections",
    "connection_id",
    "connector_key",
    "reduced",
)

FULL_MARGIN_CHARS = 1_500
"""Room for what stands beside the document of `full_schema`."""


class ConnectionLabel(msgspec.Struct, frozen=True):
    """An account as the schema names it to an agent."""

    connection_id: str
    display_name: str | None = None
    grant_id: str | None = None


class CatalogRow(msgspec.Struct, frozen=True):
    """One stream of one connector; connections are its own or the connector's shared ones."""

    row: Json
    connector: Json
    connector_key: str | None
    connections: tuple[ConnectionLabel, ...]

    @property
    def name(self) -> str:
        """The stream's name."""
        return as_text(self.row.get("name")) or as_text(self.row.get("stream")) or ""


def catalog_rows(catalog: Json) -> list[CatalogRow]:
    """Every stream row, grouped under connectors or standing at the top."""
    found: list[CatalogRow] = []
    for connector in objects_in(catalog.get("connectors")):
        found += [_row(row, connector) for row in objects_in(connector.get("streams"))]
    return found or [_row(row, row) for row in objects_in(catalog.get("streams"))]


def _row(row: Json, connector: Json) -> CatalogRow:
    own = connections_in(row) or connections_in(connector)
    key = connector_key_of(row) or connector_key_of(connector)
    return CatalogRow(row, connector, key, own)


def connections_in(holder: Json) -> tuple[ConnectionLabel, ...]:
    """The connections a row or connector lists, in either spelling."""
    listed = [
        ConnectionLabel(
            connection, as_text(item.get("display_name")), as_text(item.get("grant_id"))
        )
        for item in objects_in(holder.get("granted_connections"))
        if (connection := connection_of(item))
    ]
    if not listed and (single := connection_of(holder)):
        label, grant = as_text(holder.get("display_name")), as_text(holder.get("grant_id"))
        return (ConnectionLabel(single, label, grant),)
    return tuple(listed)


def rows_of_stream(
    catalog: Json, stream: str, connection_id: str | None = None
) -> list[CatalogRow]:
    """Rows of one stream, and of one connection when it is given."""
    return [
        row
        for row in catalog_rows(catalog)
        if row.name == stream and (connection_id is None or covers(row, connection_id))
    ]


def covers(row: CatalogRow, connection_id: str) -> bool:
    """Whether a row is reachable on a connection; a row that names none may be."""
    return not row.connections or any(c.connection_id == connection_id for c in row.connections)


def all_connections(catalog: Json) -> dict[str, tuple[ConnectionLabel, str | None]]:
    """Every connection once, with its connector's key, in order of appearance."""
    found: dict[str, tuple[ConnectionLabel, str | None]] = {}
    for connector in objects_in(catalog.get("connectors")):
        for connection in connections_in(connector):
            found.setdefault(connection.connection_id, (connection, connector_key_of(connector)))
    for row in catalog_rows(catalog):
        for connection in row.connections:
            found.setdefault(connection.connection_id, (connection, row.connector_key))
    return found


def unavailable_in(catalog: Json) -> list[Json]:
    """Connections that cannot be read."""
    listed = catalog.get("unavailable_connections")
    if listed is None and is_object(catalog.get("meta")):
        listed = catalog["meta"].get("unavailable_connections")
    return objects_in(listed)


def field_schemas(row: Json) -> Json:
    """The JSON Schema of each field of a row."""
    return as_object(as_object(row.get("schema")).get("properties"))


def each_row(data: Json, change: Callable[[Json], Json]) -> Json:
    """The document with every stream row changed."""
    found = dict(data)
    if "connectors" in found:
        found["connectors"] = [
            {**item, "streams": [change(row) for row in objects_in(item.get("streams"))]}
            for item in objects_in(found["connectors"])
        ]
    if "streams" in found:
        found["streams"] = [change(row) for row in objects_in(found["streams"])]
    return found


def without_alias(value: Any) -> Any:
    """A catalog without the retired spelling of `connection_id`; JSON Schemas are left alone."""
    if is_list(value):
        return [without_alias(item) for item in value]
    if not is_object(value):
        return value
    found: Json = {}
    for name, item in value.items():
        if name == "connector_instance_id":
            found.setdefault("connection_id", item)
        elif name in {"schema", "field_capabilities"}:
            found[name] = item
        else:
            found[name] = without_alias(item)
    if "connector_instance_id" in value and as_text(value.get("connection_id")):
        found["connection_id"] = value["connection_id"]
    return found


def scoped_to(catalog: Json, stream: str | None, connection_id: str | None) -> Json:
    """Only rows of the stream, only the connection; the body itself when nothing has to go."""
    found = dict(catalog)
    if is_list(catalog.get("connectors")):
        kept = [
            _scoped_connector(item, stream, connection_id)
            for item in objects_in(catalog["connectors"])
        ]
        found["connectors"] = [item for item in kept if item is not None]
    if is_list(catalog.get("streams")):
        found["streams"] = _scoped_rows(objects_in(catalog["streams"]), stream, connection_id)
    if found == catalog:
        return catalog
    connectors = objects_in(found.get("connectors"))
    rows = [row for item in connectors for row in objects_in(item.get("streams"))]
    counts = {
        "connector_count": len(connectors),
        "stream_count": len(rows or objects_in(found.get("streams"))),
    }
    return {**found, **{name: value for name, value in counts.items() if name in found}}


def _scoped_connector(
    connector: Json, stream: str | None, connection_id: str | None
) -> Json | None:
    shared = connections_in(connector)
    rows = objects_in(connector.get("streams"))
    if connection_id and shared and all(c.connection_id != connection_id for c in shared):
        rows = [row for row in rows if connections_in(row)]
    kept = _scoped_rows(rows, stream, connection_id)
    if not kept and objects_in(connector.get("streams")):
        return None
    narrowed = _narrowed(connector, connection_id)
    return {**narrowed, "streams": kept} if kept != connector.get("streams") else narrowed


def _scoped_rows(rows: list[Json], stream: str | None, connection_id: str | None) -> list[Json]:
    kept: list[Json] = []
    for row in rows:
        named = connections_in(row)
        outside = connection_id and named and all(c.connection_id != connection_id for c in named)
        if (stream is None or row.get("name", row.get("stream")) == stream) and not outside:
            kept.append(_narrowed(row, connection_id))
    return kept


def _narrowed(holder: Json, connection_id: str | None) -> Json:
    listed = holder.get("granted_connections")
    if connection_id is None or not is_list(listed):
        return holder
    kept = [item for item in objects_in(listed) if connection_of(item) == connection_id]
    return holder if kept == listed else {**holder, "granted_connections": kept}


def compact_catalog(catalog: Json, *, scoped: bool) -> Json:
    """A full body in compact form; a compact one as it is."""
    if catalog.get("detail") == "compact":
        return catalog
    found: Json = {**catalog, "detail": "compact"}
    if is_list(catalog.get("connectors")):
        found["connectors"] = [
            _connector(connector, scoped=scoped) for connector in objects_in(catalog["connectors"])
        ]
        if any(objects_in(item.get("streams")) for item in found["connectors"]):
            found.pop("streams", None)
    if "streams" in found:
        found["streams"] = [
            _compact_row(row, scoped=scoped) for row in objects_in(found["streams"])
        ]
    return found


def _connector(connector: Json, *, scoped: bool) -> Json:
    """The most frequent set of connections stands at the connector, rows with it drop theirs."""
    rows = [_compact_row(row, scoped=scoped) for row in objects_in(connector.get("streams"))]
    keyed = [_key(row) for row in rows]
    counted = Counter(key for key in keyed if key)
    if connector.get("granted_connections") or not counted:
        return {**connector, "streams": rows}
    shared = counted.most_common(1)[0][0]
    first = next(row for row, key in zip(rows, keyed, strict=True) if key == shared)
    kept = [
        {name: value for name, value in row.items() if name != "granted_connections"}
        if key == shared
        else row
        for row, key in zip(rows, keyed, strict=True)
    ]
    lifted = {"granted_connections": first["granted_connections"], "streams": kept}
    return {**connector, **lifted}


def _key(row: Json) -> tuple[str, ...]:
    if not is_list(row.get("granted_connections")):
        return ()
    return tuple(sorted(connection.connection_id for connection in connections_in(row)))


def _compact_row(row: Json, *, scoped: bool) -> Json:
    names = (*KEPT_MEMBERS, "freshness") if scoped else KEPT_MEMBERS
    found = {name: row[name] for name in names if name in row}
    label = as_text(as_object(row.get("display")).get("label"))
    if label and "display_name" not in found:
        found["display_name"] = label
    properties = field_schemas(row)
    capabilities = as_object(row.get("field_capabilities"))
    declared = capabilities or dict.fromkeys(properties)
    if declared:
        found["field_capabilities"] = {
            name: flags_of(capability, properties.get(name))
            for name, capability in declared.items()
        }
    hidden = sum(as_object(each).get("granted") is False for each in capabilities.values())
    if hidden:
        found.setdefault("fields_left_out", hidden)
    if is_list(found.get("views")):
        found["views"] = [_view(view) for view in found["views"]]
    if not any(value is not None for value in as_object(found.get("constraints")).values()):
        found.pop("constraints", None)
    if is_list(row.get("expand_capabilities")):
        found["expand_capabilities"] = [_relation(item) for item in row["expand_capabilities"]]
    return {name: found[name] for name in (*names, *found) if name in found}


def _view(view: Any) -> Any:
    if not is_object(view):
        return view
    return {name: view[name] for name in ("id", "fields") if name in view}


def _relation(item: Any) -> Any:
    if not is_object(item):
        return item
    return {name: value for name, value in item.items() if name != "child_parent_key_field"}


def full_schema(catalog: Json) -> tuple[Json, list[Json]]:
    """The document, and warnings naming the field schemas left out for length."""
    data = dict(catalog)
    if any(objects_in(item.get("streams")) for item in objects_in(data.get("connectors"))):
        data.pop("streams", None)
    data = each_row(data, _once)
    left_out: list[str] = []
    while len(compact(data)) > contract.CEILING - FULL_MARGIN_CHARS:
        name = _largest(data)
        if name is None:
            break
        left_out.append(name)
        data = each_row(data, partial(_without, name))
    if not left_out:
        return data, []
    names = ", ".join(label(name) for name in left_out[:20])
    more = f" and {len(left_out) - 20} more" if len(left_out) > 20 else ""
    message = f"field schemas left out for length: {names}{more}"
    return data, [{"code": "schema_detail_reduced", "message": message}]


def _once(row: Json) -> Json:
    properties = field_schemas(row)
    capabilities = as_object(row.get("field_capabilities"))
    if not capabilities:
        return row
    kept: Json = {}
    for name, facts in capabilities.items():
        repeated = (
            is_object(facts) and "schema" in facts and facts["schema"] == properties.get(name)
        )
        kept[name] = {k: v for k, v in facts.items() if k != "schema"} if repeated else facts
    return {**row, "field_capabilities": kept}


def _largest(data: Json) -> str | None:
    rows = [
        row
        for item in objects_in(data.get("connectors"))
        for row in objects_in(item.get("streams"))
    ]
    sizes = {
        name: len(compact(schema))
        for row in rows or objects_in(data.get("streams"))
        for name, schema in field_schemas(row).items()
    }
    return max(sizes, key=lambda name: sizes[name]) if sizes else None


def _without(name: str, row: Json) -> Json:
    schema = as_object(row.get("schema"))
    properties = {key: value for key, value in field_schemas(row).items() if key != name}
    found: Json = {**row, "schema": {**schema, "properties": properties}}
    capabilities = as_object(row.get("field_capabilities"))
    if is_object(capabilities.get(name)):
        facts = {key: value for key, value in capabilities[name].items() if key != "schema"}
        found["field_capabilities"] = {**capabilities, name: facts}
    return found


def flags_of(capability: object, schema: object) -> str:
    """The flags of one field, from the full form or as sent."""
    if isinstance(capability, str):
        return capability
    facts = as_object(capability)
    flags = [f"t={kind}" for kind in [_type(facts, as_object(schema))] if kind]
    role = as_text(facts.get("role"))
    if role:
        flags.append(f"role={_plain(role)}")
    if facts.get("granted") is False:
        flags.append("g=false")
    else:
        flags += _usable(facts)
    return ",".join(flags) or "declared"


def _type(facts: Json, schema: Json) -> str | None:
    own = as_object(facts.get("schema")) or schema
    kind = facts.get("type") or own.get("x_pdpp_type") or own.get("type")
    if is_list(kind):
        return "|".join(_plain(str(item)) for item in kind)
    return _plain(kind) if isinstance(kind, str) else None


def _plain(value: str) -> str:
    return RESERVED.sub("_", value)


def _usable(facts: Json) -> list[str]:
    flags: list[str] = []
    exact = as_object(facts.get("exact_filter"))
    if _is_usable(facts.get("exact_filter")):
        flags.append(Operator.EQ.value)
    if _is_usable(exact) and exact.get("operators"):
        has_parts = Operator.CONTAINS in as_list(exact["operators"])
        flags.append(f"f={NAME if exact.get('caseless') else TEXT if has_parts else SET}")
    ranges = as_object(facts.get("range_filter"))
    if _is_usable(ranges):
        named = [name for name in RANGE_OPERATORS if name in as_list(ranges.get("operators"))]
        flags.append("r=" + "|".join(named))
    for short, name in (("lex", "lexical_search"), ("sem", "semantic_search")):
        flags += _search_flag(short, as_object(facts.get(name)))
    sums = as_object(facts.get("aggregation"))
    kinds = [name for name in FIGURE_WORDS if _is_usable(sums.get(name))]
    return [*flags, *(["a=" + "|".join(kinds)] if kinds else [])]


def _is_usable(capability: object) -> bool:
    return capability is True or as_object(capability).get("usable") is True


def _search_flag(short: str, capability: Json) -> list[str]:
    if capability.get("usable") is True:
        return [short]
    if capability.get("declared") is True:
        return [f"{short}=unusable:{_plain(as_text(capability.get('reason')) or 'unknown')}"]
    return []


def split_flags(text: str) -> list[tuple[str, str]]:
    """The flags of a field as (name, value) pairs."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return [(name, value) for name, _, value in pairs]


def aggregations_in(text: str) -> list[str]:
    """The aggregations a field's flags name."""
    return [kind for name, value in split_flags(text) if name == "a" for kind in value.split("|")]


def legend_for(texts: Iterable[str]) -> dict[str, str]:
    """The legend, with an entry for every flag of these texts that it does not know."""
    found = dict(LEGEND)
    for text in texts:
        for name, _ in split_flags(text):
            if name not in KNOWN_FLAGS:
                found.setdefault(name, "as stated by the server")
    return found


def binary_fields(row: Json) -> list[str]:
    """The fields of a stream row, compact or full, whose declaration says that they hold bytes."""
    schemas = field_schemas(row)
    stated = as_object(row.get("field_capabilities"))
    return [
        name
        for name in dict.fromkeys((*stated, *schemas))
        if _is_binary(stated.get(name), as_object(schemas.get(name)))
    ]


def _is_binary(capability: object, schema: Json) -> bool:
    own = as_object(as_object(capability).get("schema")) or schema
    if own.get("contentEncoding") in BINARY_ENCODINGS:
        return True
    kinds = {
        kind
        for name, value in split_flags(flags_of(capability, schema))
        if name == "t"
        for kind in value.split("|")
    }
    return bool(kinds & BINARY_TYPES)
