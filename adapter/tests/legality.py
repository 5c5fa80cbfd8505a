"""Whether a call passes every check that needs no resource server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pdpp_mcp_server.arguments import parse_arguments
from pdpp_mcp_server.rs_client.json_values import Json, is_list, is_object
from pdpp_mcp_server.tools import (
    aggregate,
    fetch,
    query_records,
    read_record_field,
    schema,
    search,
)

shapes: dict[str, Callable[[Json], object]] = {
    "schema": schema.check_shape,
    "query_records": query_records.check_shape,
    "aggregate": aggregate.check_shape,
    "search": search.check_shape,
    "fetch": fetch.check_shape,
    "read_record_field": read_record_field.check_shape,
}


def insist_on_legal(call: Json) -> None:
    """Raises: ToolError, for a call that would be refused before any read."""
    parse_arguments(call["tool"], call["arguments"], shapes[call["tool"]])


def calls_in(value: object) -> Iterator[Json]:
    """Every ready-made call at any depth of a structured face, record text left out."""
    if is_list(value):
        for item in value:
            yield from calls_in(item)
    if is_object(value):
        if {"tool", "arguments"} <= set(value):
            yield value
        for name, item in value.items():
            if name not in {"data", "expanded", "fields"}:
                yield from calls_in(item)
