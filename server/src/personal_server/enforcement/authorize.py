"""The only door in: authority x query -> authorized read, with the plan that a store answers.

Rule: nothing else constructs an `AuthorizedRead`, and whoever reads records needs one.  A request
can only narrow what the authority allows.
Source: docs/contract/resource-server.md 4.4; docs/decisions.md C3.
"""

from __future__ import annotations

from collections.abc import Iterable

from pdpp_kernel.criteria import GroupOrder, HitOrder
from pdpp_kernel.errors import InvalidRequest
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.aggregates import (
    check_combination,
    figure_of,
    limit_of,
    shared_figure,
    words_of,
)
from personal_server.enforcement.ambiguity import ambiguous_schema, connection_count
from personal_server.enforcement.asked_times import conditions_in, order_in_time
from personal_server.enforcement.authorized_reads import AuthorizedRead, Shown
from personal_server.enforcement.bounds import bound_warnings
from personal_server.enforcement.conditions import conditions_on
from personal_server.enforcement.expansion import AllowedExpansion, allowed_expansions
from personal_server.enforcement.field_stretches import check_path, stretch_of
from personal_server.enforcement.fields import check_cut, order_of, require_field, shown_fields
from personal_server.enforcement.named_fields import conditions_in as named_values
from personal_server.enforcement.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    FieldWindowPlan,
    MeaningPlan,
    RecordPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.queries import (
    ALWAYS,
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    FieldSelection,
    FieldWindowQuery,
    RecordQuery,
    RecordsQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    Selectors,
    StreamQuery,
    TimelineQuery,
)
from personal_server.enforcement.scopes import TimedScope, scope_of, scopes_of
from personal_server.enforcement.search import (
    Part,
    checked_words,
    named_sources,
    search_parts,
    skipped_on_line,
)
from personal_server.enforcement.semantic_queries import AskedMeaning, meaning_fields
from personal_server.enforcement.source_selection import (
    Sources,
    select_any,
    select_blob_sources,
    select_everywhere,
    select_stream,
)
from personal_server.enforcement.timeline import list_conditions, time_field


def authorize_records(authority: ReadAuthority, query: RecordsQuery) -> AuthorizedRead[RecordsPlan]:
    """A record list, narrowed to what the authority allows.

    Raises: the errors of selection, fields, filters, sort, views and expansion
    (docs/contract/resource-server.md 7.7).
    """
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    conditions = conditions_on(sources, query.filters, query.time_zone)
    conditions += list_conditions(sources, query.times)
    order = order_of(sources, query.sort, query.order, query.time_zone)
    shown = _shown(sources, query.cut)
    expansions, warnings = allowed_expansions(authority, sources, query.expand)
    plan = RecordsPlan(
        scopes_of(sources), order, query.limit, conditions, span_field=_span_field(sources)
    )
    limited = ((source, conditions) for source in sources)
    warnings = (*warnings, *_limits_met((*limited, *_related(expansions))))
    asked = (query.stream, *_asked(query.selectors), order, *_unordered(conditions))
    return AuthorizedRead(authority, sources, plan, warnings, shown, expansions, asked)


def authorize_timeline(
    authority: ReadAuthority, query: TimelineQuery
) -> AuthorizedRead[TimelinePlan]:
    """All sources whose records have a time that may be seen.

    Raises: GrantStreamNotAllowed, NotFound, and the errors of the selectors.
    """
    selected = select_any(authority, query.selectors)
    sources, timeless, scopes = list[ReadableSource](), list[ReadableSource](), list[TimedScope]()
    for source in named_sources(authority, selected, query.streams):
        if (field := time_field(source)) is None:
            timeless.append(source)
            continue
        sources.append(source)
        order = order_in_time(source, field, query.time_zone, descending=query.descending)
        asked_for = conditions_in(query.times, field, (source,))
        scopes.append(TimedScope(scope_of(source), order, asked_for))
    plan = TimelinePlan(tuple(scopes), query.descending, query.limit)
    asked = (
        *_asked(query.selectors),
        *_unordered(query.streams),
        query.times,
        query.descending,
        *([] if query.time_zone is None else [query.time_zone]),
    )
    limited = zip(sources, (timed.conditions for timed in scopes), strict=True)
    warnings = (*skipped_on_line(selected, timeless, query.streams), *_limits_met(limited))
    return AuthorizedRead(authority, tuple(sources), plan, warnings, asked=asked)


