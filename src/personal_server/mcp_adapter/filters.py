"""Typed filters → bracket parameters. Strings are never parsed into a read, only into advice.

Source: MCP adapter contract 10.2.1; decision C4.
"""

import json
import math
import re
from typing import Any
from urllib.parse import unquote_plus

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import quoted
from personal_server.mcp_adapter.errors import ToolError
from personal_server.rs_client.json_values import Json, is_object
from personal_server.rs_client.port import Query

operators = ("gte", "gt", "lte", "lt")
expected = "object: field -> scalar or {gte,gt,lte,lt}"
bracket_form = re.compile(r"filter\[([^\[\]]+)\](?:\[(gte|gt|lte|lt)\])?=(.*)", re.DOTALL)


def encode_filter(value: object) -> Query:
    """Check a filter and encode it.

    Raises: ToolError invalid_filter; param is `filter` or `filter.<key>`.
    """
    if not is_object(value) or not value:
        raise _refused("filter", "`filter` must be a non-empty object keyed by field name.")
    pairs: list[tuple[str, str]] = []
    for key, condition in value.items():
        _check_key(key)
        pairs.extend(_condition(key, condition))
    if len(pairs) > budgets.filter_conditions:
        raise _refused("filter", f"`filter` takes at most {budgets.filter_conditions} conditions.")
    return tuple(pairs)


def _check_key(key: str) -> None:
    if not key or any(char in "[]" or ord(char) < 32 or ord(char) == 127 for char in key):
        raise _refused(
            "filter", f"A filter key is a plain field name, not {quoted(key) or 'empty'}."
        )


def _condition(key: str, condition: Any) -> Query:
    param = f"filter.{quoted(key)}"
    if not is_object(condition):
        return ((f"filter[{key}]", _scalar(param, condition, booleans=True)),)
    if not condition or not set(condition) <= set(operators):
        raise _refused(param, f"`{param}` takes only gte, gt, lte and lt, at least one of them.")
    return tuple(
        (f"filter[{key}][{name}]", _scalar(param, bound, booleans=False))
        for name, bound in condition.items()
    )


def _scalar(param: str, value: Any, *, booleans: bool) -> str:
    if isinstance(value, bool) and booleans:
        return "true" if value else "false"
    if isinstance(value, str) and len(value) <= budgets.string_argument and _is_text(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else json.dumps(value)
    kinds = "a string, number or boolean" if booleans else "a string or number"
    raise _refused(param, f"`{param}` must be {kinds}, or an object of range operators.")


def _is_text(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _refused(param: str, message: str) -> ToolError:
    return ToolError(
        "invalid_filter",
        message,
        param=param,
        expected=expected,
        example={"filter": {"status": "paid", "sent_at": {"gte": "2026-01-01"}}},
    )


def advised_filter(value: object) -> Json | None:
    """The typed filter a string plainly meant, for a next call; None when it is not plain."""
    if not isinstance(value, str) or not value or len(value) > budgets.string_argument:
        return None
    found = _from_json(value) or _from_brackets(value)
    try:
        encode_filter(found)
    except ToolError:
        return None
    return found


def _from_json(value: str) -> Json | None:
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return parsed if is_object(parsed) else None


def _from_brackets(value: str) -> Json | None:
    found: Json = {}
    for part in value.split("&"):
        match = bracket_form.fullmatch(part)
        if match is None:
            return None
        field, operator, text = match[1], match[2], unquote_plus(match[3])
        held = found.setdefault(field, {} if operator else text)
        if is_object(held) is not bool(operator):
            return None
        if operator:
            held[operator] = text
    return found
