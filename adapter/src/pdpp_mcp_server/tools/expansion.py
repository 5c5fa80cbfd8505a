"""Asking for related records: the shape of the two arguments, and the gate on the live schema.

Source: docs/contract/mcp-adapter.md 10.2.2, 8.2; docs/decisions.md C3, C30. Nothing is kept
between calls.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.handles import connection_scope
from pdpp_mcp_server.reads import read_catalog
from pdpp_mcp_server.rs_client.json_values import Json, as_text, is_list, is_object, objects_in
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import quoted
from pdpp_mcp_server.schema_document import binary_fields, rows_of_stream


def encode_expand(arguments: Arguments) -> Query:
    """Check `expand` and `expand_limit` and encode them; empty when neither is given.

    Raises: ToolError invalid_expand, proposing the call without them.
    """
    try:
        relations = _relations(arguments["expand"]) if "expand" in arguments else None
        limits: Query = ()
        if "expand_limit" in arguments:
            limits = _limits(arguments["expand_limit"], relations)
    except ToolError as error:
        raise error.with_repair(without(arguments, "expand", "expand_limit")) from None
    return tuple(("expand", name) for name in relations or ()) + limits


def _relations(value: Any) -> list[str]:
    if not is_list(value) or not 1 <= len(value) <= contract.LIST_ARGUMENT:
        raise _refused("expand", "`expand` must be a non-empty list of relation names.")
    for name in value:
        if not _is_relation(name) or "," in name:
            raise _refused("expand", f"`expand` takes plain relation names, not {quoted(name)}.")
    return value


def _limits(value: Any, relations: list[str] | None) -> Query:
    if not is_object(value) or not 1 <= len(value) <= contract.LIST_ARGUMENT:
        raise _refused("expand_limit", "`expand_limit` must be a non-empty object.")
    return tuple(_limit(name, number, relations) for name, number in value.items())


def _limit(name: str, number: Any, relations: list[str] | None) -> tuple[str, str]:
    if not _is_relation(name):
        raise _refused(
            "expand_limit", f"A key of `expand_limit` is a relation name, not {quoted(name)}."
        )
    if relations is not None and name not in relations:
        raise _refused("expand_limit", f"`expand_limit` names {quoted(name)}, `expand` does not.")
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, bool) or not whole or number < 1:
        raise _refused(
            "expand_limit", f"The limit of {quoted(name)} must be an integer of at least 1."
        )
    return f"expand_limit[{name}]", str(int(number))


def _is_relation(name: object) -> bool:
    if not isinstance(name, str) or not name or len(name) > contract.STRING_ARGUMENT:
        return False
    return not any(char in "[]" or ord(char) < 32 or "\ud800" <= char <= "\udfff" for char in name)


def _refused(param: str, message: str) -> ToolError:
    return ToolError(
        "invalid_expand",
        message,
        param=param,
        expected="expand: list of relation names; expand_limit: object relation -> integer",
        example={"expand": ["attachments"], "expand_limit": {"attachments": 3}},
    )


class DescribedStream(msgspec.Struct, frozen=True):
    """What the gate read of a stream: the fields that are bytes, and its relations by name."""

    binary_fields: frozenset[str] = frozenset()
    relations: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])


async def pass_expand_gate(
    call: ToolCall, arguments: Arguments, stream: str, connection_id: str | None
) -> DescribedStream:
    """Let a call with `expand` or `expand_limit` pass unless the stream lists no relation.

    What the schema says of the stream, as far as one was read; none is read for that alone.

    Raises: ToolError invalid_expand. A schema that cannot be read lets the call pass.
    """
    if "expand" not in arguments and "expand_limit" not in arguments:
        return DescribedStream()
    catalog = await read_catalog(call, (("stream", stream), *connection_scope(connection_id)))
    if catalog is None:
        return DescribedStream()
    rows = [row.row for row in rows_of_stream(catalog, stream, connection_id)]
    # a stream that is not described at all is for the resource server to decide
    if rows and not any(row.get("expand_capabilities") for row in rows):
        raise ToolError(
            "invalid_expand",
            f"Stream `{quoted(stream)}` has nothing to expand: GET /v1/schema lists no"
            " `expand_capabilities` for it.",
            param="expand",
            next_call=NextCall(call.tool, without(arguments, "expand", "expand_limit")),
        )
    relations = [item for row in rows for item in objects_in(row.get("expand_capabilities"))]
    return DescribedStream(
        frozenset(name for row in rows for name in binary_fields(row)),
        {name: item for item in relations if (name := as_text(item.get("name")))},
    )
