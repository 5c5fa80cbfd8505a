"""What a schema with references may cost: how often one record may be held against parts of it.

Forty schemas of two references each are held 2^39 times against one value, and a schema that leads
back to itself twice doubles with every level of a record.  Nothing can stop the validator then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import unquote

from pdpp_kernel.errors import InvalidDeclaration
from pdpp_kernel.source_declaration import SourceDeclaration

Schema = Mapping[str, object]

MOST = 10_000
_LEVELS = 32  # a record is nested no deeper (docs/contract/resource-server.md 13.1)
_MOST_PLACES = 20_000
_MOST_STEPS = 200  # of which each may be three calls deep

_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_BELOW = (
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("items", "contains", "unevaluatedItems"),
)
_ONE_OF_BELOW = ("properties", "prefixItems")  # of the parts of each, a value meets one
_NAMED = ("properties", "patternProperties", "dependentSchemas")


def refuse_costly(declaration: SourceDeclaration) -> None:
    """Raise: InvalidDeclaration, that names the first stream whose schema has no bound.

    Asked before a declaration is accepted; what was accepted before goes on being read.
    """
    for number, stream in enumerate(declaration.streams.values()):
        if not is_bounded(cast("Schema", stream.raw["schema"])):
            fault = "References lead to the same schemas again and again."
            path = f"/streams/{number}/schema"
            raise InvalidDeclaration(
                "The source declaration has errors.", errors=[{"path": path, "message": fault}]
            )


def is_bounded(schema: Schema) -> bool:
    """Whether no value is held against parts of the schema more than `MOST` times.

    Shapes: its references stay inside; of a loop of references at one place the validator ends a
            plain one, and one that branches has no bound.
    """
    try:
        return _Costs(schema).of(schema, _LEVELS, 0) <= MOST
    except _Unbounded:
        return False


class _Unbounded(Exception):
    """It costs too much even to count."""


class _Costs:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._counting: dict[tuple[int, int], bool] = {}  # whether each goes on in several ways
        self._anchors: dict[str, Schema] | None = None

    def of(self, schema: Schema, levels: int, steps: int) -> int:
        """The cost at values that have so many levels below them."""
        node = (id(schema), levels)
        if node in self._known:
            return self._known[node]
        if node in self._counting:  # a loop: all from there on are at one place
            loop = list(self._counting)[list(self._counting).index(node) :]
            if any(self._counting[each] for each in loop):
                raise _Unbounded
            return 0
        if len(self._known) > _MOST_PLACES or steps > _MOST_STEPS:
            raise _Unbounded
        here = list(self._here(schema))
        self._counting[node] = len(here) > 1
        cost = 1 + sum(self.of(part, levels, steps + 1) for part in here)
        if levels:
            cost += sum(self.of(part, levels - 1, steps + 1) for part in _parts(schema, _BELOW))
            for name in _ONE_OF_BELOW:
                parts = _parts(schema, (name,))
                cost += max((self.of(part, levels - 1, steps + 1) for part in parts), default=0)
        del self._counting[node]
        if cost > MOST:
            raise _Unbounded
        self._known[node] = cost
        return cost

    def _here(self, schema: Schema) -> Iterator[Schema]:
        yield from _parts(schema, _HERE)
        for name in ("$ref", "$dynamicRef"):
            reference = schema.get(name)
            target = self._target(reference[1:]) if isinstance(reference, str) else None
            if isinstance(target, dict):
                yield cast("Schema", target)

    def _target(self, fragment: str) -> object:
        node: object = self._root
        if fragment and not fragment.startswith("/"):
            if self._anchors is None:
                self._anchors = dict(_anchors(self._root))
            return self._anchors.get(fragment)
        for step in unquote(fragment).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list):
                items = cast("list[object]", node)
                node = items[int(name)] if name.isdecimal() and int(name) < len(items) else None
            else:
                node = cast("Schema", node).get(name) if isinstance(node, dict) else None
        return node


def _parts(schema: Schema, names: tuple[str, ...]) -> Iterator[Schema]:
    """The schemas that these keywords hold: one, a list of them, or one for each name."""
    for name in names:
        inner = schema.get(name)
        if name in _NAMED and isinstance(inner, dict):
            inner = list(cast("dict[str, object]", inner).values())
        parts = cast("list[object]", inner) if isinstance(inner, list) else [inner]
        yield from (cast("Schema", part) for part in parts if isinstance(part, dict))


def _anchors(value: object) -> Iterator[tuple[str, Schema]]:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        for name in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := members.get(name), str):
                yield anchor, members
        for member in members.values():
            yield from _anchors(member)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _anchors(item)
