"""What a package of readers can know, without a server, of what an import would refuse.

Rule: it knows the words that `common/declaration.py` writes: types, formats, lists, what is
required, and names of fields. The import judges by the whole of JSON Schema and by all rules of
declarations; `tests/journeys/test_declared_values.py` holds the two together.
Source: docs/contract/resource-server.md 2.8, 13.1, 17.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from pdpp_kernel.source_item import Data
from pdpp_kernel.values import MAX_INTEGER, day_number, instant_ns

_LONGEST_KEY_CHARS = 1024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_IS_OF_TYPE: Mapping[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and float(cast("float", value)).is_integer(),
    "number": lambda value: _is_number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, dict),
}
_IS_OF_FORMAT: Mapping[object, Callable[[str], bool]] = {
    "date": lambda text: day_number(text) is not None,
    "date-time": lambda text: instant_ns(text) is not None,
}


def faults_of_record(stream: Data, data: Data) -> Iterator[str]:
    """Why an import would refuse a record of a stream, each with the field, never with a value."""
    schema: Data = stream["schema"]
    properties: Data = schema["properties"]
    for name in sorted(data.keys() - properties.keys()):
        yield f"{name}: the stream declares no such field"
    for name in sorted({*schema.get("required", ()), *stream["primary_key"]} - data.keys()):
        yield f"{name}: the field is required"
    for name in stream["primary_key"]:
        key = data.get(name)
        if isinstance(key, str) and not _names_a_record(key):
            length = f"1 to {_LONGEST_KEY_CHARS} characters"
            yield f"{name}: a key must have {length} and no control characters"
    for name in data.keys() & properties.keys():
        for fault in _faults_of_value(properties[name], data[name]):
            yield f"{name}: {fault}"
        if _has_nul(data[name]):
            yield f"{name}: a string cannot contain U+0000"


def faults_of_declaration(declaration: Data) -> Iterator[str]:
    """Fields that a declaration names and does not declare, each with its place."""
    streams: dict[str, Data] = {stream["name"]: stream for stream in declaration["streams"]}
    for name, stream in streams.items():
        own: Data = stream["schema"]["properties"]
        for place, field in _named_fields(stream):
            if field not in own:
                yield f"{name}: {place} names {field!r}, which the stream does not declare"
        for relation in stream.get("relationships", ()):
            yield from _faults_of_relation(relation, name, streams)


def _faults_of_relation(relation: Data, own: str, streams: Mapping[str, Data]) -> Iterator[str]:
    """The foreign key is declared by each side that holds it, as far as both are streams here."""
    key, side = relation["foreign_key"], relation.get("foreign_key_on", "target")
    holders = {"self": (own,), "both": (own, relation["stream"])}.get(side, (relation["stream"],))
    for holder in holders:
        if holder in streams and key not in streams[holder]["schema"]["properties"]:
            yield f"{own}: relation {relation['name']}: {holder} does not declare {key!r}"


def _named_fields(stream: Data) -> Iterator[tuple[str, str]]:
    """Each place of a stream's declaration that names a field of its own."""
    query: Data = stream.get("query", {})
    search: Data = query.get("search", {})
    figures: Data = query.get("aggregations", {})
    lists: dict[str, Any] = {
        "primary_key": stream["primary_key"],
        "required": stream["schema"].get("required", ()),
        "range_filters": query.get("range_filters", ()),
        **{name: fields for name, fields in search.items() if isinstance(fields, list)},
        **{name: fields for name, fields in figures.items() if isinstance(fields, list)},
        **{f"view {view['id']}": view["fields"] for view in stream.get("views", ())},
    }
    times = [
        (name, [stream[name]]) for name in ("cursor_field", "consent_time_field") if name in stream
    ]
    for place, fields in chain(lists.items(), times):
        for field in fields:
            yield place, field


def _faults_of_value(schema: Data, value: object) -> Iterator[str]:
    declared: object = schema.get("type")
    types = cast("list[str]", [declared] if isinstance(declared, str) else declared or [])
    if types and not any(_IS_OF_TYPE[each](value) for each in types):
        yield "expected " + " or ".join(types)
        return
    if isinstance(value, str):
        is_of_format = _IS_OF_FORMAT.get(schema.get("format"))
        if is_of_format and not is_of_format(value):
            yield f"the value must have the format {schema['format']}"
    elif isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        yield "an integer must fit into 64 bits"
    elif isinstance(value, list | tuple) and isinstance(schema.get("items"), dict):
        for item in cast("list[object]", value):
            yield from _faults_of_value(schema["items"], item)


def _names_a_record(key: str) -> bool:
    return 0 < len(key) <= _LONGEST_KEY_CHARS and not _CONTROL.search(key)


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return any(map(_has_nul, chain(members, members.values())))
    return isinstance(value, list | tuple) and any(map(_has_nul, cast("list[object]", value)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
