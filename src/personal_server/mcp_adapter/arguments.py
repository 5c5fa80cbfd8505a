"""The checks of arguments that need no resource server: names, types, bounds, enumerations.

Source: MCP adapter contract 4.1, steps 2 to 4. Compiled from the published schemas and nothing
else; no coercion, no clamping; the first failure is the answer.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import one_line, quoted
from personal_server.mcp_adapter.contract import ToolContract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.handles import is_part
from personal_server.rs_client.json_values import Json, as_object, compact, is_list, is_object

Arguments = dict[str, Any]
ShapeCheck = Callable[[Arguments], Any]

later = frozenset({"filter", "expand", "expand_limit"})
"""Arguments whose own shape checks, with their own codes, come after this module."""
long_strings = frozenset({"id", "record_id", "cursor", "changes_since"})


def parse_arguments(
    tool: ToolContract, raw: Mapping[str, Any] | None, shape: ShapeCheck
) -> Arguments:
    """Check names and types in order; integers come back as `int`.

    The shape check is only run on advice: a next call has to pass it too.

    Raises: ToolError invalid_arguments, with a next call where the rest is legal.
    """
    given = dict(raw or {})
    try:
        return _checked(tool, given)
    except ToolError as error:
        param = error.error.get("param")
        advice = _without(tool, given, param, shape) or _described(given, param)
        raise error.with_next(advice) from None


def _checked(tool: ToolContract, given: Arguments) -> Arguments:
    for name in given:
        if name not in tool.properties:
            raise _unknown(tool, name)
    for name in tool.required:
        if name not in given and not (name == "query" and "q" in given):
            raise _missing(tool, name)
    return {
        name: _value(name, as_object(rule), given[name])
        for name, rule in tool.properties.items()
        if name in given
    }


def _without(
    tool: ToolContract, given: Arguments, param: object, shape: ShapeCheck
) -> NextCall | None:
    if param not in given:
        return None
    return legal_or_none(tool, {k: v for k, v in given.items() if k != param}, shape)


def _described(given: Arguments, param: object) -> NextCall | None:
    """Where to look up what is missing."""
    if param == "stream" and param not in given:
        return NextCall("schema", {})
    if param != "metric":
        return None
    try:
        stream = _string("stream", {}, given.get("stream"))
    except ToolError:
        return None
    return NextCall("schema", {"stream": stream})


def _unknown(tool: ToolContract, name: str) -> ToolError:
    legal = list(tool.properties)
    if name == "connector_instance_id":
        hint = "Use `connection_id`."
    else:
        near = get_close_matches(name, legal, n=1)
        hint = f"Did you mean `{near[0]}`?" if near else f"Legal: {', '.join(legal)}."
    return ToolError(
        "invalid_arguments",
        f"`{quoted(name)}` is not an argument of {tool.name}. {hint}",
        param=quoted(name) if quoted(name) == name else name[: budgets.quoted_value],
    )


def _missing(tool: ToolContract, name: str) -> ToolError:
    rule = as_object(tool.properties.get(name))
    return ToolError(
        "invalid_arguments", f"{tool.name} needs `{name}`.", param=name, expected=_expected(rule)
    )


def _value(name: str, rule: Json, value: Any) -> Any:
    if name in later:
        return value
    kind = rule.get("type")
    if kind == "integer":
        return _integer(name, rule, value)
    if kind == "array":
        return _list(name, rule, value)
    return _string(name, rule, value)


def _integer(name: str, rule: Json, value: Any) -> int:
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (isinstance(value, int) or whole):
        raise _wrong(name, rule, value)
    number = int(value)
    if not rule.get("minimum", number) <= number <= rule.get("maximum", number):
        raise _wrong(name, rule, value)
    return number


def _string(name: str, rule: Json, value: Any) -> str:
    limit = budgets.handle_argument if name in long_strings else budgets.string_argument
    if not isinstance(value, str) or not value or not is_encodable(value):
        raise _wrong(name, rule, value)
    if len(value) > limit:
        raise ToolError(
            "invalid_arguments",
            f"`{name}` is longer than {limit} characters.",
            param=name,
            expected=f"string of at most {limit} characters",
        )
    if "enum" in rule and value not in rule["enum"]:
        raise _wrong(name, rule, value)
    if name == "stream" and not is_part(value):
        raise ToolError("invalid_arguments", "No stream has such a name.", param=name)
    return value


def _list(name: str, rule: Json, value: Any) -> list[str]:
    if not is_list(value) or not 1 <= len(value) <= budgets.list_argument:
        raise _wrong(name, rule, value)
    return [
        _string(name if name != "stream" else "streams", {"type": "string"}, item) for item in value
    ]


def _wrong(name: str, rule: Json, value: Any) -> ToolError:
    expected = _expected(rule)
    return ToolError(
        "invalid_arguments",
        f"`{name}` must be {expected}, got {_shown(value)}.",
        param=name,
        expected=expected,
    )


def _shown(value: Any) -> str:
    if is_object(value) or is_list(value):
        kind = "object" if is_object(value) else "list"
        return f"an empty {kind}" if not value else "an object" if kind == "object" else "a list"
    return one_line(compact(value), budgets.quoted_value)


def _expected(rule: Json) -> str:
    kind = rule.get("type")
    if "enum" in rule:
        return "one of " + ", ".join(rule["enum"])
    if kind == "integer":
        high = rule.get("maximum")
        low = rule.get("minimum", 0)
        return (
            f"an integer from {low} to {high}"
            if high is not None
            else f"an integer, at least {low}"
        )
    if kind == "array":
        return f"a list of 1 to {budgets.list_argument} non-empty strings"
    return "an object" if kind == "object" else "a non-empty string"


def is_encodable(value: str) -> bool:
    """Whether a string is valid Unicode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def legal_or_none(tool: ToolContract, arguments: Arguments, shape: ShapeCheck) -> NextCall | None:
    """The call when it passes every check that needs no resource server."""
    try:
        legal = _checked(tool, arguments)
        shape(legal)
    except ToolError:
        return None
    return NextCall(tool.name, legal)


def no_shape(asked: Arguments) -> None:
    """The check of a call whose shape cannot be wrong."""
    del asked
