"""From authorized reads to plans.

Rule: a plan holds what a store must know and nothing of who asked.
"""

from __future__ import annotations

from personal_server.domain.authority import ReadableSource
from personal_server.domain.criteria import Order
from personal_server.domain.declaration import Stream
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.terms import (
    AggregateTerms,
    AuthorizedRead,
    BlobTerms,
    ChangesTerms,
    FieldWindowTerms,
    RecordsTerms,
    RecordTerms,
    SearchPart,
    SearchTerms,
)
from personal_server.planning.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    CountPlan,
    FieldWindowPlan,
    PagePlan,
    Position,
    RecordPlan,
    Scope,
    SearchPlan,
    SpanPlan,
    SummaryPlan,
)


def scope_of(source: ReadableSource) -> Scope:
    """One source as a store sees it."""
    return Scope(
        connection_id=source.connection_id,
        stream=source.declared,
        fields=source.fields,
        window=source.time_constraint,
        resources=source.resources,
    )


def scopes_of(sources: tuple[ReadableSource, ...]) -> tuple[Scope, ...]:
    """Several sources, in their order."""
    return tuple(scope_of(source) for source in sources)


def plan_page(read: AuthorizedRead[RecordsTerms], after: Position | None) -> PagePlan:
    """The next page."""
    terms = read.terms
    return PagePlan(scopes_of(read.sources), terms.order, terms.limit, terms.conditions, after)


def plan_count(read: AuthorizedRead[RecordsTerms]) -> CountPlan:
    """How many records the list has, whatever the page."""
    return CountPlan(scopes_of(read.sources), read.terms.conditions)


def plan_span(read: AuthorizedRead[RecordsTerms]) -> SpanPlan:
    """The extent of the list over its consent-time field, as far as that is granted."""
    return SpanPlan(scopes_of(read.sources), span_field(read), read.terms.conditions)


def span_field(read: AuthorizedRead[RecordsTerms]) -> str | None:
    """The consent-time field, if every source grants it."""
    name = read.sources[0].declared.consent_time_field
    granted = all(name in source.fields for source in read.sources)
    return name if granted else None


def plan_summary(source: ReadableSource) -> SummaryPlan:
    """What a stream row tells."""
    return SummaryPlan(scope_of(source))


def plan_record(read: AuthorizedRead[RecordTerms]) -> RecordPlan:
    """The record, wherever it is visible."""
    return RecordPlan(scopes_of(read.sources), read.terms.key)


def plan_children(
    expansion: AllowedExpansion, child: ReadableSource, parent_values: tuple[str, ...]
) -> ChildrenPlan:
    """The children of several parents on one connection."""
    relation = expansion.declared.relationship
    return ChildrenPlan(
        scope=scope_of(child),
        foreign_key=relation.foreign_key if relation.foreign_key_on == "target" else None,
        parent_values=parent_values,
        order=stream_order(child.declared, child.cursor_field),
        limit_each=expansion.limit if expansion.is_list else 1,
    )


def stream_order(stream: Stream, cursor_field: str | None) -> Order:
    """A stream's own order, ascending."""
    if cursor_field is None:
        return Order(None, None, False)
    return Order(cursor_field, stream.properties[cursor_field].kind, False)


def plan_field_window(read: AuthorizedRead[FieldWindowTerms]) -> FieldWindowPlan:
    """The window."""
    terms = read.terms
    return FieldWindowPlan(
        scopes=scopes_of(read.sources),
        key=terms.key,
        field=terms.field,
        limit_chars=terms.limit_chars,
        offset_chars=terms.offset_chars,
        match=terms.text,
        before_chars=terms.before_chars,
    )


def plan_aggregate(read: AuthorizedRead[AggregateTerms]) -> AggregatePlan:
    """The metric."""
    terms = read.terms
    return AggregatePlan(
        scopes=scopes_of(read.sources),
        metric=terms.metric,
        field=terms.field,
        field_kind=terms.field_kind,
        conditions=terms.conditions,
        grouping=terms.grouping,
        limit=terms.limit,
    )


def plan_search(
    terms: SearchTerms, part: SearchPart, seconds_each: float | None = None
) -> SearchPlan:
    """One part of a search, and how long each of its sources may take."""
    scopes = scopes_of(part.sources)
    return SearchPlan(scopes, terms.terms, part.conditions, seconds_each=seconds_each)


def plan_hit(source: ReadableSource, key: str) -> RecordPlan:
    """The record behind a search hit, through its own source."""
    return RecordPlan((scope_of(source),), key)


def plan_changes(
    read: AuthorizedRead[ChangesTerms], since: int | None, horizon: int, after: int
) -> ChangesPlan:
    """The next page of a feed."""
    return ChangesPlan(scopes_of(read.sources), since, horizon, after, read.terms.limit)


def plan_blob(read: AuthorizedRead[BlobTerms]) -> BlobPlan:
    """Who may hand out the blob."""
    return BlobPlan(scopes_of(read.sources), read.terms.blob_id)
