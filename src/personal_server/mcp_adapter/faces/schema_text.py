"""What a grant can read, as an index of names in text.

Source: MCP adapter contract 10.1, 7.1. Names are never dropped.
"""

from collections.abc import Sequence

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.catalog import (
    Connection,
    all_connections,
    catalog_rows,
    unavailable_in,
)
from personal_server.mcp_adapter.cleaning import label, one_line
from personal_server.mcp_adapter.faces import text
from personal_server.rs_client.json_values import (
    Json,
)

use_line = (
    "use: schema with one stream for fields, filters, sort, count, expand, search modes and"
    " aggregations"
)


def index_text(catalog: Json, closing: Sequence[str]) -> str:
    """Every granted stream name; what else there is room for."""
    few = len({row.name for row in catalog_rows(catalog)}) <= 24
    aim = budgets.schema_text_aim if few else budgets.schema_text_limit
    bare = ""
    for detail in (3, 2, 1, 0):
        bare = text.joined(
            [_index_head(catalog)],
            _connection_lines(catalog, detail),
            _group_lines(catalog, sets=detail > 0),
            text.unavailable_lines(unavailable_in(catalog)),
            text.warning_lines(text.server_warnings(catalog)),
            [use_line],
            closing,
        )
        if len(bare) <= aim:
            return bare
    return bare


def _index_head(catalog: Json) -> str:
    rows = catalog_rows(catalog)
    facts = (
        f"connectors={len({row.connector_key for row in rows})}",
        f"streams={len({(row.connector_key, row.name) for row in rows})}",
        f"connections={len(all_connections(catalog))}",
    )
    return f"schema: {'; '.join(facts)}"


def _connection_lines(catalog: Json, detail: int) -> list[str]:
    if detail < 2:
        return []
    found = list(all_connections(catalog).values())
    lines = [
        _connection_line(connection, key, labelled=detail > 2)
        for connection, key in found[: budgets.schema_connection_lines]
    ]
    rest = len(found) - len(lines)
    return [*lines, f"connections: more={rest}"] if rest > 0 else lines


def _connection_line(connection: Connection, key: str | None, *, labelled: bool) -> str:
    facts = [text.fact("connector_key", label(key))] if key else []
    if labelled and connection.display_name:
        facts.append(text.fact("label", label(connection.display_name)))
    return f"connection {label(connection.connection_id)}: {'; '.join(facts)}".rstrip(": ")


def _group_lines(catalog: Json, *, sets: bool) -> list[str]:
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in catalog_rows(catalog):
        ids = tuple(c.connection_id for c in row.connections)[: budgets.schema_connection_lines]
        names = grouped.setdefault((row.connector_key or "source", ids if sets else ()), [])
        if row.name not in names:
            names.append(row.name)
    return [
        f"streams {label(key)}{_set(ids)}: {'; '.join(one_line(name) for name in names)}"
        for (key, ids), names in grouped.items()
    ]


def _set(ids: tuple[str, ...]) -> str:
    return f" [{' '.join(label(item) for item in ids)}]" if ids else ""
