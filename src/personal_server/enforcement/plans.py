"""Plans: the questions a backend answers.  Pure data, made from an authorized read only.

Rule: a plan holds no grant, token or client; what it may not see is not in it.  Every value in a
plan is already *comparable* (`domain.values.comparable`), so no store parses anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from personal_server.domain.authority import ReadableSource, ReadAuthority, TimeConstraint
from personal_server.domain.criteria import Condition, Grouping, Metric, Order, Term
from personal_server.domain.declaration import Stream
from personal_server.domain.envelope import Warning
from personal_server.domain.values import ValueKind
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.queries import SchemaQuery
from personal_server.enforcement.rows import Position


@dataclass(frozen=True, slots=True)
class Scope:
    """One source as a backend sees it: whose records exist for this request.

    `fields` are the granted ones, for what is computed *from* fields (changes, search, dates of
    records); `window` bounds the consent-time field; `resources` are the only keys that exist.
    """

    connection_id: str
    stream: Stream
    fields: tuple[str, ...]
    window: TimeConstraint | None = None
    resources: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The next `limit` rows after `after` in `order`, over all scopes together."""

    scopes: tuple[Scope, ...]
    order: Order
    limit: int
    conditions: tuple[Condition, ...] = ()
    after: Position | None = None


@dataclass(frozen=True, slots=True)
class CountPlan:
    """How many visible records satisfy the conditions."""

    scopes: tuple[Scope, ...]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class SpanPlan:
    """Count, and the extreme *stored* values of `field` (as stored, compared as instants)."""

    scopes: tuple[Scope, ...]
    field: str | None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """What a stream row tells: how many records, and when the newest granted change came."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """The visible rows with this key: at most one per scope, by connection."""

    scopes: tuple[Scope, ...]
    key: str


@dataclass(frozen=True, slots=True)
class ChildrenPlan:
    """Children of several parents on one connection: the rows whose `foreign_key` equals a key.

    Children of each parent come in `order` (ascending), at most `limit_each`, and whether more
    follow.  `has_one` on self reads by key instead: `foreign_key` `None` means the record key.
    """

    scope: Scope
    foreign_key: str | None
    parent_values: tuple[str, ...]
    order: Order
    limit_each: int


@dataclass(frozen=True, slots=True)
class FieldWindowPlan:
    """A bounded part of one string field, in code points; the store cuts it.

    Either `offset_chars`/`limit_chars`, or `match` (centred on the first match of `match`:
    `before_chars` before it, `limit_chars` long in all).
    """

    scopes: tuple[Scope, ...]
    key: str
    field: str
    limit_chars: int
    offset_chars: int = 0
    match: str | None = None
    before_chars: int = 0


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """A metric over the visible records of all scopes, exact; docs/contract/resource-server.md 10
    gives the order.
    """

    scopes: tuple[Scope, ...]
    metric: Metric
    field: str | None = None
    field_kind: ValueKind | None = None
    conditions: tuple[Condition, ...] = ()
    grouping: Grouping | None = None
    limit: int = 10


CANDIDATE_WINDOW = 2_000
FREQUENCY_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """All terms must match within one record, in any granted lexical field of its scope.

    Candidates: per scope the newest `window` matches by event time (the stream's event-time
    field if granted, else `emitted_at`).  Document frequencies count visible matches of a term
    over all scopes and may stop at `frequency_limit`.  A scope that takes longer than
    `seconds_each` may be left out whole (`None`: it takes as long as it takes).
    """

    scopes: tuple[Scope, ...]
    terms: tuple[Term, ...]
    conditions: tuple[Condition, ...] = ()
    window: int = CANDIDATE_WINDOW
    frequency_limit: int = FREQUENCY_LIMIT
    seconds_each: float | None = None


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """Relevant changes in (`since`, `horizon`], after `after`, in order of their number.

    `since` `None` is `beginning`: all visible records, no tombstones.  A change is relevant if it
    gave a field of the scope another value or made the record appear in, or leave, the visible
    set; each record occurs once, at its latest relevant change up to `horizon`.
    """

    scopes: tuple[Scope, ...]
    since: int | None
    horizon: int
    after: int
    limit: int


@dataclass(frozen=True, slots=True)
class BlobPlan:
    """Who may hand out a blob: scopes whose granted blob fields may reference `blob_id`."""

    scopes: tuple[Scope, ...]
    blob_id: str


# The terms of an authorized read: what exactly may be read, per kind of read.
#
# Rule: terms are plain values; every name in them has been found declared and granted.  Only
# `authorize` puts them into an `AuthorizedRead`.


T_co = TypeVar("T_co", covariant=True)

# Per connection, the fields of `data` that are shown.
Shown = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AuthorizedRead(Generic[T_co]):
    """A read that may happen.

    Shapes: `sources` is what the request selected of the authority's sources, in source order.
    """

    authority: ReadAuthority
    sources: tuple[ReadableSource, ...]
    terms: T_co
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordsTerms:
    """A page of records; `asked` is what binds its cursor to the request."""

    order: Order
    conditions: tuple[Condition, ...]
    shown: Shown
    expansions: tuple[AllowedExpansion, ...]
    limit: int
    counted: bool
    windowed: bool
    cursor: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ChangesTerms:
    """A page of a change feed."""

    shown: Shown
    limit: int
    cursor: str | None
    changes_since: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class RecordTerms:
    """One record."""

    key: str
    shown: Shown
    expansions: tuple[AllowedExpansion, ...]


@dataclass(frozen=True, slots=True)
class FieldWindowTerms:
    """A stretch of one field; `text` searches for its place."""

    key: str
    field: str
    limit_chars: int
    offset_chars: int
    text: str | None
    before_chars: int


@dataclass(frozen=True, slots=True)
class AggregateTerms:
    """A metric over the selected sources."""

    metric: Metric
    field: str | None
    field_kind: ValueKind | None
    grouping: Grouping | None
    conditions: tuple[Condition, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Sources that are searched under the same conditions."""

    sources: tuple[ReadableSource, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """A search; `parts` are the sources that take part."""

    terms: tuple[Term, ...]
    parts: tuple[SearchPart, ...]
    limit: int
    cursor: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SchemaTerms:
    """A description of sources."""

    query: SchemaQuery


@dataclass(frozen=True, slots=True)
class BlobTerms:
    """The bytes of one blob, through a granted blob field."""

    blob_id: str


# From authorized reads to plans.
#
# Rule: a plan holds what a store must know and nothing of who asked.


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