def authorize_changes(authority: ReadAuthority, query: ChangesQuery) -> AuthorizedRead[ChangesPlan]:
    """A change feed; the plan covers no change yet, where it begins is for a bookmark to say.

    Raises: InvalidRequest for persons: no change of theirs is ever written.
    """
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    if any(source.made_of is not None for source in sources):
        raise InvalidRequest(
            (
                "The stream of persons has no change feed, because the server computes "
                "persons anew for every read. List persons, or follow the streams they "
                "are computed from."
            ),
            param="changes_since",
        )
    conditions = conditions_on(sources, query.filters, query.time_zone)
    plan = ChangesPlan(scopes_of(sources), limit=query.limit, conditions=conditions)
    warnings = _limits_met((source, conditions) for source in sources)
    asked = (query.stream, *_asked(query.selectors), *_unordered(conditions))
    shown = _shown(sources, query.cut)
    return AuthorizedRead(authority, sources, plan, warnings, shown, asked=asked)


def authorize_record(authority: ReadAuthority, query: RecordQuery) -> AuthorizedRead[RecordPlan]:
    """One record."""
    check_cut(query.cut)
    sources = select_stream(authority, query.selectors, query.stream)
    shown = _shown(sources, query.cut)
    expansions, warnings = allowed_expansions(authority, sources, query.expand)
    plan = RecordPlan(scopes_of(sources), query.key)
    warnings = (*warnings, *_limits_met(_related(expansions)))
    return AuthorizedRead(authority, sources, plan, warnings, shown, expansions)


def authorize_field_window(
    authority: ReadAuthority, query: FieldWindowQuery
) -> AuthorizedRead[FieldWindowPlan]:
    """A stretch of one granted field.  Raises: InvalidFieldPath, InvalidWindow and the usual."""
    check_path(query.field)
    length, offset, before = stretch_of(query)
    sources = select_stream(authority, query.selectors, query.stream)
    require_field(sources, query.field, "field")
    plan = FieldWindowPlan(
        scopes=scopes_of(sources),
        key=query.key,
        field=query.field,
        limit_chars=length,
        offset_chars=offset,
        match=query.text,
        before_chars=before,
    )
    return AuthorizedRead(authority, sources, plan)


def authorize_aggregate(
    authority: ReadAuthority, query: AggregateQuery
) -> AuthorizedRead[AggregatePlan]:
    """A metric over granted fields."""
    check_combination(query)
    words = words_of(query)
    warnings: tuple[Warning, ...] = ()
    if query.across is None:
        sources = select_stream(authority, query.selectors, query.stream, may_cross=True)
        figure = figure_of(sources, query)
    else:
        readable = select_everywhere(authority, query.selectors, query.stream)
        sources, figure, warnings = shared_figure(readable, query)
    plan = AggregatePlan(
        scopes=scopes_of(sources),
        metric=figure.metric,
        field=figure.field,
        field_kind=figure.field_kind,
        conditions=figure.conditions,
        groupings=figure.groupings,
        limit=limit_of(query),
        sort=None if query.sort is None else GroupOrder(query.sort),
        words=words,
    )
    outside = _limits_met((source, plan.conditions) for source in sources)
    return AuthorizedRead(authority, sources, plan, (*warnings, *outside))


