"""JSON from elsewhere, narrowed without trust: a reader gets the shape it asked for or nothing."""

import json
import re
from typing import Any, TypeGuard

import orjson

DEPTH_LIMIT = 96
"""Levels of nesting beyond which a body is refused; writers downstream recurse."""

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LEAST_ROUNDED = 2.0**63

Json = dict[str, Any]


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> Json:
    """The object, or an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[Any]:
    """The array, or an empty one."""
    return value if is_list(value) else []


def objects_in(value: object) -> list[Json]:
    """The objects of an array, anything else left out."""
    return [item for item in as_list(value) if is_object(item)]


def as_text(value: object) -> str | None:
    """The string when it is one and not empty."""
    return value if isinstance(value, str) and value else None


def first_text(*values: object) -> str | None:
    """The first value that is a non-empty string."""
    for value in values:
        if isinstance(value, str) and value:
            return value
    return None


def as_count(value: object) -> int | None:
    """The integer when it is one; a boolean is not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def compact(value: object) -> str:
    """Compact JSON without ASCII escaping; the exact writer takes what the quick one cannot."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_json(raw: bytes) -> Any:
    """Parse a body; a lone surrogate becomes U+FFFD.

    Raises: ValueError for anything that is not JSON, nested too deeply, or not a JSON number.
    """
    try:
        value = orjson.loads(raw)
    except ValueError:
        return _exactly(raw)
    return value if _is_exact(value) else _exactly(raw)


def parse_quickly(raw: bytes) -> Any | None:
    """The value; None where it is none, or only an exact reader keeps it."""
    try:
        value = orjson.loads(raw)
        return value if _is_exact(value) else None
    except ValueError:
        return None


def _is_exact(value: object) -> bool:
    """Whether the quick reader kept every number; it rounds integers of more than 64 bits.

    Raises: ValueError when more than `depth_limit` arrays and objects lie in one another.
    """
    exact = True
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for kind, item in zip(map(type, level), level, strict=True):
            if kind is dict:
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            elif kind is float and abs(item) >= LEAST_ROUNDED:
                exact = False
        if not below:
            return exact
        level = below
    raise ValueError("nested too deeply")


def _exactly(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _is_exact(value)
    return _mended(value) if "\\u" in text else value


def _refuse(name: str) -> Any:
    raise ValueError(f"not a JSON number: {name}")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else LONE_SURROGATE.sub("\ufffd", value)
    if is_object(value):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if is_list(value):
        return [_mended(item) for item in value]
    return value
