"""From the query string to parameters: the syntax of docs/contract/resource-server.md 1.2, for
every route.

Rule: any query string becomes `Parameters` or one of our errors; nothing is guessed or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from pdpp_kernel.errors import InvalidRequest, QueryTooLong
from pdpp_kernel.values import instant_ns
from personal_server.domain.answer_warnings import Warning
from personal_server.web.parameters import Form, KeyedValue, Kind, Parameter, Parameters

MAX_QUERY_BYTES = 16_384
MAX_INTEGER_DIGITS = 18

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)\Z")
_KEYS = re.compile(r"\[([^\[\]]*)\]")
_INTEGER = re.compile(r"[0-9]+\Z")

Scalar = str | int | bool


def parse_query(query: bytes, declared: Mapping[str, Parameter]) -> Parameters:
    """The parameters of a request, as the route declares them.

    Source: docs/contract/resource-server.md 1.2.
    Raises: InvalidRequest, QueryTooLong, or the error class of the parameter at fault.
    """
    if len(query) > MAX_QUERY_BYTES:
        raise QueryTooLong(f"The query string can have at most {MAX_QUERY_BYTES} bytes. Send less.")
    gathered = _Gathered(declared)
    for piece in query.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            gathered.add(_decode(name, "query"), value)
    return gathered.parameters()


def _decode(raw: bytes, name: str) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The query string is not valid UTF-8.", param=name) from None


class _Gathered:
    """The values seen so far, by declared name."""

    def __init__(self, declared: Mapping[str, Parameter]) -> None:
        self._declared = declared
        self._scalars: dict[str, str] = {}
        self._lists: dict[str, dict[str, None]] = {}
        self._keyed: dict[str, dict[str, KeyedValue]] = {}

    def add(self, sent_name: str, raw_value: bytes) -> None:
        """Take one `name=value`."""
        parameter, keys = self._recognize(sent_name)
        value = _decode(raw_value, sent_name)
        match parameter.form:
            case Form.SCALAR:
                self._add_scalar(parameter, value)
            case Form.LIST:
                self._add_items(parameter, value)
            case Form.KEYED:
                self._add_keyed(parameter, sent_name, keys, value)

    def _recognize(self, sent_name: str) -> tuple[Parameter, tuple[str, ...]]:
        match = _NAME.match(sent_name)
        parameter = None if match is None else self._declared.get(match.group(1))
        if match is None or parameter is None:
            raise _unknown(sent_name, self._declared)
        keys: tuple[str, ...] = tuple(_KEYS.findall(match.group(2)))
        if not _keys_fit(parameter, keys):
            if parameter.form is Form.KEYED and not keys:
                raise parameter.error(_keyed_example(parameter), param=sent_name)
            raise _unknown(sent_name, self._declared)
        return parameter, keys

    def _add_scalar(self, parameter: Parameter, value: str) -> None:
        if parameter.name in self._scalars:
            raise InvalidRequest(
                f"'{parameter.name}' was sent twice. Send it once.", param=parameter.name
            )
        self._scalars[parameter.name] = value

    def _add_items(self, parameter: Parameter, value: str) -> None:
        items = self._lists.setdefault(parameter.name, {})
        for item in value.split(","):
            if not item:
                raise _empty(parameter.name)
            items[item] = None
        if parameter.max_items is not None and len(items) > parameter.max_items:
            raise parameter.error(
                f"'{parameter.name}' takes at most {parameter.max_items} names.",
                param=parameter.name,
            )

    def _add_keyed(
        self, parameter: Parameter, sent_name: str, keys: tuple[str, ...], value: str
    ) -> None:
        values = self._keyed.setdefault(parameter.name, {})
        name_key = sent_name
        if len(keys) > 1 and keys[-1] in parameter.repeated:
            name_key = f"{sent_name}={value}"
        elif sent_name in values:
            raise parameter.error(f"'{sent_name}' was sent twice. Send it once.", param=sent_name)
        if parameter.kind is Kind.INTEGER:
            _parse_integer(parameter, sent_name, value)
        values[name_key] = KeyedValue(sent_name, keys, value)
        if parameter.max_items is not None and len(values) > parameter.max_items:
            raise parameter.error(
                f"A request can have at most {parameter.max_items} '{parameter.name}' conditions.",
                param=sent_name,
            )

    def parameters(self) -> Parameters:
        """Everything parsed, checked and completed."""
        warnings: list[Warning] = []
        scalars: dict[str, Scalar] = {}
        for name, text in self._scalars.items():
            parameter = self._declared[name]
            if not text and parameter.empty_is_absent:
                continue
            scalars[name] = _parse_scalar(parameter, text, warnings)
        self._resolve_aliases(scalars, warnings)
        sent = frozenset({*scalars, *self._lists, *self._keyed})
        for name, parameter in self._declared.items():
            if parameter.required and name not in sent:
                raise _missing(parameter)
            if parameter.default is not None:
                scalars.setdefault(name, parameter.default)
        return Parameters(
            {name: value for name, value in scalars.items() if isinstance(value, str)},
            {name: value for name, value in scalars.items() if type(value) is int},
            {name: value for name, value in scalars.items() if isinstance(value, bool)},
            {name: tuple(items) for name, items in self._lists.items()},
            {name: tuple(values.values()) for name, values in self._keyed.items()},
            sent,
            tuple(warnings),
        )

    def _resolve_aliases(self, scalars: dict[str, Scalar], warnings: list[Warning]) -> None:
        for name in [n for n in scalars if self._declared[n].alias_of is not None]:
            present = self._declared[name].alias_of or name
            value = scalars.pop(name)
            if scalars.setdefault(present, value) != value:
                raise InvalidRequest(
                    f"'{name}' and '{present}' differ; send '{present}' only.", param=name
                )
            warnings.append(
                Warning("deprecated_alias_used", f"Use '{present}' instead of '{name}'.", name)
            )


def _keys_fit(parameter: Parameter, keys: tuple[str, ...]) -> bool:
    match parameter.form:
        case Form.SCALAR:
            return not keys
        case Form.LIST:
            return keys in ((), ("",))
        case Form.KEYED:
            return 1 <= len(keys) <= parameter.depth and all(keys)


def _unknown(sent_name: str, declared: Mapping[str, Parameter]) -> InvalidRequest:
    names = ", ".join(name for name, p in declared.items() if p.alias_of is None)
    hint = f"This route takes: {names}." if names else "This route takes no parameters."
    return InvalidRequest(f"Unknown parameter '{sent_name}'. {hint}", param=sent_name)


def _keyed_example(parameter: Parameter) -> str:
    example = parameter.example or f"{parameter.name}[name]=value"
    return f"'{parameter.name}' needs a name in brackets, for example {example}."


def _empty(name: str) -> InvalidRequest:
    return InvalidRequest(f"'{name}' is empty. Leave it out or give it a value.", param=name)


def _missing(parameter: Parameter) -> Exception:
    allowed = list(parameter.choices) or None
    return parameter.error(
        f"The parameter '{parameter.name}' is required.",
        param=parameter.name,
        allowed_values=allowed,
    )


def _parse_scalar(parameter: Parameter, text: str, warnings: list[Warning]) -> Scalar:
    if not text:
        raise _empty(parameter.name)
    if parameter.max_chars is not None and len(text) > parameter.max_chars:
        raise parameter.error(
            f"'{parameter.name}' can have at most {parameter.max_chars} characters.",
            param=parameter.name,
        )
    match parameter.kind:
        case Kind.INTEGER:
            return _bounded(parameter, _parse_integer(parameter, parameter.name, text), warnings)
        case Kind.BOOLEAN:
            return _choice(parameter, text, ("true", "false")) == "true"
        case Kind.INSTANT:
            return _instant(parameter, text)
        case Kind.TEXT:
            return _choice(parameter, text, parameter.choices) if parameter.choices else text


def _choice(parameter: Parameter, text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise parameter.error(
            f"'{parameter.name}' must be one of {', '.join(choices)}.",
            param=parameter.name,
            allowed_values=list(choices),
        )
    return text


def _instant(parameter: Parameter, text: str) -> str:
    if instant_ns(text) is None:
        raise parameter.error(
            (
                f"'{parameter.name}' must be an RFC 3339 time with offset, such as "
                "2026-01-31T00:00:00Z."
            ),
            param=parameter.name,
        )
    return text


def _parse_integer(parameter: Parameter, name: str, text: str) -> int:
    if _INTEGER.match(text) is None or len(text) > MAX_INTEGER_DIGITS:
        raise parameter.error(
            f"'{name}' must be a plain decimal integer, without sign or blanks.", param=name
        )
    return int(text)


def _bounded(parameter: Parameter, value: int, warnings: list[Warning]) -> int:
    low, high = parameter.minimum, parameter.maximum
    if high is not None and value > high and parameter.clamps:
        warnings.append(
            Warning(
                "limit_clamped",
                f"'{parameter.name}' can be at most {high}, so {high} was used.",
                parameter.name,
                detail={"requested_limit": value, "max_limit": high},
            )
        )
        return high
    if (low is not None and value < low) or (high is not None and value > high):
        raise parameter.error(
            f"'{parameter.name}' must be an integer {_range_words(low, high)}.",
            param=parameter.name,
        )
    return value


def _range_words(low: int | None, high: int | None) -> str:
    if high is None:
        return f"of at least {low}"
    return f"from {low or 0} to {high}"
