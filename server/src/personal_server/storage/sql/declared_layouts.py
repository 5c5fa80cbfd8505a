"""Which layout a declaration asks for: columns, indexes, and what is summed up beside the records.

Rule: a layout is a pure function of a declaration.
"""

from __future__ import annotations

from collections.abc import Iterable

from pdpp_kernel.declaration import (
    Property,
    Stream,
)
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.layout import Column, Grouped, Layout

# Each costs a walk of every batch, and so many rows a day as it has values; what is grouped by is
# asked for, any other only stands in filters.
MOST_FACETS, MOST_GROUPED_FACETS = 4, 12
# Each costs a walk of every batch, and a row for each value that it has.
MOST_GROUPED = 4

# More numbers than this beside every indexed value would cost more than they save.
MOST_MEASURED = 3


def layouts(declaration: SourceDeclaration) -> dict[str, Layout]:
    """The layout of each stream; fields that other streams refer to are indexed too."""
    referenced: dict[str, set[str]] = {}
    for stream in declaration.streams.values():
        for relation in stream.relationships:
            if relation.foreign_key_on != "self":
                referenced.setdefault(relation.stream, set()).add(relation.foreign_key)
    return {
        name: layout_of(stream, frozenset(referenced.get(name, ())))
        for name, stream in declaration.streams.items()
    }


def layout_of(stream: Stream, referenced: frozenset[str] = frozenset()) -> Layout:
    """The layout of one stream."""
    timed = {*stream.aggregations.min, *stream.aggregations.max}
    indexed = {*stream.indexed, *referenced, *(n for n in timed if _is_instant(stream, n))}
    properties = [p for p in stream.properties.values() if _has_column(p, stream, indexed)]
    columns = tuple(
        Column(property_kept.name, property_kept.kind, f"c{number}", property_kept.name in indexed)
        for number, property_kept in enumerate(properties)
        if property_kept.kind is not None
    )
    return Layout(
        columns,
        _single_key(stream),
        stream.cursor_field,
        stream.sortable,
        stream.consent_time_field,
        stream.event_time_field,
        _measured(stream),
        stream.lexical_fields,
        stream.blob_fields,
        stream.consent_time_field or stream.event_time_field,
        persons=stream.person_fields,
        folded=_folded(stream),
        by_day=True,
        facets=_facets(columns),
        grouped=_grouped(stream, columns),
    )


def _folded(stream: Stream) -> tuple[Column, ...]:
    """Keys of records are found by their own index, as they are."""
    key = _single_key(stream)
    folded_names = [name for name in stream.caseless_fields if name != key]
    return tuple(
        Column(name, ValueKind.STRING, f"f{number}", indexed=True)
        for number, name in enumerate(folded_names)
    )


def _facets(columns: Iterable[Column]) -> tuple[str, ...]:
    """Those that are grouped by come first, and may be more."""
    flags = [column for column in columns if column.kind is ValueKind.BOOLEAN]
    grouped_by = [flag.field for flag in flags if flag.indexed][:MOST_GROUPED_FACETS]
    others = [flag.field for flag in flags if not flag.indexed]
    return (*grouped_by, *others[: max(0, MOST_FACETS - len(grouped_by))])


def _grouped(stream: Stream, columns: Iterable[Column]) -> tuple[Grouped, ...]:
    """Who made records first; what refers to other records has about as many values as they are."""
    references = {relation.foreign_key for relation in stream.relationships}
    apart = {*references, stream.conversation_field, *stream.primary_key}
    strings = {column.field for column in columns if column.kind is ValueKind.STRING}
    group_names = [n for n in stream.aggregations.group_by if n in strings and n not in apart]
    authors = stream.fields_with_role("author")
    declared = [stream.properties[n] for n in sorted(group_names, key=lambda n: n not in authors)]

    def told(name: str | None) -> str | None:
        return name if name in strings else None

    return tuple(
        Grouped(group.name, told(group.label_field), told(group.mark_field))
        for group in declared[:MOST_GROUPED]
    )


def _single_key(stream: Stream) -> str | None:
    name = stream.primary_key[0]
    declared = stream.properties[name]
    is_string = declared.kind is ValueKind.STRING and declared.schema.get("type") == "string"
    return name if len(stream.primary_key) == 1 and is_string else None


def _measured(stream: Stream) -> tuple[str, ...]:
    measured = {*stream.aggregations.sum, *stream.aggregations.min, *stream.aggregations.max}
    numbers = (ValueKind.INTEGER, ValueKind.NUMBER)
    names = [n for n, p in stream.properties.items() if n in measured and p.kind in numbers]
    return tuple(names[:MOST_MEASURED])


def _is_instant(stream: Stream, field: str) -> bool:
    """The stored text of an extreme instant is looked up by its value."""
    return stream.properties[field].kind is ValueKind.INSTANT


def _has_column(property_declared: Property, stream: Stream, indexed: set[str]) -> bool:
    """Every scalar but texts that nobody sorts or groups by, or sees groups by."""
    if property_declared.kind is None:
        return False
    if property_declared.kind is not ValueKind.STRING or property_declared.name in indexed:
        return True
    if property_declared.name in stream.labelling:
        return True
    is_text = property_declared.type == "text" or "contentMediaType" in property_declared.schema
    return not is_text and property_declared.name not in stream.lexical_fields
