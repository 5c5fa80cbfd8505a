"""The compact view of a schema, made here when a server does not make it.

Source: resource-server contract 6.4; MCP adapter contract 3.6. Same flags, same lifting of shared
connections, same scoping as a server that knows the view.
"""

from collections import Counter
from typing import Any

from personal_server.mcp_adapter.catalog import connections_in
from personal_server.mcp_adapter.flags import flags_of
from personal_server.rs_client.json_values import (
    Json,
    as_object,
    as_text,
    is_list,
    is_object,
    objects_in,
)
from personal_server.rs_client.normalize import connection_of

kept_members = (
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
    "field_capabilities",
    "expand_capabilities",
    "granted_connections",
    "connection_id",
    "connector_key",
    "reduced",
)


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
        found["streams"] = [compact_row(row, scoped=scoped) for row in objects_in(found["streams"])]
    return found


def _connector(connector: Json, *, scoped: bool) -> Json:
    rows = [compact_row(row, scoped=scoped) for row in objects_in(connector.get("streams"))]
    return {**connector, **_lifted(connector, rows)}


def _lifted(connector: Json, rows: list[Json]) -> Json:
    """The most frequent set of connections stands at the connector, rows with it drop theirs."""
    keyed = [_key(row) for row in rows]
    counted = Counter(key for key in keyed if key)
    if connector.get("granted_connections") or not counted:
        return {"streams": rows}
    shared = counted.most_common(1)[0][0]
    held = next(row for row, key in zip(rows, keyed, strict=True) if key == shared)
    kept = [
        {name: value for name, value in row.items() if name != "granted_connections"}
        if key == shared
        else row
        for row, key in zip(rows, keyed, strict=True)
    ]
    return {"granted_connections": held["granted_connections"], "streams": kept}


def _key(row: Json) -> tuple[str, ...]:
    if not is_list(row.get("granted_connections")):
        return ()
    return tuple(sorted(connection.connection_id for connection in connections_in(row)))


def compact_row(row: Json, *, scoped: bool) -> Json:
    """One stream row in compact form."""
    names = (*kept_members, "freshness") if scoped else kept_members
    found = {name: row[name] for name in names if name in row}
    label = as_text(as_object(row.get("display")).get("label"))
    if label and "display_name" not in found:
        found["display_name"] = label
    properties = as_object(as_object(row.get("schema")).get("properties"))
    capabilities = as_object(row.get("field_capabilities"))
    declared = capabilities or dict.fromkeys(properties)
    if declared:
        found["field_capabilities"] = {
            name: flags_of(capability, properties.get(name))
            for name, capability in declared.items()
        }
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
