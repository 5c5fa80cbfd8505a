"""Capabilities: what a token can do with the fields and relations of a stream.

Rule: `usable` = declared and granted and available, equally for clients and owners; the same
facts decide here and in `authorize`.
Source: docs/contract/resource-server.md 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.declaration import RANGE_OPERATORS, Cardinality, Property
from personal_server.enforcement.aggregates import usable_kinds
from personal_server.enforcement.expansion import reach
from personal_server.enforcement.search import searchable_fields

NOT_GRANTED = "field_not_granted"
MODE_NOT_AVAILABLE = "mode_not_available"
AGGREGATIONS = ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")
METRICS = ("count", "count_distinct", "max", "min", "sum")


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that may be done with a field.  `reason` says why a declared one is not usable."""

    declared: bool
    usable: bool
    reason: str | None = None

    def render(self) -> dict[str, object]:
        """The wire form."""
        members: dict[str, object] = {"declared": self.declared, "usable": self.usable}
        if self.reason is not None:
            members["reason"] = self.reason
        return members


@dataclass(frozen=True, slots=True)
class FieldCapabilities:
    """Everything that may be done with one declared field."""

    declared: Property
    granted: bool
    exact: Capability
    range: Capability
    operators: tuple[str, ...]
    sort: Capability
    lexical: Capability
    semantic: Capability
    aggregations: Mapping[str, Capability]


def field_capabilities(source: ReadableSource) -> list[FieldCapabilities]:
    """For every declared field, in schema order."""
    return [_field(source, declared) for declared in source.declared.properties.values()]


def search_capability(source: ReadableSource) -> dict[str, object]:
    """`search` of a stream row: the modes and fields that this token can use."""
    lexical = searchable_fields(source)
    return {
        "modes": ["lexical"] if lexical else [],
        "lexical_fields": list(lexical),
        "semantic_fields": [],
    }


def usable_metrics(source: ReadableSource) -> list[str]:
    """The metrics that this token can use, by name."""
    usable = usable_kinds(source)
    return [metric for metric in METRICS if usable[metric]]


def sort_capability(source: ReadableSource) -> dict[str, object]:
    """`sort` of a stream row."""
    cursor = source.cursor_field
    return {
        "fields": [name for name in source.declared.sortable if name in source.fields],
        "default": None if cursor is None else f"-{cursor}",
    }


def usable_views(source: ReadableSource) -> list[dict[str, object]]:
    """The views cut to the grant; those without a granted field are left out."""
    found: list[dict[str, object]] = []
    for view in source.declared.views:
        fields = [name for name in view.fields if name in source.fields]
        if fields:
            found.append({"id": view.id, "label": view.label, "fields": fields})
    return found


def constraints_of(source: ReadableSource) -> dict[str, object]:
    """`constraints` of a stream row."""
    bound = source.time_constraint
    shown: dict[str, object] | None = None
    if bound is not None:
        texts = {"field": bound.field, "since": bound.since, "until": bound.until}
        shown = {name: value for name, value in texts.items() if value is not None}
    count = None if source.resources is None else len(source.resources)
    return {"time_constraint": shown, "resource_count": count}


def expand_capabilities(
    authority: ReadAuthority, sources: Sequence[ReadableSource]
) -> list[dict[str, object]]:
    """The relations that reads may follow, through at least one of the sources."""
    found: list[dict[str, object]] = []
    for declared in sources[0].declared.expansions:
        relation = declared.relationship
        reaches = [reach(authority, source, declared) for source in sources]
        usable = any(r.child is not None for r in reaches)
        reason = None if usable else reaches[0].reason
        entry: dict[str, object] = {
            "name": relation.name,
            "stream": relation.stream,
            "target_stream": relation.stream,
            "cardinality": relation.cardinality.value,
            "granted": usable or reason == NOT_GRANTED,
            "usable": usable,
            "foreign_key": relation.foreign_key,
            "child_parent_key_field": relation.foreign_key,
            "foreign_key_on": relation.foreign_key_on,
        }
        if relation.cardinality is Cardinality.HAS_MANY:
            entry["default_limit"] = declared.default_limit
            entry["max_limit"] = declared.max_limit
        if reason is not None:
            entry["reason"] = reason
        found.append(entry)
    return found


def _field(source: ReadableSource, declared: Property) -> FieldCapabilities:
    stream, name = source.declared, declared.name
    granted = name in source.fields
    aggregations = stream.aggregations
    return FieldCapabilities(
        declared=declared,
        granted=granted,
        exact=_capability(declared.kind is not None, granted),
        range=_capability(name in stream.range_filters, granted),
        operators=tuple(op for op in RANGE_OPERATORS if op in stream.range_filters.get(name, ())),
        sort=_capability(name in stream.sortable, granted),
        lexical=_capability(name in stream.lexical_fields, granted),
        semantic=_capability(name in stream.semantic_fields, granted, available=False),
        aggregations={
            kind: _capability(name in getattr(aggregations, kind), granted) for kind in AGGREGATIONS
        },
    )


def _capability(declared: bool, granted: bool, *, available: bool = True) -> Capability:
    if not declared:
        return Capability(False, False)
    if not granted:
        return Capability(True, False, NOT_GRANTED)
    return Capability(True, available, None if available else MODE_NOT_AVAILABLE)
