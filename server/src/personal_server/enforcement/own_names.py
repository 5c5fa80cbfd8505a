"""Declarations made from the owner's own files: what a client sees of them.

Rule: a connector's declaration is public; one that was made from a file names what that file holds,
and these names are the owner's.  To a client it declares what is granted and nothing else.  It is
cut where the read authority is made, so that schemas, errors and suggestions have nothing to hide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from pdpp_kernel.declaration import Aggregations, Stream
from personal_server.domain.authority import ReadableSource

Data = Mapping[str, Any]
_QUERY = ("range_filters", "search", "aggregations")
# Members of a stream, as declared, that a client gets as they are.
_SHOWN = ("name", "semantics", "primary_key", "cursor_field", "consent_time_field", "selection")


def granted_part(source: ReadableSource) -> ReadableSource:
    """The source as if its stream had no other fields, and no stream beside it."""
    declared = _stream(source.declared, frozenset(source.fields))
    return dataclasses.replace(
        source, declared=declared, sibling_streams=frozenset({source.stream})
    )


def _stream(stream: Stream, granted: Collection[str]) -> Stream:
    """Without views and relations, which tables have none of."""

    def kept(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name in granted)

    figures = stream.aggregations
    return replace(
        stream,
        properties={n: p for n, p in stream.properties.items() if n in granted},
        raw=_raw(cast("Data", stream.raw), granted),
        detail=None,
        cursor_field=stream.cursor_field if stream.cursor_field in granted else None,
        required=kept(stream.required),
        views=(),
        relationships=(),
        expansions=(),
        range_filters={n: ops for n, ops in stream.range_filters.items() if n in granted},
        lexical_fields=kept(stream.lexical_fields),
        semantic_fields=kept(stream.semantic_fields),
        aggregations=Aggregations(
            figures.count,
            kept(figures.sum),
            kept(figures.min),
            kept(figures.max),
            kept(figures.count_distinct),
            kept(figures.group_by),
            kept(figures.group_by_time),
        ),
    )


def _raw(raw: Data, granted: Collection[str]) -> Data:
    schema, query = raw["schema"], raw.get("query", {})
    named = {
        "properties": {n: p for n, p in schema["properties"].items() if n in granted},
        "required": [name for name in schema.get("required", ()) if name in granted],
    }
    return {
        **{name: raw[name] for name in _SHOWN if name in raw},
        "schema": {"type": "object", **named},
        "query": {name: _asked(name, query[name], granted) for name in _QUERY if name in query},
    }


def _asked(part: str, members: Data, granted: Collection[str]) -> Data:
    """Operators by field, or lists of fields and switches by name."""
    if part == "range_filters":
        return {name: signs for name, signs in members.items() if name in granted}
    return {name: _kept(value, granted) for name, value in members.items()}


def _kept(value: bool | Sequence[str], granted: Collection[str]) -> bool | list[str]:
    return value if isinstance(value, bool) else [name for name in value if name in granted]
