from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import jsonschema_rs
import msgspec
import pytest

from pdpp_kernel.wire_objects import (
    Count,
    Instant,
    RawObject,
    WireObject,
    Word,
    Yes,
    raw_json,
)
from personal_server.web.json_schemas import Components

T = TypeVar("T")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Leaf(WireObject, kw_only=True, tag_field="object", tag="leaf"):
    component: ClassVar = "Leaf"
    example: ClassVar = {"object": "leaf", "name": "oak"}

    name: Word
    note: str | None = None


class Branch(WireObject, Generic[T], kw_only=True, rename={"here": "self"}):
    here: Instant
    parent: Count | None
    leaves: Sequence[T]


class Tree(Branch[Leaf], kw_only=True):
    component: ClassVar = "Tree"

    colour: Colour
    kind: Literal["oak", "elm"]
    old: Yes | None = None
    shade: str | msgspec.UnsetType | None = msgspec.UNSET
    pair: Annotated[list[int], msgspec.Meta(min_length=2)] | None = None
    beside: "Tree | None" = None
    data: RawObject


class Extended(Leaf, kw_only=True):
    size: float


def described(shape: object) -> dict[str, Any]:
    components = Components()
    reference = components.describe(shape)
    return {**reference, "components": {"schemas": components.schemas}}


def schema_of(shape: Any) -> Mapping[str, Any]:
    components = Components()
    components.describe(shape)
    return components.schemas[shape.component]


def test_members_without_a_default_are_required_and_the_rest_may_be_absent() -> None:
    assert schema_of(Leaf) == {
        "type": "object",
        "properties": {
            "object": {"const": "leaf"},
            "name": {"type": "string", "minLength": 1},
            "note": {"type": "string"},
        },
        "required": ["object", "name"],
        "additionalProperties": False,
        "examples": [{"object": "leaf", "name": "oak"}],
    }


def test_each_kind_of_member_has_its_schema() -> None:
    assert schema_of(Tree)["properties"] == {
        "self": {"type": "string", "format": "date-time"},
        "parent": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        "leaves": {"type": "array", "items": {"$ref": "#/components/schemas/Leaf"}},
        "colour": {"$ref": "#/components/schemas/TreeColour"},
        "kind": {"$ref": "#/components/schemas/TreeKind"},
        "old": {"type": "boolean", "enum": [True]},
        "shade": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        "beside": {"$ref": "#/components/schemas/Tree"},
        "data": {"type": "object", "additionalProperties": True},
    }


def test_what_extends_a_component_is_not_that_component() -> None:
    found = described(Extended)
    assert found["$ref"] == "#/components/schemas/Extended"
    assert found["components"]["schemas"]["Extended"]["properties"].keys() == {
        "object",
        "name",
        "note",
        "size",
    }


def test_a_type_without_a_schema_is_refused() -> None:
    with pytest.raises(TypeError):
        Components().describe(set[str])


@pytest.mark.parametrize("beside", [None, "itself"])
@pytest.mark.parametrize("note", [None, "tall"])
def test_what_a_struct_encodes_to_fits_its_schema(note: str | None, beside: str | None) -> None:
    tree = Tree(
        here="2026-03-14T06:30:00Z",
        parent=None,
        leaves=[Leaf(name="oak", note=note)],
        colour=Colour.RED,
        kind="elm",
        shade=None,
        pair=[1, 2],
        data=raw_json({"any": 1}),
    )
    tree.beside = msgspec.structs.replace(tree, beside=None) if beside else None
    sent: object = msgspec.json.decode(msgspec.json.encode(tree))
    jsonschema_rs.Draft202012Validator(described(Tree), validate_formats=True).validate(sent)
