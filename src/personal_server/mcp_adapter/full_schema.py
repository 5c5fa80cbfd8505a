"""The exhaustive schema of one stream of one source: each row once, each field schema once.

Source: MCP adapter contract 10.1.
"""

from collections.abc import Callable
from functools import partial

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import label
from personal_server.rs_client.json_values import Json, as_object, compact, is_object, objects_in

margin_chars = 1_500


def full_schema(catalog: Json) -> tuple[Json, list[Json]]:
    """The document, and warnings naming the field schemas left out for length."""
    data = dict(catalog)
    if any(objects_in(item.get("streams")) for item in objects_in(data.get("connectors"))):
        data.pop("streams", None)
    data = _each_row(data, _once)
    left_out: list[str] = []
    while len(compact(data)) > budgets.ceiling - margin_chars:
        name = _largest(data)
        if name is None:
            break
        left_out.append(name)
        data = _each_row(data, partial(_without, name))
    if not left_out:
        return data, []
    names = ", ".join(label(name) for name in left_out[:20])
    more = f" and {len(left_out) - 20} more" if len(left_out) > 20 else ""
    message = f"field schemas left out for length: {names}{more}"
    return data, [{"code": "schema_detail_reduced", "message": message}]


def _each_row(data: Json, change: Callable[[Json], Json]) -> Json:
    found = dict(data)
    if "connectors" in found:
        found["connectors"] = [
            {**item, "streams": [change(row) for row in objects_in(item.get("streams"))]}
            for item in objects_in(found["connectors"])
        ]
    if "streams" in found:
        found["streams"] = [change(row) for row in objects_in(found["streams"])]
    return found


def _properties(row: Json) -> Json:
    return as_object(as_object(row.get("schema")).get("properties"))


def _once(row: Json) -> Json:
    properties = _properties(row)
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
        for name, schema in _properties(row).items()
    }
    return max(sizes, key=lambda name: sizes[name]) if sizes else None


def _without(name: str, row: Json) -> Json:
    schema = as_object(row.get("schema"))
    properties = {key: value for key, value in _properties(row).items() if key != name}
    found: Json = {**row, "schema": {**schema, "properties": properties}}
    capabilities = as_object(row.get("field_capabilities"))
    if is_object(capabilities.get(name)):
        facts = {key: value for key, value in capabilities[name].items() if key != "schema"}
        found["field_capabilities"] = {**capabilities, name: facts}
    return found
