"""The stream schema: a JSON Schema 2020-12 object, and its top-level properties as values.

Rule: references stay inside the schema, so reading a declaration never fetches anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

import jsonschema_rs
import orjson
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.json_shapes import Members, pointer
from pdpp_kernel.values import ValueKind

MAX_SCHEMA_BYTES = 256 * 1024
DRAFT = "https://json-schema.org/draft/2020-12/schema"
PROPERTY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
MAX_REFERENCES = 16
SINGLE_ROLES = ("primary-title", "event-time", "event-end", "whole-days")

_KINDS: Mapping[str, ValueKind] = {
    "boolean": ValueKind.BOOLEAN,
    "integer": ValueKind.INTEGER,
    "number": ValueKind.NUMBER,
    "string": ValueKind.STRING,
}
_FORMATS: Mapping[object, ValueKind] = {
    "date": ValueKind.DATE,
    "date-time": ValueKind.INSTANT,
}


def read_properties(schema: Members) -> dict[str, Property]:
    """The top-level properties of a stream schema, in its order; faults go to the findings.

    Source: docs/contract/resource-server.md 17, `schema`.
    """
    raw = schema.raw
    if not _is_sound(schema):
        return {}
    declared = schema.value("properties", required=True)
    if not isinstance(declared, dict) or not declared:
        schema.fault("properties", "Expected an object with at least one property.")
        return {}
    properties: dict[str, Property] = {}
    for name, sub in cast("dict[str, object]", declared).items():
        if PROPERTY_NAME.fullmatch(name) is None:
            schema.fault("properties", f"A property name does not match {PROPERTY_NAME.pattern}.")
        properties[name] = _property(name, sub, raw)
    return _with_single_roles(schema, properties)


def value_types(schema: Mapping[str, object]) -> tuple[str, ...]:
    """The JSON types that a property schema names, as it names them."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return (kinds,)
    if isinstance(kinds, list):
        return tuple(t for t in cast("list[object]", kinds) if isinstance(t, str))
    return ()


def value_kind(schema: Mapping[str, object]) -> ValueKind | None:
    """How values of a scalar property (nullable or not) compare; `None` for other properties.

    Source: docs/contract/resource-server.md 2.8, "comparable value".
    """
    types = [t for t in value_types(schema) if t != "null"]
    if len(types) != 1 or types[0] not in _KINDS:
        return None
    kind = _KINDS[types[0]]
    return _FORMATS.get(schema.get("format"), kind) if kind is ValueKind.STRING else kind


def is_nullable(schema: Mapping[str, object]) -> bool:
    """Whether the property schema names the type `null`."""
    return "null" in value_types(schema)


def _is_sound(schema: Members) -> bool:
    raw = schema.raw
    before = len(schema.findings.entries)
    if raw.get("type") != "object":
        schema.fault("type", 'Expected "object".')
    if raw.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
        schema.fault("$schema", "Expected JSON Schema 2020-12.")
    if len(orjson.dumps(raw)) > MAX_SCHEMA_BYTES:
        schema.fault("", "The schema is larger than 256 KiB.")
    for steps, target in _references(raw, ()):
        if not isinstance(target, str) or not target.startswith("#"):
            path = schema.path + "".join(map(pointer, steps))
            schema.findings.add(path, "References stay inside the schema.")
    if len(schema.findings.entries) == before and not _compiles(raw):
        schema.fault("", "Not a valid JSON Schema 2020-12.")
    return len(schema.findings.entries) == before


def _compiles(raw: Mapping[str, object]) -> bool:
    try:
        jsonschema_rs.Draft202012Validator(dict(raw), validate_formats=True, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError):  # its ValidationError is a ValueError
        return False
    return True


def _references(value: object, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every `$ref`, `$dynamicRef` and `$id` below, with the steps to it."""
    if isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            if name in ("$ref", "$dynamicRef", "$id") and steps[-1:] != ("properties",):
                yield (*steps, name), member
            elif name not in ("const", "enum", "default", "examples"):
                yield from _references(member, (*steps, name))
    elif isinstance(value, list):
        for i, member in enumerate(cast("list[object]", value)):
            yield from _references(member, (*steps, str(i)))


def _property(name: str, sub: object, root: Mapping[str, object]) -> Property:
    schema_shown = _object(sub)
    followed = _follow(schema_shown, root)
    return Property(
        name=name,
        schema=schema_shown,
        kind=value_kind(followed),
        type=_word(schema_shown.get("x_pdpp_type", followed.get("x_pdpp_type"))),
        role=_word(schema_shown.get("x_pdpp_role", followed.get("x_pdpp_role"))),
        nullable=is_nullable(followed),
    )


def _follow(sub: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    """The schema behind local references."""
    for _ in range(MAX_REFERENCES):
        target = sub.get("$ref")
        if not isinstance(target, str):
            return sub
        node: object = root
        for step in target.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = _object(node).get(name)
        sub = _object(node)
    return {}


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _with_single_roles(schema: Members, properties: dict[str, Property]) -> dict[str, Property]:
    """The properties, where of several with a role that one may have the first keeps it."""
    roles: set[str] = set()
    for name, declared in properties.items():
        if declared.role in roles:
            schema.adapt("properties", f"{name}: the role {declared.role} is another property's.")
            properties[name] = replace(declared, role=None)
        elif declared.role in SINGLE_ROLES:
            roles.add(declared.role)
    return properties
