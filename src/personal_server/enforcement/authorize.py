"""The only door in: authority x query -> authorized read.

Rule: nothing else constructs an `AuthorizedRead`, and whoever reads records needs one.  A request
can only narrow what the authority allows.
Source: docs/contract/resource-server.md 4.4; docs/decisions.md C3.
"""

from __future__ import annotations

from collections.abc import Iterable

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.criteria import Term
from personal_server.enforcement.aggregates import check_combination, grouping_of, metric_of
from personal_server.enforcement.conditions import conditions_on, order_of
from personal_server.enforcement.expansion import allowed_expansions
from personal_server.enforcement.fields import check_cut, require_field, shown_fields
from personal_server.enforcement.plans import (
    AggregateTerms,
    AuthorizedRead,
    BlobTerms,
    ChangesTerms,
    FieldWindowTerms,
    RecordsTerms,
    RecordTerms,
    SchemaTerms,
    SearchTerms,
    Shown,
)
from personal_server.enforcement.queries import (
    DEFAULT_WINDOW_CHARS,
    MAX_MATCH_CHARS,
    MAX_WINDOW_CHARS,
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Cut,
    FieldWindowQuery,
    RecordQuery,
    RecordsQuery,
    SchemaQuery,
    SearchQuery,
    Selectors,
    StreamQuery,
)
from personal_server.enforcement.readable_sources import (
    ambiguous_schema,
    connection_count,
    select_any,
    select_blob_sources,
    select_stream,
)
from personal_server.enforcement.search import checked_terms, search_parts
from personal_server.errors import InvalidFieldPath, InvalidWindow

# Field windows: which field, and which stretch of it.
#
# Source: docs/contract/resource-server.md 9.2.


_NESTED = frozenset("./[")


def check_path(field: str) -> str:
    """A path of one step.  Raises: InvalidFieldPath."""
    if not field or _NESTED & set(field):
        raise InvalidFieldPath(
            "'field' names one top-level property, such as field=body.", param="field"
        )
    return field


def window_terms(query: FieldWindowQuery) -> FieldWindowTerms:
    """Where the window begins and how long it is.

    Raises: InvalidWindow.
    """
    if query.text is None:
        for name, value in (
            ("before_chars", query.before_chars),
            ("after_chars", query.after_chars),
        ):
            if value is not None:
                raise InvalidWindow(f"'{name}' gives context to 'q'; send 'q'.", param=name)
        limit = query.limit_chars or DEFAULT_WINDOW_CHARS
        return _terms(query, limit, query.offset_chars or 0, 0)
    if query.offset_chars is not None:
        raise InvalidWindow("'q' and 'offset_chars' exclude each other.", param="offset_chars")
    if not 1 <= len(query.text) <= MAX_MATCH_CHARS:
        raise InvalidWindow(f"'q' has 1 to {MAX_MATCH_CHARS} characters.", param="q")
    length = _length(query, len(query.text))
    return _terms(query, length, 0, _before(query, length - len(query.text)))


def _length(query: FieldWindowQuery, text_chars: int) -> int:
    if query.limit_chars is not None:
        return query.limit_chars
    if query.before_chars is None and query.after_chars is None:
        return DEFAULT_WINDOW_CHARS
    return min(MAX_WINDOW_CHARS, (query.before_chars or 0) + text_chars + (query.after_chars or 0))


def _before(query: FieldWindowQuery, room: int) -> int:
    room = max(0, room)
    if query.before_chars is not None:
        return min(query.before_chars, room)
    return 0 if query.after_chars is not None else room // 2


def _terms(query: FieldWindowQuery, length: int, offset: int, before: int) -> FieldWindowTerms:
    return FieldWindowTerms(
        key=query.key,
        field=query.field,
        limit_chars=length,
        offset_chars=offset,
        text=query.text,
        before_chars=before,
    )


def authorize_records(
    authority: ReadAuthority, query: RecordsQuery
) -> AuthorizedRead[RecordsTerms]:
    """A record list, narrowed to what the authority allows.

    Raises: the errors of selection, fields, filters, sort, views and expansion
    (docs/contract/resource-server.md 7.7).
    """
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    conditions = conditions_on(sources, query.filters)
    order = order_of(sources, query.sort, query.order)
    shown = _shown(sources, query.cut)
    expansions, warnings = allowed_expansions(authority, sources, query.expand)
    terms = RecordsTerms(
        order=order,
        conditions=conditions,
        shown=shown,
        expansions=expansions,
        limit=query.limit,
        counted=query.count,
        windowed=query.window,
        cursor=query.cursor,
        asked=(query.stream, *_asked(query.selectors), order, *_unordered(conditions)),
    )
    return AuthorizedRead(authority, sources, terms, warnings)


