"""Plans: the questions a backend answers.  Pure data, made from an authorized read only.

Rule: a plan holds no grant, token or client; what it may not see is not in it.  Every value in a
plan is already *comparable* (`domain.values.comparable`), so no store parses anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from personal_server.domain.authority import TimeConstraint
from personal_server.domain.criteria import Condition as Condition
from personal_server.domain.criteria import Granularity as Granularity
from personal_server.domain.criteria import Grouping as Grouping
from personal_server.domain.criteria import Metric as Metric
from personal_server.domain.criteria import Operator as Operator
from personal_server.domain.criteria import Order as Order
from personal_server.domain.criteria import Term as Term
from personal_server.domain.declaration import Stream
from personal_server.domain.record import Row, TombstoneRow
from personal_server.domain.values import Comparable, ValueKind


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
class Position:
    """Where a page ended: the sort value (`None` for null values), key and connection."""

    value: Comparable | None
    key: str
    connection_id: str


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The next `limit` rows after `after` in `order`, over all scopes together."""

    scopes: tuple[Scope, ...]
    order: Order
    limit: int
    conditions: tuple[Condition, ...] = ()
    after: Position | None = None


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and its place in the order of the page."""

    row: Row
    position: Position


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order; `more` says whether others follow."""

    rows: tuple[PlacedRow, ...]
    more: bool


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
class Span:
    """`earliest` and `latest` are stored values, `None` without any."""

    total: int
    earliest: str | None
    latest: str | None


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """What a stream row tells: how many records, and when the newest granted change came."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Summary:
    """`last_emitted_at_ns`: newest `emitted_at` of a granted field among visible records."""

    record_count: int
    last_emitted_at_ns: int | None


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
class Children:
    """The children of one parent value."""

    rows: tuple[Row, ...]
    more: bool


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


class WindowOutcome(StrEnum):
    """What a field window found."""

    FOUND = "found"
    NO_VALUE = "no_value"
    NOT_TEXT = "not_text"
    NO_MATCH = "no_match"


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """One window: `text` = value[start:start+len(text)]; `digest`: sha256 hex of the value."""

    connection_id: str
    outcome: WindowOutcome
    text: str = ""
    start_chars: int = 0
    total_chars: int = 0
    digest: str = ""
    match_start_chars: int | None = None
    match_end_chars: int | None = None


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """A metric over the visible records of all scopes, exact; RS contract 10 gives the order."""

    scopes: tuple[Scope, ...]
    metric: Metric
    field: str | None = None
    field_kind: ValueKind | None = None
    conditions: tuple[Condition, ...] = ()
    grouping: Grouping | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Group:
    """One group: `key` is the stored scalar, or the bucket's start (UTC ns) for time groups.

    `value` is the metric over the group (`None` for `count`): a JSON number, or a stored value.
    """

    key: object
    count: int
    value: object = None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Groups are the returned ones, in wire order; the other members cover all records."""

    record_count: int
    value: object = None
    groups: tuple[Group, ...] = ()
    group_count: int = 0
    other_count: int = 0
    other_value: int | float | None = None


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
    window: int = 2_000
    frequency_limit: int = 10_000
    seconds_each: float | None = None


class Candidate(NamedTuple):
    """A match with what ranking needs: per term the occurrences, weighted, and the text length.

    `occurrences[i]` counts term i in the granted searchable fields (title field doubled);
    `length_tokens` is the token count of those fields; `event_time_ns` as in `SearchPlan`.
    There are thousands of these per search.
    """

    connection_id: str
    stream: str
    key: str
    occurrences: tuple[int, ...]
    length_tokens: int
    event_time_ns: int


@dataclass(frozen=True, slots=True)
class Matches:
    """The candidates of all scopes in no particular order, and what is known of the rest.

    `truncated` names the (connection, stream) pairs with more than `window` matches, `lost` those
    left out for lack of time; `document_frequencies[i]` belongs to term i.
    """

    candidates: tuple[Candidate, ...]
    document_frequencies: tuple[int, ...]
    truncated: frozenset[tuple[str, str]]
    lost: frozenset[tuple[str, str]] = frozenset()


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
class Change:
    """One item of a feed: a visible record, or the tombstone of one that left."""

    sequence: int
    item: Row | TombstoneRow


@dataclass(frozen=True, slots=True)
class Feed:
    """Items in order; `more` says whether others follow up to the horizon."""

    items: tuple[Change, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class BlobPlan:
    """Who may hand out a blob: scopes whose granted blob fields may reference `blob_id`."""

    scopes: tuple[Scope, ...]
    blob_id: str


@dataclass(frozen=True, slots=True)
class BlobReference:
    """The authorizing reference: where it was found and what it says of the bytes."""

    connection_id: str
    stream: str
    key: str
    field: str
    reference: dict[str, object]
