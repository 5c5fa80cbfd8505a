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