def authorize_search(
    authority: ReadAuthority, query: SearchQuery, meant: AskedMeaning | None = None
) -> AuthorizedRead[SearchPlan]:
    """A search for the query's words, and what it means: one plan, with the conditions of each
    source.
    """
    words = checked_words(query.text)
    sources = select_any(authority, query.selectors)
    parts: tuple[Part, ...] = ()
    near: tuple[Part, ...] = ()
    warnings: tuple[Warning, ...] = ()
    if meant is not None:
        near, warnings = search_parts(authority, sources, query, meaning_fields)
    if meant is None or meant.mode is not SearchMode.MEANING:
        parts, warnings = search_parts(authority, sources, query)
    together = {source.order: (source, asked) for source, asked in (*parts, *near)}
    taking_part = tuple(together[s.order][0] for s in sources if s.order in together)
    conditions = {order: asked for order, (_, asked) in together.items()}
    plan = SearchPlan(
        scopes_of(tuple(source for source, _ in parts)),
        words,
        conditions,
        meaning=None
        if meant is None
        else MeaningPlan(
            scopes_of(tuple(source for source, _ in near)),
            meant.vector,
            meant.model,
            {s.order: (*asked, *named_values(words, s.declared, s.fields)) for s, asked in near},
        ),
    )
    warnings = (*warnings, *_limits_met(together.values()))
    asked = (
        query.text,
        *_asked(query.selectors),
        *_unordered(query.streams),
        *_unordered(query.filters),
        *([] if query.times == ALWAYS else [query.times]),
        *([] if query.mode is SearchMode.WORDS else [query.mode.value]),
        *(["exact"] if query.exact else []),
        *([] if query.time_zone is None else [query.time_zone]),
    )
    return AuthorizedRead(authority, taking_part, plan, warnings, asked=asked)


def authorize_search_in_time(
    authority: ReadAuthority, query: SearchQuery
) -> AuthorizedRead[TimelinePlan]:
    """The same search by words, its hits in the order of time, of sources that have one to see.

    Raises: what `authorize_search` raises, and InvalidRequest: nearness has no end but by rank.
    """
    if query.mode in (SearchMode.MEANING, SearchMode.HYBRID):
        raise InvalidRequest("Sorting by time works only with mode=words.", param="sort")
    read = authorize_search(authority, query)
    descending = query.sort is HitOrder.NEWEST
    scopes: list[TimedScope] = []
    for source in read.sources:
        field = time_field(source)
        if field is not None:
            order = order_in_time(source, field, query.time_zone, descending=descending)
            conditions = read.plan.conditions.get(source.order, ())
            scopes.append(TimedScope(scope_of(source), order, conditions))
    plan = TimelinePlan(tuple(scopes), descending, query.limit, words=read.plan.words)
    asked = (*read.asked, query.sort)
    return AuthorizedRead(authority, read.sources, plan, read.warnings, asked=asked)


def authorize_schema(authority: ReadAuthority, query: SchemaQuery) -> Sources:
    """The sources that a description shows.  Raises: AmbiguousSchemaDetail."""
    selected = select_any(authority, query.selectors)
    sources = tuple(s for s in selected if query.stream in (None, s.stream))
    if query.full_detail and query.stream and connection_count(sources) > 1:
        raise ambiguous_schema(authority, sources, query.stream)
    return sources


def authorize_stream(authority: ReadAuthority, query: StreamQuery) -> Sources:
    """The sources of one stream."""
    return select_stream(authority, query.selectors, query.stream)


def authorize_blob(authority: ReadAuthority, query: BlobQuery) -> AuthorizedRead[BlobPlan]:
    """The bytes of a blob, through the sources whose blob fields are granted."""
    selected = select_blob_sources(authority, query.selectors)
    sources = tuple(s for s in selected if set(s.declared.blob_fields) & set(s.fields))
    return AuthorizedRead(authority, sources, BlobPlan(scopes_of(sources), query.blob_id))


def _limits_met(parts: Iterable[Part]) -> tuple[Warning, ...]:
    every = list(parts)
    is_met = any(s.time_constraint or s.resources or s.only for s, _ in every)
    return bound_warnings(every) if is_met else ()


def _related(expansions: Iterable[AllowedExpansion]) -> list[Part]:
    """Whose records stand beside those that were asked for, under no condition of the request."""
    return [(source, ()) for each in expansions for source in each.children.values()]


def _span_field(sources: Sources) -> str | None:
    """The consent-time field, if every source grants it."""
    name = sources[0].declared.consent_time_field
    return name if all(name in source.fields for source in sources) else None


def _shown(sources: Sources, cut: FieldSelection) -> Shown:
    fields = shown_fields(sources, cut)
    return {source.connection_id: names for source, names in zip(sources, fields, strict=True)}


def _unordered(values: Iterable[object]) -> list[str]:
    """The same list for the same values, however they were written down."""
    return sorted(repr(value) for value in values)


def _asked(selectors: Selectors) -> tuple[str | None, str | None]:
    return (selectors.connection_id, selectors.connector_id)
