"""Completions of stream, connection and field names from one live schema read.

Source: MCP adapter contract 12. Anything that goes wrong is an empty list, never an error.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.catalog import CatalogRow, all_connections, catalog_rows, covers
from personal_server.mcp_adapter.prompts import prompts
from personal_server.mcp_adapter.reading import read_catalog
from personal_server.rs_client.json_values import Json, as_object

stream_template = "pdpp://stream/{name}"


@dataclass(frozen=True, slots=True)
class Completions:
    """Matching values, best first, and how many there are in all."""

    values: list[str]
    total: int


nothing = Completions([], 0)


async def complete(
    call: Call,
    *,
    prompt: str | None,
    uri: str | None,
    name: str,
    typed: str,
    chosen: Mapping[str, str],
) -> Completions:
    """Values for one argument of a prompt or template."""
    wanted = _kind(prompt, uri, name)
    if wanted is None or (wanted == "field" and not chosen.get("stream")):
        return nothing
    scope = (("stream", chosen["stream"]),) if wanted == "field" else ()
    catalog = await read_catalog(call, scope)
    if catalog is None:
        return nothing
    return matching(_values(wanted, catalog, chosen), typed)


def _kind(prompt: str | None, uri: str | None, name: str) -> str | None:
    if uri is not None:
        return "stream" if uri == stream_template and name == "name" else None
    known = prompts.get(prompt or "")
    if known is None or all(argument.name != name for argument in known.arguments):
        return None
    return name if name in {"stream", "connection_id", "field"} else None


def _values(wanted: str, catalog: Json, chosen: Mapping[str, str]) -> Iterable[str]:
    rows = [row for row in catalog_rows(catalog) if _is_chosen(row, wanted, chosen)]
    if wanted == "stream":
        return {row.name for row in rows}
    if wanted == "field":
        return {name for row in rows for name in as_object(row.row.get("field_capabilities"))}
    listed = {c.connection_id for row in rows for c in row.connections}
    return listed if chosen.get("stream") else listed | set(all_connections(catalog))


def _is_chosen(row: CatalogRow, wanted: str, chosen: Mapping[str, str]) -> bool:
    stream, connection = chosen.get("stream"), chosen.get("connection_id")
    if wanted != "stream" and stream and row.name != stream:
        return False
    return wanted == "connection_id" or not connection or covers(row, connection)


def matching(values: Iterable[str], typed: str) -> Completions:
    """Prefix matches first, then substrings, each sorted; without regard to case."""
    sought = typed.casefold()
    ordered = sorted(value for value in values if value)
    first = [value for value in ordered if value.casefold().startswith(sought)]
    rest = [value for value in ordered if sought in value.casefold() and value not in first]
    found = [*first, *rest]
    return Completions(found[: budgets.completions], len(found))
