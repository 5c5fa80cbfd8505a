"""Plans: what a read may see, as questions that a backend answers.  Pure data, made by `authorize`.

Rule: a plan holds no grant, token or client; what it may not see is not in it.  Every value in a
plan is already *comparable* (`domain.values.comparable`), so no store parses anything.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Condition, Grouping, GroupOrder, Order, WordQuery
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import ValueKind
from personal_server.enforcement.named_fields import conditions_in, words_in
from personal_server.enforcement.queries import DEFAULT_LIMIT
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope, TimedScope

BY_KEY = Order(None, None, False)


class RecordsPlan(msgspec.Struct, frozen=True):
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


class TimelinePlan(msgspec.Struct, frozen=True):
    """A page of the records of all scopes that have a time, by (instant, key, connection, stream).

    A day counts as its start (UTC).  All orders have the same direction.  With `words` only of
    those that hold them, as in a search, and no more of these are met than the page needs.
    """

    scopes: tuple[TimedScope, ...]
    descending: bool
    limit: int = DEFAULT_LIMIT
    after: Position | None = None
    words: WordQuery | None = None


class RecordPlan(msgspec.Struct, frozen=True):
    """The visible rows with this key: at most one per scope, by connection."""

    scopes: tuple[Scope, ...]
    key: str


class KeysPlan(msgspec.Struct, frozen=True):
    """The visible rows of one source with these keys."""

    scope: Scope
    keys: tuple[str, ...]


class ChildrenPlan(msgspec.Struct, frozen=True):
    """Children of several parents on one connection: the rows whose `foreign_key` equals a key.

    Children of each parent come in `order` (ascending), at most `limit_each`, and whether more
    follow.  `has_one` on self reads by key instead: `foreign_key` `None` means the record key.
    """

    scope: Scope
    foreign_key: str | None
    parent_values: tuple[str, ...]
    order: Order
    limit_each: int


class NeighboursPlan(msgspec.Struct, frozen=True):
    """The visible rows right before and right after a position, of those that meet a condition.

    `order` is ascending, by a field; rows without a value of it take no part.
    """

    scope: Scope
    condition: Condition
    order: Order
    position: Position


class BesidePlan(msgspec.Struct, frozen=True):
    """Which visible rows stand right before and right after those with `keys`.

    Of rows with the same value of `shared`, ascending by `ordered` and key; what has no value of
    either, or one too long to be compared by its beginning, has none beside it.
    """

    scope: Scope
    shared: tuple[str, ValueKind]
    ordered: tuple[str, ValueKind]
    keys: tuple[str, ...]


class FieldWindowPlan(msgspec.Struct, frozen=True):
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


class AggregatePlan(msgspec.Struct, frozen=True):
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


class MeaningPlan(Unprinted, frozen=True):
    """The `most` visible records whose passages mean what is nearest to a vector.

    Passages are of granted semantic fields; `model` made the vector, and those of another are not
    compared with it.  `conditions` and `seconds_each` as in `SearchPlan`.
    """

    scopes: tuple[Scope, ...]
    vector: bytes
    model: str
    conditions: Mapping[tuple[str, str], tuple[Condition, ...]] = msgspec.field(
        default_factory=dict[tuple[str, str], tuple[Condition, ...]]
    )
    most: int = NEAREST_RECORDS
    seconds_each: float | None = None

    def conditions_on(self, scope: Scope) -> tuple[Condition, ...]:
        """What a record of that scope has to satisfy."""
        return self.conditions.get((scope.connection_id, scope.stream.name), ())


CANDIDATE_WINDOW = 2_000
FREQUENCY_LIMIT = 10_000


class SearchPlan(msgspec.Struct, frozen=True):
    """All terms must match within one record, and no excluded one, in any granted lexical field.

    What they mean in a scope is `words_in`; `conditions` are those of a connection and stream.
    Terms are counted by their places in `words`; where one asks for no word, it counts 0.

    Where `words.least` are enough (of `words.telling` one), a term counts 1 in the weighty fields
    together (doubled) and 1 in all others together, however often it stands there, and of what more
    than `frequency_limit` visible records of a scope hold, only the newest of these may be looked
    at.

    Candidates: per scope the newest `window`
    matches by event time (the stream's event-time field if granted, else `emitted_at`).  Document
    frequencies count visible matches of a term over all scopes and may stop at `frequency_limit`;
    where there is no candidate they are 0.  A scope that takes longer than `seconds_each` may be
    left out whole (`None`: it takes as long as it takes).  What is to be found by meaning beside
    the words has a plan of its own, `meaning`; without words `scopes` are none.
    """

    scopes: tuple[Scope, ...]
    words: WordQuery
    conditions: Mapping[tuple[str, str], tuple[Condition, ...]] = msgspec.field(
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


class ChangesPlan(msgspec.Struct, frozen=True):
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


class BlobPlan(msgspec.Struct, frozen=True):
    """Who may hand out a blob: scopes whose granted blob fields may reference `blob_id`."""

    scopes: tuple[Scope, ...]
    blob_id: str
