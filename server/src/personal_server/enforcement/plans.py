"""Plans: what a read may see, as questions that a backend answers.  Pure data, made by `authorize`.

Rule: a plan holds no grant, token or client; what it may not see is not in it.  Every value in a
plan is already *comparable* (`domain.values.comparable`), so no store parses anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pdpp_kernel.criteria import Condition, Grouping, GroupOrder, Order, WordQuery
from pdpp_kernel.declaration import Stream
from pdpp_kernel.metrics import Metric
from pdpp_kernel.operators import Operator
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import ValueKind, comparable, order_key
from personal_server.domain.authority import ReadableSource, ReadAuthority, TimeConstraint
from personal_server.domain.envelope import Warning
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.named_fields import conditions_in, words_in
from personal_server.enforcement.queries import DEFAULT_LIMIT
from personal_server.enforcement.rows import Position


@dataclass(frozen=True, slots=True)
class Scope:
    """One source as a backend sees it: whose records exist for this request.

    `fields` are the granted ones, for what is computed *from* fields (changes, search, dates of
    records); `window` bounds the consent-time field; `resources` are the only keys that exist, and
    only records that satisfy all of `only` do (`eq` and `in`, of fields granted or not).
    Records of a scope that is `made_of` others are computed from what those show
    (`domain.persons`), and from nothing else.
    """

    connection_id: str
    stream: Stream
    fields: tuple[str, ...]
    window: TimeConstraint | None = None
    resources: frozenset[str] | None = None
    made_of: tuple[Scope, ...] | None = None
    connector_key: str = ""
    only: tuple[Condition, ...] = ()

    @property
    def is_picked(self) -> bool:
        """Whether records are picked by key or content, so that no stretch of time is all of it."""
        return self.resources is not None or bool(self.only)

    @property
    def unpicked(self) -> Scope:
        """The scope as its window alone leaves it."""
        return replace(self, resources=None, only=()) if self.is_picked else self


BY_KEY = Order(None, None, False)


@dataclass(frozen=True, slots=True)
class RecordsPlan:
    """A list of records over all scopes together: a page of it, its count, its span.

    A page holds the next `limit` rows after `after` in `order`.  What is counted, in a span too,
    is counted no further than `most`.  A span is that of the *stored*
    values of `span_field` (as stored, compared as instants), `None` where it is not granted.
    """

    scopes: tuple[Scope, ...]
    order: Order = BY_KEY
    limit: int = DEFAULT_LIMIT
    conditions: tuple[Condition, ...] = ()
    after: Position | None = None
    span_field: str | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class TimedScope:
    """A scope on a time line: its time is the field of `order`, its conditions bound it."""

    scope: Scope
    order: Order
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelinePlan:
    """A page of the records of all scopes that have a time, by (instant, key, connection, stream).

    A day counts as its start (UTC).  All orders have the same direction.  With `words` only of
    those that hold them, as in a search, and no more of these are met than the page needs.
    """

    scopes: tuple[TimedScope, ...]
    descending: bool
    limit: int = DEFAULT_LIMIT
    after: Position | None = None
    words: WordQuery | None = None


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """The visible rows with this key: at most one per scope, by connection."""

    scopes: tuple[Scope, ...]
    key: str


@dataclass(frozen=True, slots=True)
class KeysPlan:
    """The visible rows of one source with these keys."""

    scope: Scope
    keys: tuple[str, ...]


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
class NeighboursPlan:
    """The visible rows right before and right after a position, of those that meet a condition.

    `order` is ascending, by a field; rows without a value of it take no part.
    """

    scope: Scope
    condition: Condition
    order: Order
    position: Position


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
    """A metric over the visible records of all scopes that hold all words, exact.

    At most two groupings, one of them of time; `sort` `None`: the order that
    docs/contract/resource-server.md 10 gives them.
    """

    scopes: tuple[Scope, ...]
    metric: Metric
    field: str | None = None
    field_kind: ValueKind | None = None
    conditions: tuple[Condition, ...] = ()
    groupings: tuple[Grouping, ...] = ()
    limit: int = 10
    sort: GroupOrder | None = None
    words: WordQuery | None = None

    @property
    def time_line(self) -> int | None:
        """Which grouping is by stretches of time."""
        return next((n for n, each in enumerate(self.groupings) if each.is_time_line), None)

    @property
    def timed(self) -> int | None:
        """Which grouping is of time."""
        found = (n for n, each in enumerate(self.groupings) if each.granularity is not None)
        return next(found, None)


NEAREST_RECORDS = 200


@dataclass(frozen=True, slots=True)
class MeaningPlan:
    """The `most` visible records whose passages mean what is nearest to a vector.

    Passages are of granted semantic fields; `model` made the vector, and those of another are not
    compared with it.  `conditions` and `seconds_each` as in `SearchPlan`.
    """

    scopes: tuple[Scope, ...]
    vector: bytes = field(repr=False)
    model: str
    conditions: Mapping[tuple[str, str], tuple[Condition, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Condition, ...]]
    )
    most: int = NEAREST_RECORDS
    seconds_each: float | None = None

    def conditions_on(self, scope: Scope) -> tuple[Condition, ...]:
        """What a record of that scope has to satisfy."""
        return self.conditions.get((scope.connection_id, scope.stream.name), ())


CANDIDATE_WINDOW = 2_000
FREQUENCY_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """All terms must match within one record, and no excluded one, in any granted lexical field.

    What they mean in a scope is `words_in`; `conditions` are those of a connection and stream.
    Terms are counted by their places in `words`; where one asks for no word, it counts 0.

    Where `words.least` are enough, a term counts 1 in the weighty fields together (doubled) and 1
    in all others together, however often it stands there, and of what more than `frequency_limit`
    visible records of a scope hold, only the newest of these may be looked at.

    Candidates: per scope the newest `window`
    matches by event time (the stream's event-time field if granted, else `emitted_at`).  Document
    frequencies count visible matches of a term over all scopes and may stop at `frequency_limit`;
    where there is no candidate they are 0.  A scope that takes longer than `seconds_each` may be
    left out whole (`None`: it takes as long as it takes).  What is to be found by meaning beside
    the words has a plan of its own, `meaning`; without words `scopes` are none.
    """

    scopes: tuple[Scope, ...]
    words: WordQuery
    conditions: Mapping[tuple[str, str], tuple[Condition, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Condition, ...]]
    )
    window: int = CANDIDATE_WINDOW
    frequency_limit: int = FREQUENCY_LIMIT
    seconds_each: float | None = None
    meaning: MeaningPlan | None = None

    def words_in(self, scope: Scope) -> WordQuery:
        """What is looked for in a scope, where named fields are its own."""
        return words_in(self.words, scope.stream, scope.fields)

    def conditions_on(self, scope: Scope) -> tuple[Condition, ...]:
        """What a record of that scope has to satisfy beside holding the words."""
        asked = self.conditions.get((scope.connection_id, scope.stream.name), ())
        return (*asked, *conditions_in(self.words, scope.stream, scope.fields))


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """Relevant changes in (`since`, `horizon`], after `after`, in order of their number.

    `since` `None` is `beginning`: all visible records, no tombstones.  A change is relevant if it
    gave a field of the scope another value or made the record appear in, or leave, the visible
    set; each record occurs once, at its latest relevant change up to `horizon`.
    A visible record that does not satisfy the conditions is told to have left if it was visible
    at `since` and one of their fields changed after it; else it is not told.
    """

    scopes: tuple[Scope, ...]
    since: int | None = None
    horizon: int = 0
    after: int = 0
    limit: int = DEFAULT_LIMIT
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class BlobPlan:
    """Who may hand out a blob: scopes whose granted blob fields may reference `blob_id`."""

    scopes: tuple[Scope, ...]
    blob_id: str


# What a read may see: a plan for the store, and beside it what disclosing needs.


P_co = TypeVar("P_co", covariant=True)

# Per connection, the fields of `data` that are shown.
Shown = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AuthorizedRead(Generic[P_co]):
    """A read that may happen.  Only `authorize` makes one; the store gets its `plan` alone.

    Shapes: `sources` is what the request selected of the authority's sources, in source order;
        the plan has a scope for each.  `asked` is what binds a cursor to the request.
    """

    authority: ReadAuthority
    sources: tuple[ReadableSource, ...]
    plan: P_co
    warnings: tuple[Warning, ...] = ()
    shown: Shown = field(default_factory=dict[str, tuple[str, ...]])
    expansions: tuple[AllowedExpansion, ...] = ()
    asked: tuple[object, ...] = ()


def scope_of(source: ReadableSource) -> Scope:
    """One source as a store sees it."""
    return Scope(
        connection_id=source.connection_id,
        stream=source.declared,
        fields=source.fields,
        window=source.time_constraint,
        resources=source.resources,
        made_of=None if source.made_of is None else scopes_of(source.made_of),
        connector_key=source.connector_key,
        only=source.only,
    )


def scopes_of(sources: tuple[ReadableSource, ...]) -> tuple[Scope, ...]:
    """Several sources, in their order."""
    return tuple(scope_of(source) for source in sources)


def glance_plan(sources: tuple[ReadableSource, ...], field: str | None, most: int) -> RecordsPlan:
    """How many records there are, counted no further than `most`, and from when to when.

    Their time is looked up where the ends of an index tell it: not where another one is bounded.
    """
    bounded = {s.time_constraint.field for s in sources if s.time_constraint is not None}
    return RecordsPlan(
        scopes_of(sources), span_field=field if bounded <= {field} else None, most=most
    )


def children_plan(
    expansion: AllowedExpansion, child: ReadableSource, parent_values: tuple[str, ...]
) -> ChildrenPlan:
    """The children of several parents on one connection."""
    relation = expansion.declared.relationship
    name = child.cursor_field
    kind = None if name is None else child.declared.properties[name].kind
    return ChildrenPlan(
        scope=scope_of(child),
        foreign_key=None if relation.foreign_key_on == "self" else relation.foreign_key,
        parent_values=parent_values,
        order=Order(name, kind, False),
        limit_each=expansion.limit if expansion.is_list else 1,
    )


def values_plan(
    sources: tuple[ReadableSource, ...],
    condition: Condition,
    others: tuple[Condition, ...],
    limit: int,
) -> AggregatePlan:
    """The values of a condition's field where the other conditions hold, most frequent first."""
    grouping = Grouping(condition.field, condition.kind)
    return AggregatePlan(
        scopes_of(sources), Metric.COUNT, conditions=others, groupings=(grouping,), limit=limit
    )


def hit_plan(source: ReadableSource, keys: Iterable[str]) -> KeysPlan:
    """The records behind hits, through their own source."""
    return KeysPlan(scope_of(source), tuple(keys))


def neighbours_plan(source: ReadableSource, row: StoredRecord) -> NeighboursPlan | None:
    """The records right before and right after a row in its conversation.

    `None` where what tells conversations apart, or what orders them, is not granted or has no value
    here.  Nothing but the row's own source is read.
    """
    name, cursor = source.declared.conversation_field, source.cursor_field
    if name is None or name not in source.fields or cursor is None:
        return None
    shared, ordered = source.declared.properties[name].kind, source.declared.properties[cursor].kind
    if shared is None or ordered is None:
        return None
    value, at = comparable(row.data.get(name), shared), comparable(row.data.get(cursor), ordered)
    if value is None or at is None:
        return None
    return NeighboursPlan(
        scope_of(source),
        Condition(name, shared, Operator.EQ, value),
        Order(cursor, ordered, descending=False),
        Position(order_key(at), row.key, row.connection_id, row.stream),
    )


def first_change_plan(sources: tuple[ReadableSource, ...], since: int, horizon: int) -> ChangesPlan:
    """Whether anything changed since that these sources show."""
    return ChangesPlan(scopes_of(sources), since, horizon, limit=1)
