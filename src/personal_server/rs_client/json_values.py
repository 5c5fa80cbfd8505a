"""JSON from elsewhere, narrowed without trust: a reader gets the shape it asked for or nothing."""

import json
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

import orjson

depth_limit = 96
"""Levels of nesting beyond which a body is refused; writers downstream recurse."""

lone_surrogate = re.compile("[\ud800-\udfff]")
long_digits = re.compile(rb"\d{19}")
unsure = object()

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
    return next((value for value in values if isinstance(value, str) and value), None)


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
    value = _quickly(raw)
    if value is unsure:
        value = _exactly(raw)
    if _is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def _quickly(raw: bytes) -> Any:
    """The value, unless it may hold what the quick reader refuses or rounds."""
    if long_digits.search(raw):
        return unsure
    try:
        return orjson.loads(raw)
    except ValueError:
        return unsure


def _exactly(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_too_deep(value):
        raise ValueError("nested too deeply")
    return _mended(value) if "\\u" in text else value


def _refuse(name: str) -> Any:
    raise ValueError(f"not a JSON number: {name}")


def _is_too_deep(value: object) -> bool:
    """Whether more than `depth_limit` arrays and objects lie in one another, level by level."""
    level = [value]
    for _ in range(depth_limit):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(item: object) -> Iterable[object]:
    if is_object(item):
        return item.values()
    return item if is_list(item) else ()


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else lone_surrogate.sub("\ufffd", value)
    if is_object(value):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if is_list(value):
        return [_mended(item) for item in value]
    return value