def authorize_changes(
    authority: ReadAuthority, query: ChangesQuery
) -> AuthorizedRead[ChangesTerms]:
    """A change feed."""
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    terms = ChangesTerms(
        shown=_shown(sources, query.cut),
        limit=query.limit,
        cursor=query.cursor,
        changes_since=query.changes_since,
        asked=(query.stream, *_asked(query.selectors)),
    )
    return AuthorizedRead(authority, sources, terms)


def authorize_record(authority: ReadAuthority, query: RecordQuery) -> AuthorizedRead[RecordTerms]:
    """One record."""
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    shown = _shown(sources, query.cut)
    expansions, warnings = allowed_expansions(authority, sources, query.expand)
    return AuthorizedRead(authority, sources, RecordTerms(query.key, shown, expansions), warnings)


def authorize_field_window(
    authority: ReadAuthority, query: FieldWindowQuery
) -> AuthorizedRead[FieldWindowTerms]:
    """A stretch of one granted field.  Raises: InvalidFieldPath, InvalidWindow and the usual."""
    check_path(query.field)
    terms = window_terms(query)
    sources = select_stream(authority, query.selectors, query.stream)
    require_field(sources, query.field, "field")
    return AuthorizedRead(authority, sources, terms)


def authorize_aggregate(
    authority: ReadAuthority, query: AggregateQuery
) -> AuthorizedRead[AggregateTerms]:
    """A metric over granted fields."""
    check_combination(query)
    sources = select_stream(authority, query.selectors, query.stream)
    metric, field, kind = metric_of(sources, query)
    terms = AggregateTerms(
        metric=metric,
        field=field,
        field_kind=kind,
        grouping=grouping_of(sources, query),
        conditions=conditions_on(sources, query.filters),
        limit=query.limit,
    )
    return AuthorizedRead(authority, sources, terms)


def authorize_search(
    authority: ReadAuthority, query: SearchQuery, terms: tuple[Term, ...]
) -> AuthorizedRead[SearchTerms]:
    """A search for the terms of the query's text."""
    checked = checked_terms(query.text, terms)
    sources = select_any(authority, query.selectors)
    parts, warnings = search_parts(authority, sources, query)
    found = SearchTerms(
        terms=checked,
        parts=parts,
        limit=query.limit,
        cursor=query.cursor,
        asked=(
            query.text,
            *_asked(query.selectors),
            *_unordered(query.streams),
            *_unordered(query.filters),
        ),
    )
    taking_part = tuple(source for part in parts for source in part.sources)
    return AuthorizedRead(authority, taking_part, found, warnings)


def authorize_schema(authority: ReadAuthority, query: SchemaQuery) -> AuthorizedRead[SchemaTerms]:
    """The description of the sources.  Raises: AmbiguousSchemaDetail."""
    selected = select_any(authority, query.selectors)
    sources = tuple(s for s in selected if query.stream in (None, s.stream))
    if query.full_detail and query.stream and connection_count(sources) > 1:
        raise ambiguous_schema(authority, sources, query.stream)
    return AuthorizedRead(authority, sources, SchemaTerms(query))


def authorize_stream(authority: ReadAuthority, query: StreamQuery) -> AuthorizedRead[SchemaTerms]:
    """The description of one stream."""
    sources = select_stream(authority, query.selectors, query.stream)
    return AuthorizedRead(authority, sources, SchemaTerms(SchemaQuery(stream=query.stream)))


def authorize_blob(authority: ReadAuthority, query: BlobQuery) -> AuthorizedRead[BlobTerms]:
    """The bytes of a blob, through the sources whose blob fields are granted."""
    selected = select_blob_sources(authority, query.selectors)
    sources = tuple(s for s in selected if set(s.declared.blob_fields) & set(s.fields))
    return AuthorizedRead(authority, sources, BlobTerms(query.blob_id))


def _shown(sources: tuple[ReadableSource, ...], cut: Cut) -> Shown:
    fields = shown_fields(sources, cut)
    return {source.connection_id: names for source, names in zip(sources, fields, strict=True)}


def _unordered(values: Iterable[object]) -> list[str]:
    """The same list for the same values, however they were written down."""
    return sorted(repr(value) for value in values)


def _asked(selectors: Selectors) -> tuple[str | None, str | None]:
    return (selectors.connection_id, selectors.connector_id)
