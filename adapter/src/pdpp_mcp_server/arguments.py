"""The arguments of a call: checked before anything is read, and encoded as parameters.

Source: docs/contract/mcp-adapter.md 4.1, steps 2 to 4. Compiled from the published schemas and
nothing else; no coercion, no clamping; the first failure is the answer.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import unquote_plus

from pdpp_kernel.operators import RANGE_OPERATORS, Operator, Takes
from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_kernel.values import ValueKind
from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.contract import ToolContract, published_contract
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.handles import is_part
from pdpp_mcp_server.rs_client.json_values import Json, as_object, compact, is_list, is_object
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import is_unicode, one_line, quoted

Arguments = dict[str, Any]
Parsed = TypeVar("Parsed")

LATER = frozenset({"filter", "expand", "expand_limit"})
"""Arguments whose own checks, with their own codes, come after names and types."""
LONG_STRINGS = frozenset({"id", "record_id", "cursor", "changes_since"})


def parse_arguments(
    tool: str, raw: Mapping[str, Any] | None, check_shape: Callable[[Arguments], Parsed]
) -> tuple[Arguments, Parsed]:
    """The arguments (integers as `int`) and what `check_shape` makes of them.

    Shapes: check_shape is the tool's own check of what the schema cannot say; its refusals may
            propose repairs.
    Raises: ToolError, with a next call where the rest or a repair is legal.
    """
    published = published_contract().tools[tool]
    given = dict(raw or {})
    try:
        arguments = _checked(published, given)
    except ToolError as error:
        param = error.error.get("param")
        repairs: list[Arguments] = []
        if isinstance(param, str) and param in given:
            repairs = [*_mended(published, given, param), without(given, param)]
        calls = (legal_call(tool, repair, check_shape) for repair in repairs)
        rest = next(filter(None, calls), None)
        raise error.with_next(rest or _schema_call(given, param)) from None
    try:
        return arguments, check_shape(arguments)
    except ToolError as error:
        calls = (legal_call(tool, repair, check_shape) for repair in error.repairs)
        raise error.with_next(next(filter(None, calls), None)) from None


HIT_ORDER = "Hits come best first, or `sort` by time: newest, oldest."
PLAIN_LIKENESS, LIKE_CHARS = 0.75, 64  # comparing costs time by length


def _mended(tool: ToolContract, given: Arguments, param: str) -> list[Arguments]:
    """The same call with only the wrong argument as it was plainly meant."""
    name = param
    if param not in tool.properties:
        from pdpp_mcp_server.argument_synonyms import RENAMED  # noqa: PLC0415 (few calls need it)

        near = get_close_matches(
            param[:LIKE_CHARS], list(tool.properties), n=1, cutoff=PLAIN_LIKENESS
        )
        name = RENAMED.get(param, near[0] if near else param)
        if name not in tool.properties or name in given:
            return []
    two_names = is_list(given[param]) and len(given[param]) == 2
    if name == "group_by" and two_names and "then_by" not in given:
        sides = dict(zip(("group_by", "then_by"), given[param], strict=True))
        return [{**given, **sides}]
    value = _meant(as_object(tool.properties[name]), given[param])
    if name == "sort" and isinstance(value, str) and tool.name == "search":
        value = "newest" if value.startswith("-") or value.lower().endswith("desc") else value
    elif name == "sort" and isinstance(value, str):
        value = re.sub(r"(?i)^(\S+) desc$", r"-\1", re.sub(r"(?i) asc$", "", value))
    return [{**without(given, param), name: value}]


def _meant(rule: Json, value: Any) -> Any:
    """A value in the type that is asked for, where it is plain; a number within its bound."""
    kind = rule.get("type")
    if kind == "array" and isinstance(value, str):
        return [value]
    if kind == "string" and is_list(value) and len(value) == 1:
        return value[0]
    if "enum" in rule and isinstance(value, str) and value not in rule["enum"]:
        from pdpp_mcp_server.argument_synonyms import named_value  # noqa: PLC0415 (few calls need it)

        return named_value(value, rule["enum"])
    if kind == "integer" and isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        value = int(value)
    if kind == "integer" and isinstance(value, int) and "maximum" in rule:
        return min(value, int(rule["maximum"]))
    return value


def legal_call(
    tool: str, arguments: Arguments, check_shape: Callable[[Arguments], object] | None = None
) -> NextCall | None:
    """The call when it passes every check that needs no resource server."""
    published = published_contract().tools.get(tool)
    if published is None:
        return None
    try:
        legal = _checked(published, arguments)
        if check_shape is not None:
            check_shape(legal)
    except ToolError:
        return None
    return NextCall(tool, legal)


def without(arguments: Mapping[str, Any], *names: str) -> Arguments:
    """The arguments but for these."""
    return {name: value for name, value in arguments.items() if name not in names}


def given_parameters(arguments: Arguments, *names: str) -> Query:
    """Those of these arguments that are given, as parameters of the same name."""
    return tuple((name, arguments[name]) for name in names if name in arguments)


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


def _schema_call(given: Arguments, param: object) -> NextCall | None:
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
    elif tool.name == "search" and name in {"order", "order_by"}:
        hint = HIT_ORDER
    else:
        near = get_close_matches(name[:LIKE_CHARS], legal, n=1, cutoff=0.65)
        hint = f"Did you mean `{near[0]}`?" if near else f"Legal: {', '.join(legal)}."
    return ToolError(
        "invalid_arguments",
        f"`{quoted(name)}` is not an argument of {tool.name}. {hint}",
        param=quoted(name) if quoted(name) == name else name[: contract.QUOTED_VALUE],
    )


def _missing(tool: ToolContract, name: str) -> ToolError:
    rule = as_object(tool.properties.get(name))
    return ToolError(
        "invalid_arguments", f"{tool.name} needs `{name}`.", param=name, expected=_expected(rule)
    )


def _value(name: str, rule: Json, value: Any) -> Any:
    if name in LATER:
        return value
    kind = rule.get("type")
    if kind == "integer":
        return _integer(name, rule, value)
    if kind == "number":
        return _number(name, rule, value)
    if kind == "array":
        return _list(name, rule, value)
    if kind == "boolean":
        return _boolean(name, rule, value)
    return _string(name, rule, value)


def _integer(name: str, rule: Json, value: Any) -> int:
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (isinstance(value, int) or whole):
        raise _wrong(name, rule, value)
    number = int(value)
    if not rule.get("minimum", number) <= number <= rule.get("maximum", number):
        raise _wrong(name, rule, value)
    return number


def _boolean(name: str, rule: Json, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, rule, value)
    return value


def _number(name: str, rule: Json, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < rule.get("minimum", value):
        raise _wrong(name, rule, value)
    return value


def _string(name: str, rule: Json, value: Any) -> str:
    limit = contract.HANDLE_ARGUMENT if name in LONG_STRINGS else contract.STRING_ARGUMENT
    if not isinstance(value, str) or not value or not is_unicode(value):
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
    if not is_list(value) or not 1 <= len(value) <= contract.LIST_ARGUMENT:
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
    if is_object(value):
        return "an object" if value else "an empty object"
    if is_list(value):
        return "a list" if value else "an empty list"
    return one_line(compact(value), contract.QUOTED_VALUE)


def _expected(rule: Json) -> str:
    if "enum" in rule:
        return "one of " + ", ".join(rule["enum"])
    kind, low, high = rule.get("type"), rule.get("minimum", 0), rule.get("maximum")
    if kind == "integer":
        return f"an integer, at least {low}" if high is None else f"an integer from {low} to {high}"
    if kind == "number":
        return f"a number, at least {low}"
    if kind == "array":
        return f"a list of 1 to {contract.LIST_ARGUMENT} non-empty strings"
    if kind == "boolean":
        return "true or false"
    return "an object" if kind == "object" else "a non-empty string"


# Typed filters (docs/contract/mcp-adapter.md 10.2.1; docs/decisions.md C4). A string is never
# parsed into a read, only into advice.

NAMED_OPERATORS: Mapping[str, Operator] = {
    each.value: each for each in Operator if each is not Operator.EQ
}
"""What a condition may name; equality is the value alone."""
EXPECTED_FILTER = f"object: field -> scalar or {{{','.join(NAMED_OPERATORS)}}}"
EXAMPLE = {
    Operator.EQ.example[0]: Operator.EQ.example[1],
    Operator.GTE.example[0]: {Operator.GTE.value: Operator.GTE.example[1]},
}
BRACKET_FORM = re.compile(
    rf"filter\[([^\[\]]+)\](?:\[({'|'.join(RANGE_OPERATORS)})\])?=(.*)", re.DOTALL
)


def filter_query(arguments: Arguments) -> Query:
    """The parameters of a call's filter; a plainly meant string is proposed as a typed one.

    Raises: ToolError invalid_filter.
    """
    if "filter" not in arguments:
        return ()
    try:
        return encode_filter(arguments["filter"])
    except ToolError as error:
        typed = typed_filter(arguments["filter"]) or _without_nulls(arguments["filter"])
        if typed is not None:
            error.with_repair({**arguments, "filter": typed})
        raise


def _without_nulls(value: object) -> Json | None:
    """A filter that asks for null, as it is asked; None where it asks for none."""
    given = as_object(value)
    absent = {Operator.EXISTS.value: False}
    asked = {key: absent if each is None else each for key, each in given.items()}
    return asked if asked != given else None


async def require_operators(call: ToolCall, arguments: Arguments) -> None:
    """Refuse operators that the resource server does not say it takes, without a call.

    Raises: ToolError invalid_filter.
    """
    for key, condition in as_object(arguments.get("filter")).items():
        for operator in Operator:
            if operator.capability is not None and operator in as_object(condition):
                param, stream = f"filter.{quoted(key)}", arguments.get("stream")
                capability = ReadCapability(operator.capability)
                await call.require(capability, param, code="invalid_filter", stream=stream)


def encode_filter(value: object) -> Query:
    """Check a filter and encode it.

    Raises: ToolError invalid_filter; param is `filter` or `filter.<key>`.
    """
    if not is_object(value) or not value:
        raise _refused("filter", "`filter` must be a non-empty object keyed by field name.")
    pairs: list[tuple[str, str]] = []
    for key, condition in value.items() if len(value) <= contract.FILTER_CONDITIONS else ():
        _check_key(key)
        pairs.extend(_condition(key, condition))
    if max(len(value), len({name for name, _ in pairs})) > contract.FILTER_CONDITIONS:
        raise _refused("filter", f"`filter` takes at most {contract.FILTER_CONDITIONS} conditions.")
    if len(pairs) > contract.FILTER_VALUES:
        raise _refused("filter", f"`filter` takes at most {contract.FILTER_VALUES} values.")
    return tuple(pairs)


def _check_key(key: str) -> None:
    is_name = 0 < len(key) <= contract.STRING_ARGUMENT
    if not is_name or any(char in "[]" or ord(char) < 32 or ord(char) == 127 for char in key):
        raise _refused(
            "filter", f"A filter key is a plain field name, not {quoted(key) or 'empty'}."
        )


def _condition(key: str, condition: Any) -> Query:
    param = f"filter.{quoted(key)}"
    if not is_object(condition):
        return ((f"filter[{key}]", _scalar(param, condition, booleans=True)),)
    if not condition or not condition.keys() <= NAMED_OPERATORS.keys():
        legal = ", ".join(NAMED_OPERATORS)
        raise _refused(param, f"`{param}` takes only {legal}; at least one of them.")
    return tuple(
        (f"filter[{key}][{name}]", text)
        for name, bound in condition.items()
        for text in _bounds(param, NAMED_OPERATORS[name], bound)
    )


def _bounds(param: str, operator: Operator, bound: Any) -> list[str]:
    """What is sent for the value of an operator; some take a list of them."""
    booleans = ValueKind.BOOLEAN in operator.kinds
    match operator.takes:
        case Takes.VALUES if is_list(bound) and len(bound) > contract.FILTER_VALUES:
            raise _refused("filter", f"`filter` takes at most {contract.FILTER_VALUES} values.")
        case Takes.VALUES if is_list(bound) and bound:
            return list(dict.fromkeys(_scalar(param, each, booleans=booleans) for each in bound))
        case Takes.VALUES:
            raise _refused(
                param, f"`{operator}` of `{param}` takes a list of values, at least one."
            )
        case Takes.PRESENCE if not isinstance(bound, bool):
            raise _refused(param, f"`{operator}` of `{param}` takes true or false.")
        case Takes.PART if not isinstance(bound, str) or not bound:
            raise _refused(param, f"`{operator}` of `{param}` takes a string, not an empty one.")
        case _:
            return [_scalar(param, bound, booleans=booleans)]


def _scalar(param: str, value: Any, *, booleans: bool) -> str:
    if isinstance(value, bool) and booleans:
        return "true" if value else "false"
    if isinstance(value, str) and len(value) <= contract.STRING_ARGUMENT and is_unicode(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else json.dumps(value)
    kinds = "a string, number or boolean" if booleans else "a string or number"
    raise _refused(param, f"`{param}` must be {kinds}, or an object of operators.")


def _refused(param: str, message: str) -> ToolError:
    return ToolError(
        "invalid_filter",
        message,
        param=param,
        expected=EXPECTED_FILTER,
        example={"filter": EXAMPLE},
    )


def typed_filter(value: object) -> Json | None:
    """The filter a string plainly means, for advice; None when it is not plain."""
    if not isinstance(value, str) or not value or len(value) > contract.STRING_ARGUMENT:
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
        match = BRACKET_FORM.fullmatch(part)
        if match is None:
            return None
        field, operator, text = match[1], match[2], unquote_plus(match[3])
        condition = found.setdefault(field, {} if operator else text)
        if is_object(condition) is not bool(operator):
            return None
        if operator:
            condition[operator] = text
    return found
