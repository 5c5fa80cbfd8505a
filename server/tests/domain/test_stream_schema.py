"""The properties of a stream, read from its JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.declaration import Property
from pdpp_kernel.json_shapes import Members, ShapeFaults
from pdpp_kernel.values import ValueKind
from personal_server.domain.stream_schema import (
    MAX_SCHEMA_BYTES,
    is_nullable,
    read_properties,
    value_kind,
    value_types,
)


def read(raw: dict[str, Any]) -> tuple[dict[str, Property], list[str]]:
    findings = ShapeFaults()
    found = read_properties(Members(raw, "/schema", findings))
    return found, [entry["path"] for entry in findings.entries]


def declared(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        ({"type": "boolean"}, ValueKind.BOOLEAN, False),
        ({"type": "integer"}, ValueKind.INTEGER, False),
        ({"type": "number"}, ValueKind.NUMBER, False),
        ({"type": "string"}, ValueKind.STRING, False),
        ({"type": "string", "format": "date"}, ValueKind.DATE, False),
        ({"type": "string", "format": "date-time"}, ValueKind.INSTANT, False),
        ({"type": "string", "format": "email"}, ValueKind.STRING, False),
        ({"type": "integer", "format": "date"}, ValueKind.INTEGER, False),
        ({"type": ["string", "null"]}, ValueKind.STRING, True),
        ({"type": ["null", "string", 7]}, ValueKind.STRING, True),
        ({"type": ["string", "integer"]}, None, False),
        ({"type": "null"}, None, True),
        ({"type": "object"}, None, False),
        ({"type": 7}, None, False),
        ({}, None, False),
    ],
)
def test_a_property_of_one_scalar_type_can_be_compared(
    schema: dict[str, Any], kind: ValueKind | None, nullable: bool
) -> None:
    assert (value_kind(schema), is_nullable(schema)) == (kind, nullable)


def test_types_are_named_as_the_schema_names_them() -> None:
    assert value_types({"type": ["null", "string", 7]}) == ("null", "string")


def test_properties_stand_in_the_order_of_the_schema_with_what_they_say() -> None:
    title = {"type": ["string", "null"], "x_pdpp_type": "text", "x_pdpp_role": "primary-title"}
    found, faults = read(declared(title=title, at={"type": "string", "x_pdpp_type": ""}))
    assert faults == []
    assert list(found) == ["title", "at"]
    assert found["title"] == Property(
        "title", title, ValueKind.STRING, "text", "primary-title", nullable=True
    )
    assert (found["at"].type, found["at"].role) == (None, None)


def test_a_property_is_what_its_reference_says_unless_it_says_it_itself() -> None:
    raw = declared(
        one={"$ref": "#/$defs/a~1b"},
        two={"$ref": "#/$defs/a~1b", "x_pdpp_role": "author"},
        none={"$ref": "#/$defs/missing"},
        loop={"$ref": "#/properties/loop"},
        bare=True,
    )
    raw["$defs"] = {
        "a/b": {"$ref": "#/$defs/c~0d"},
        "c~d": {"type": "integer", "x_pdpp_type": "money", "x_pdpp_role": "amount"},
        "missing": {},
    }
    found, faults = read(raw)
    assert faults == []
    assert [(p.kind, p.type, p.role) for p in found.values()] == [
        (ValueKind.INTEGER, "money", "amount"),
        (ValueKind.INTEGER, "money", "author"),
        (None, None, None),
        (None, None, None),
        (None, None, None),
    ]
    assert found["one"].schema == {"$ref": "#/$defs/a~1b"}


@pytest.mark.parametrize("role", ["primary-title", "event-time"])
def test_of_several_with_a_role_that_one_may_have_the_first_keeps_it(role: str) -> None:
    found, faults = read(declared(a={"x_pdpp_role": role}, b={"x_pdpp_role": role}))
    assert faults == []
    assert [p.role for p in found.values()] == [role, None]


@pytest.mark.parametrize("role", ["primary-title", "event-time", "event-end", "whole-days"])
def test_a_role_that_is_taken_from_a_property_is_told(role: str) -> None:
    findings = ShapeFaults()
    raw = declared(a={"x_pdpp_role": role}, b={"x_pdpp_role": role}, c={})
    found = read_properties(Members(raw, "/schema", findings))
    assert [p.role for p in found.values()] == [role, None, None]
    assert [each["path"] for each in findings.adapted] == ["/schema/properties"]


@pytest.mark.parametrize(("references", "kind"), [(15, ValueKind.STRING), (16, None)])
def test_references_are_followed_so_far(references: int, kind: ValueKind | None) -> None:
    raw = declared(a={"$ref": "#/$defs/0"})
    chain = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(references - 1)}
    raw["$defs"] = {**chain, str(references - 1): {"type": "string"}}
    found, faults = read(raw)
    assert (found["a"].kind, faults) == (kind, [])


def test_other_roles_may_be_several_properties() -> None:
    found, _ = read(declared(a={"x_pdpp_role": "author"}, b={"x_pdpp_role": "author"}))
    assert [p.role for p in found.values()] == ["author", "author"]


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"properties": {"a": {}}}, "/schema/type"),
        ({"type": "object"}, "/schema/properties"),
        ({"type": "object", "properties": {}}, "/schema/properties"),
        ({"type": "object", "properties": []}, "/schema"),
        (
            {**declared(a={}), "$schema": "http://json-schema.org/draft-07/schema#"},
            "/schema/$schema",
        ),
        (declared(**{"a b": {}}), "/schema/properties"),
        (declared(**{"a" * 129: {}}), "/schema/properties"),
        (declared(a={"$ref": "other.json"}), "/schema/properties/a/$ref"),
        (declared(a={"$ref": 7}), "/schema/properties/a/$ref"),
        (
            declared(a={"anyOf": [{}, {"$dynamicRef": "x"}]}),
            "/schema/properties/a/anyOf/1/$dynamicRef",
        ),
        (declared(a={"$id": "https://example.org"}), "/schema/properties/a/$id"),
        (declared(a={"type": "text"}), "/schema"),
        (declared(a={"description": "x" * MAX_SCHEMA_BYTES}), "/schema"),
    ],
)
def test_a_fault_is_found_where_it_is(raw: dict[str, Any], place: str) -> None:
    _, faults = read(raw)
    assert set(faults) == {place}


@pytest.mark.parametrize(
    "raw",
    [
        {**declared(a={}), "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {**declared(a={}), "$schema": "https://json-schema.org/draft/2020-12/schema#"},
        declared(**{"a" * 128: {}, "_b-1": {}}),
        declared(a={"const": {"$ref": "other.json"}}),
        declared(a={"enum": [{"$id": "other"}], "default": {"$ref": 1}, "examples": [{"$ref": 1}]}),
        declared(a={"properties": {"$ref": {"type": "string"}}}),
    ],
)
def test_a_sound_schema_has_no_faults(raw: dict[str, Any]) -> None:
    found, faults = read(raw)
    assert faults == []
    assert found


def test_a_schema_may_have_256_kibibytes() -> None:
    fixed = declared(a={"description": ""})
    room = MAX_SCHEMA_BYTES - len(str(fixed).replace("'", '"').replace(" ", ""))
    assert read(declared(a={"description": "x" * room}))[1] == []
    assert read(declared(a={"description": "x" * (room + 1)}))[1] == ["/schema"]
