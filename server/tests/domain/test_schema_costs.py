"""What a schema with references may cost."""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from pdpp_kernel.errors import InvalidDeclaration
from personal_server.collecting.declarations import declare
from personal_server.domain.schema_costs import is_bounded
from server.tests.storage.worlds import declaration
from tests.oracle.memory import MemoryStore


def declared(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def at(place: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{place}"}


TWICE = {f"d{n}": {"allOf": [at(f"d{n - 1}"), at(f"d{n - 1}")]} for n in range(1, 40)}
AGAIN = {"anyOf": [{"items": at("r")}, {"items": at("r"), "minItems": 1}]}
TREE = {"properties": {"left": at("t"), "right": at("t"), "all": {"items": at("t")}}}


@pytest.mark.parametrize(
    "raw",
    [
        {**declared(a=at("d39")), "$defs": {"d0": {"type": "string"}, **TWICE}},
        {**declared(a=at("r")), "$defs": {"r": AGAIN}},
        declared(a={"allOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}),
        {**declared(a=at("c0")), "$defs": {f"c{n}": at(f"c{n + 1}") for n in range(3_000)}},
        {**declared(a={"$ref": "#x"}), "$defs": {"y": {"$anchor": "x", **AGAIN}, "r": AGAIN}},
    ],
)
def test_references_that_multiply_have_no_bound(raw: dict[str, Any]) -> None:
    assert not is_bounded(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {**declared(a=at("m"), b=at("m")), "$defs": {"m": {"type": "number"}}},
        {**declared(a=at("t")), "$defs": {"t": TREE}},
        {**declared(a={"items": {"$ref": "#/prefixItems/0"}}), "prefixItems": [{"type": "string"}]},
    ],
)
def test_other_references_have_one(raw: dict[str, Any]) -> None:
    assert is_bounded(raw)


def many(count: int) -> list[dict[str, Any]]:
    return [{} for _ in range(count)]


def named(count: int) -> dict[str, Any]:
    return {str(number): {} for number in range(count)}


def chain(references: int, keyword: str, levels: int) -> dict[str, Any]:
    """A property behind so many references, with so many levels below it."""
    inner: Any = {}
    for _ in range(levels):
        inner = {keyword: [inner] if keyword == "prefixItems" else inner}
    parts = {f"c{n}": at(f"c{n + 1}") for n in range(references)}
    return {**declared(a=at("c0")), "$defs": {**parts, f"c{references}": inner}}


COSTS: list[tuple[dict[str, Any], bool]] = [
    # a record costs its own schema and all that it is held against: ten thousand at most
    ({"allOf": many(9_999)}, True),
    ({"allOf": many(10_000)}, False),
    ({"anyOf": many(5_000), "oneOf": many(4_999)}, True),
    ({"not": {"allOf": many(9_999)}}, False),
    ({"patternProperties": named(10_000)}, False),
    ({"dependentSchemas": named(10_000)}, False),
    ({"if": {}, "then": {}, "else": {"allOf": many(9_996)}}, True),
    ({"if": {}, "then": {}, "else": {"allOf": many(9_997)}}, False),
    # of properties and of the places of a list a value meets one
    ({"properties": named(20_001)}, True),
    ({"properties": named(20_002)}, False),
    ({"prefixItems": many(15_000)}, True),
    ({"prefixItems": [{}, {"allOf": many(9_999)}]}, False),
    # what leads back to itself is held against each of 32 levels of a record
    ({"items": {"$ref": "#"}, "allOf": many(301)}, True),
    ({"items": {"$ref": "#"}, "allOf": many(302)}, False),
    ({"contains": {"$dynamicRef": "#"}, "allOf": many(302)}, False),
    # two hundred steps, to a reference or a level
    (chain(198, "items", 0), True),
    (chain(199, "items", 0), False),
    (chain(190, "items", 8), True),
    (chain(190, "items", 9), False),
    (chain(190, "prefixItems", 8), True),
    (chain(190, "prefixItems", 9), False),
]


@pytest.mark.parametrize(("raw", "is_one"), COSTS)
def test_a_schema_may_cost_so_much(raw: dict[str, Any], *, is_one: bool) -> None:
    assert is_bounded(raw) is is_one


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/r",
        "#/%24defs/r",
        "#/$defs/a~1b~0c",
        "#/anyOf/0/not",
        "#named",
        "#moving",
    ],
)
def test_a_reference_is_followed_to_where_it_leads(reference: str) -> None:
    costly = {"allOf": many(9_997)}
    raw: dict[str, Any] = {
        "$defs": {"r": costly, "a/b~c": costly, "n": {"$anchor": "named", **costly}},
        "anyOf": [{"not": {}}],
        "definitions": [{"m": {"$dynamicAnchor": "moving", **costly}}],
    }
    if reference == "#/anyOf/0/not":
        raw["anyOf"] = [{"not": {"allOf": many(5_000)}}]
    raw["properties"] = {"a": {"$ref": reference}}
    assert not is_bounded(raw)


@pytest.mark.parametrize("reference", ["#/anyOf/1", "#/anyOf/x", "#/$defs/none/a", "#none", "#/a"])
def test_a_reference_to_nothing_costs_nothing(reference: str) -> None:
    parts: dict[str, Any] = {"anyOf": [{}], "$defs": {}, "allOf": many(9_990)}
    assert is_bounded({**parts, "not": {"$ref": reference}})


def test_a_declaration_with_one_that_has_no_bound_is_not_accepted() -> None:
    raw = orjson.loads(orjson.dumps(declaration().raw))
    raw["streams"][0]["schema"]["$defs"] = {"r": AGAIN}
    raw["streams"][0]["schema"]["properties"]["more"] = at("r")
    with pytest.raises(InvalidDeclaration) as refused:
        declare(MemoryStore(), raw, 1)
    assert (
        cast("list[dict[str, str]]", refused.value.members["errors"])[0]["path"]
        == "/streams/0/schema"
    )
