"""Structs as JSON Schemas: what an answer is encoded from is also what is published of it.

Rule: an object is closed unless its struct says that it `takes_more`; a struct is described once,
under its `component` name or else its own, and referred to, since a generator of clients numbers
what has no name.  So are enumerations, under the names of the struct and the member that has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

JsonSchema = Mapping[str, Any]

_PLAIN: Mapping[object, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    msgspec.Raw: {},
}
_LISTS = (list, tuple, Sequence)
_OBJECTS = (dict, Mapping)
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


class Components:
    """The named schemas of one document, gathered while its parts are described.

    Where nothing `is_named`, everything is described in its place.
    """

    def __init__(self, *, is_named: bool = True) -> None:
        self.schemas: dict[str, JsonSchema] = {}
        self._shapes: dict[str, Any] = {}
        self._is_named = is_named

    def describe(self, shape: Any) -> JsonSchema:
        """The schema of a type: of a struct, or of what a member of one may be."""
        if get_origin(shape) is Annotated:
            base, *rules = get_args(shape)
            return _narrowed(self.describe(base), [r for r in rules if isinstance(r, msgspec.Meta)])
        struct = get_origin(shape) or shape
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
            return self._struct(shape, struct)
        plain = _PLAIN.get(shape)
        return self._composed(shape) if plain is None else plain

    def _struct(self, shape: Any, struct: type[msgspec.Struct]) -> JsonSchema:
        name = component_name(struct) or struct.__name__
        if not self._is_named:
            return self._members(shape, struct, name)
        if self._shapes.setdefault(name, shape) != shape:
            raise TypeError(f"{shape!r} has the name of another struct in the document")
        if name not in self.schemas:
            self.schemas[name] = {}  # it may refer to itself
            self.schemas[name] = self._members(shape, struct, name)
        return reference(name)

    def _members(self, shape: Any, struct: type[msgspec.Struct], name: str) -> JsonSchema:
        properties: dict[str, JsonSchema] = {}
        required: list[str] = []
        config = struct.__struct_config__
        if config.tag_field is not None:
            properties[config.tag_field] = {"const": config.tag}
            required.append(config.tag_field)
        for field in msgspec.structs.fields(shape):
            member = field.encode_name
            words = f"{name}{member.title().replace('_', '')}"
            properties[member] = self._enumerated(self.describe(_sent_type(field)), words)
            if field.required:
                required.append(field.encode_name)
        example: object = vars(struct).get("example")
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": bool(vars(struct).get("takes_more", False)),
            **({} if example is None else {"examples": [example]}),
        }

    def _enumerated(self, schema: JsonSchema, name: str) -> JsonSchema:
        """What a member, its elements or one of its kinds is one of, under a name of its own.

        Example: `ConnectionLabelStatus`.
        """
        if not self._is_named:
            return schema
        if len(schema.get("enum", ())) > 1:
            if self._shapes.setdefault(name, schema) != schema:
                raise TypeError(f"{name} names something else in the document")
            self.schemas[name] = schema
            return reference(name)
        if "items" in schema:
            return {**schema, "items": self._enumerated(schema["items"], name)}
        if "anyOf" in schema:
            return {**schema, "anyOf": [self._enumerated(kind, name) for kind in schema["anyOf"]]}
        return schema

    def _composed(self, shape: Any) -> JsonSchema:
        origin, parts = get_origin(shape), get_args(shape)
        if origin is Literal:
            return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        if origin in (Union, UnionType):
            return {"anyOf": [self.describe(part) for part in parts]}
        if origin in _LISTS:
            return {"type": "array", "items": self.describe(parts[0])}
        if origin in _OBJECTS:
            return {"type": "object", "additionalProperties": self.describe(parts[1]) or True}
        if isinstance(shape, type) and issubclass(shape, Enum):
            return {"enum": [member.value for member in shape]}
        raise TypeError(f"{shape!r} has no JSON Schema here")


def reference(name: str) -> JsonSchema:
    """To what is described under that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def component_name(struct: type[msgspec.Struct]) -> str | None:
    """The name of a struct in the document: its own, never that of a struct it extends."""
    return cast("str | None", vars(struct).get("component"))


def _sent_type(field: msgspec.structs.FieldInfo) -> Any:
    """What a member is when it is sent: one that is left out as `None` is never null."""
    absent = (msgspec.UnsetType, type(None) if field.default is None else msgspec.UnsetType)
    parts = get_args(field.type) if get_origin(field.type) in (Union, UnionType) else ()
    sent = tuple(part for part in parts if part not in absent)
    return Union[sent] if sent else field.type  # noqa: UP007 (made, not written)


def _narrowed(schema: JsonSchema, rules: Sequence[msgspec.Meta]) -> JsonSchema:
    narrowed = dict(schema)
    for rule in rules:
        size = _SIZES.get(str(schema.get("type")), "Length")
        bounds: dict[str, object] = {
            "description": rule.description,
            "pattern": rule.pattern,
            "minimum": rule.ge,
            "maximum": rule.le,
            f"min{size}": rule.min_length,
            f"max{size}": rule.max_length,
        }
        narrowed |= {name: value for name, value in bounds.items() if value is not None}
        narrowed |= rule.extra_json_schema or {}
    return narrowed
