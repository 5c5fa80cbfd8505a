"""Capabilities: what a token can do with the fields and relations of a stream.

Rule: `usable` = declared and granted and available, equally for clients and owners; the same
facts decide here and in `authorize`.
Source: docs/contract/resource-server.md 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pdpp_kernel.aggregations import FIGURE_WORDS, Metric
from pdpp_kernel.declaration import Cardinality, KeySide, Property
from pdpp_kernel.operators import RANGE_OPERATORS
from pdpp_kernel.wire_objects import Count, WireObject, Word, Yes
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.skipped_sources import MODE_NOT_AVAILABLE
from personal_server.enforcement.aggregates import fields_for, usable_kinds
from personal_server.enforcement.expansion import reach
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.semantic_queries import meaning_fields

NOT_GRANTED = "field_not_granted"
WHOLE = 100
METRICS = tuple(sorted(each.value for each in Metric if each.is_declared))


class Capability(WireObject, kw_only=False):
    """One thing that may be done with a field.  `reason` says why a declared one is not usable."""

    declared: bool
    usable: bool
    reason: str | None = None
    operators: Sequence[Word] | None = None
    caseless: Yes | None = None


class SearchCapability(WireObject):
    """The modes and fields of a stream that this token can search.

    While records wait to be embedded, how many percent are.
    """

    modes: Sequence[str]
    lexical_fields: Sequence[Word]
    semantic_fields: Sequence[Word]
    embedded_percent: Count | None = None


class SortCapability(WireObject):
    """The fields of a stream that this token can sort by."""

    fields: Sequence[Word]
    default: str | None


class UsableView(WireObject):
    """A view of a stream, cut to the grant."""

    id: Word
    label: str
    fields: Sequence[Word]


class TimeBounds(WireObject):
    """The stretch of time that a grant is limited to."""

    field: Word
    since: str | None = None
    until: str | None = None


class LimitedField(WireObject):
    """A granted field by which records are picked, and by how many of its values."""

    field: Word
    value_count: Count


class Constraints(WireObject):
    """What limits the records of a stream that a token can read."""

    time_constraint: TimeBounds | None
    resource_count: Count | None
    only: Sequence[LimitedField] | None = None
    further_limits: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing limits them."""
        return self == Constraints(time_constraint=None, resource_count=None)


class ExpandCapability(WireObject, kw_only=True):
    """A relation that reads may follow, or why they may not."""

    name: Word
    stream: Word
    target_stream: Word
    cardinality: Cardinality
    granted: bool
    usable: bool
    foreign_key: Word
    child_parent_key_field: Word | None = None
    foreign_key_on: KeySide
    default_limit: Count | None = None
    max_limit: Count | None = None
    reason: str | None = None


class FieldCapabilities(msgspec.Struct, frozen=True):
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


def field_capabilities(
    source: ReadableSource, embedded: int | None = None
) -> list[FieldCapabilities]:
    """For every declared field, in schema order.

    `embedded` percent of the records can be found by meaning, `None`: the server searches words.
    """
    by_meaning = embedded is not None and source.made_of is None
    declared = source.declared.properties.values()
    return [_field(source, each, by_meaning=by_meaning) for each in declared]


def search_capability(source: ReadableSource, embedded: int | None = None) -> SearchCapability:
    """`search` of a stream row: the modes and fields that this token can use."""
    lexical = searchable_fields(source)
    semantic = () if embedded is None else meaning_fields(source)
    modes = [*(["lexical"] if lexical else []), *(["semantic"] if semantic else [])]
    return SearchCapability(
        modes=[*modes, "hybrid"] if len(modes) > 1 else modes,
        lexical_fields=lexical,
        semantic_fields=semantic,
        embedded_percent=embedded if semantic and embedded != WHOLE else None,
    )


def usable_metrics(source: ReadableSource) -> list[str]:
    """The metrics that this token can use, by name."""
    usable = usable_kinds(source)
    return [metric for metric in METRICS if usable[metric]]


def sort_capability(source: ReadableSource) -> SortCapability:
    """`sort` of a stream row."""
    cursor = source.cursor_field
    return SortCapability(
        fields=[name for name in source.declared.sortable if name in source.fields],
        default=None if cursor is None else f"-{cursor}",
    )


def usable_views(source: ReadableSource) -> list[UsableView]:
    """The views cut to the grant; those without a granted field are left out."""
    found: list[UsableView] = []
    for view in source.declared.views:
        fields = [name for name in view.fields if name in source.fields]
        if fields:
            found.append(UsableView(id=view.id, label=view.label, fields=fields))
    return found


def constraints_of(source: ReadableSource) -> Constraints:
    """`constraints` of a stream row."""
    bound = source.time_constraint
    shown = None
    if bound is not None:
        shown = TimeBounds(field=bound.field, since=bound.since, until=bound.until)
    count = None if source.resources is None else len(source.resources)
    told = [LimitedField(c.field, len(c.values)) for c in source.only if c.field in source.fields]
    return Constraints(
        time_constraint=shown,
        resource_count=count,
        only=told or None,
        further_limits=True if len(told) < len(source.only) else None,
    )


def expand_capabilities(
    authority: ReadAuthority, sources: Sequence[ReadableSource]
) -> list[ExpandCapability]:
    """The relations that reads may follow, through at least one of the sources."""
    found: list[ExpandCapability] = []
    for declared in sources[0].declared.expansions:
        relation = declared.relationship
        reaches = [reach(authority, source, declared) for source in sources]
        usable = any(r.child is not None for r in reaches)
        reason = None if usable else reaches[0].reason
        many = relation.cardinality is Cardinality.HAS_MANY
        entry = ExpandCapability(
            name=relation.name,
            stream=relation.stream,
            target_stream=relation.stream,
            cardinality=relation.cardinality,
            granted=usable or reason == NOT_GRANTED,
            usable=usable,
            foreign_key=relation.foreign_key,
            child_parent_key_field=relation.foreign_key,
            foreign_key_on=msgspec.convert(relation.foreign_key_on, KeySide),
            default_limit=declared.default_limit if many else None,
            max_limit=declared.max_limit if many else None,
            reason=reason,
        )
        found.append(entry)
    return found


def _field(source: ReadableSource, declared: Property, *, by_meaning: bool) -> FieldCapabilities:
    stream, name = source.declared, declared.name
    granted = name in source.fields
    return FieldCapabilities(
        declared=declared,
        granted=granted,
        exact=msgspec.structs.replace(
            _capability(declared.kind is not None, granted),
            operators=declared.operators if granted and declared.operators else None,
            caseless=True if granted and declared.is_caseless else None,
        ),
        range=_capability(name in stream.range_filters, granted),
        operators=tuple(op for op in RANGE_OPERATORS if op in stream.range_filters.get(name, ())),
        sort=_capability(name in stream.sortable, granted),
        lexical=_capability(name in stream.lexical_fields, granted),
        semantic=_capability(name in stream.semantic_fields, granted, available=by_meaning),
        aggregations={
            kind: _capability(name in fields_for(stream, kind), granted) for kind in FIGURE_WORDS
        },
    )


def _capability(declared: bool, granted: bool, *, available: bool = True) -> Capability:
    if not declared:
        return Capability(False, False)
    if not granted:
        return Capability(True, False, NOT_GRANTED)
    return Capability(True, available, None if available else MODE_NOT_AVAILABLE)
