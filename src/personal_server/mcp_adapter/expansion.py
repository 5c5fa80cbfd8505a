"""Asking for related records: the shape of the two arguments, and the gate on the live schema.

Source: MCP adapter contract 10.2.2; decisions C3, C30. Nothing is kept between calls.
"""

from typing import Any

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import quoted
from personal_server.mcp_adapter.errors import ToolError
from personal_server.rs_client.json_values import Json, is_list, is_object
from personal_server.rs_client.port import Query


def encode_expand(arguments: dict[str, Any]) -> Query:
    """Check `expand` and `expand_limit` and encode them; empty when neither is given.

    Raises: ToolError invalid_expand.
    """
    relations = _relations(arguments["expand"]) if "expand" in arguments else None
    limits: Query = ()
    if "expand_limit" in arguments:
        limits = _limits(arguments["expand_limit"], relations)
    return tuple(("expand", name) for name in relations or ()) + limits


def _relations(value: Any) -> list[str]:
    if not is_list(value) or not 1 <= len(value) <= budgets.list_argument:
        raise _refused("expand", "`expand` must be a non-empty list of relation names.")
    for name in value:
        if not _is_relation(name) or "," in name:
            raise _refused("expand", f"`expand` takes plain relation names, not {quoted(name)}.")
    return value


def _limits(value: Any, relations: list[str] | None) -> Query:
    if not is_object(value) or not 1 <= len(value) <= budgets.list_argument:
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
    if not isinstance(name, str) or not name or len(name) > budgets.string_argument:
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


def refuse_without_capability(rows: list[Json], stream: str) -> None:
    """Refuse when the stream is described and none of its rows lists a relation.

    Raises: ToolError invalid_expand. No row at all: the resource server decides.
    """
    if rows and not any(row.get("expand_capabilities") for row in rows):
        raise ToolError(
            "invalid_expand",
            f"Stream `{quoted(stream)}` has nothing to expand: GET /v1/schema lists no"
            " `expand_capabilities` for it.",
            param="expand",
        )
