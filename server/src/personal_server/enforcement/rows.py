"""What a backend answers to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

import msgspec

from pdpp_kernel.record import StoredRecord, TombstoneRow
from pdpp_kernel.values import Comparable


class Position(NamedTuple):
    """Where a page ended: the sort value (`None` for null values), key, connection and stream.

    On a time line the value is an instant (UTC ns), whatever the streams hold.
    """

    value: Comparable | None
    key: str
    connection_id: str
    stream: str

    @property
    def place(self) -> tuple[str, str]:
        """Connection and stream, which break ties."""
        return (self.connection_id, self.stream)


class PlacedRow(NamedTuple):
    """A row and its place in the order of the page."""

    row: StoredRecord
    position: Position


class RowPage(msgspec.Struct, frozen=True):
    """Rows in order; `more` says whether others follow.

    `end` is where the page ended, if that is not its last row, since damaged ones are left out.
    """

    rows: tuple[PlacedRow, ...]
    more: bool
    end: Position | None = None


class Span(msgspec.Struct, frozen=True):
    """`earliest` and `latest` are stored values, `None` without any."""

    total: int
    earliest: str | None
    latest: str | None


class Summary(msgspec.Struct, frozen=True):
    """`last_emitted_at_ns`: newest `emitted_at` of a granted field among visible records."""

    record_count: int
    last_emitted_at_ns: int | None


class Children(msgspec.Struct, frozen=True):
    """The children of one parent value."""

    rows: tuple[StoredRecord, ...]
    more: bool


class Neighbours(msgspec.Struct, frozen=True):
    """The rows beside a position, `None` where there is none."""

    before: StoredRecord | None = None
    after: StoredRecord | None = None

    @property
    def rows(self) -> tuple[StoredRecord, ...]:
        """Those that there are."""
        return tuple(row for row in (self.before, self.after) if row is not None)


class WindowOutcome(StrEnum):
    """What a field window found."""

    FOUND = "found"
    NO_VALUE = "no_value"
    NOT_TEXT = "not_text"
    NO_MATCH = "no_match"


class FieldWindow(msgspec.Struct, frozen=True):
    """One window: `text` = value[start:start+len(text)]; `digest`: sha256 hex of the value."""

    connection_id: str
    outcome: WindowOutcome
    text: str = ""
    start_chars: int = 0
    total_chars: int = 0
    digest: str = ""
    match_start_chars: int | None = None
    match_end_chars: int | None = None


class Group(msgspec.Struct, frozen=True):
    """One group: `keys` has one for each grouping, `labels` as many, `None` where there is none.

    A key is the stored scalar, the bucket's start (UTC ns) for time groups, the hour (0 to 23) or
    the day of the week (Monday is 0), the lower bound of a step, or a connection.  `value` is the
    metric over the group (`None` for `count`): a JSON number, or a stored value, of
    `value_count` values where it is a sum, a mean or a percentile.
    """

    keys: tuple[object, ...]
    count: int
    value: object = None
    labels: tuple[str | None, ...] = ()
    value_count: int | None = None


class Aggregation(msgspec.Struct, frozen=True):
    """Groups are the returned ones, in wire order; the other members cover all records."""

    record_count: int
    value: object = None
    value_count: int | None = None
    groups: tuple[Group, ...] = ()
    group_count: int = 0
    other_count: int = 0
    other_value: int | float | None = None
    bin_width: Decimal | None = None


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


class NearRecord(NamedTuple):
    """A record, and its passage that is nearest in meaning: [start, end) of a field.

    The candidate counts no words.
    """

    candidate: Candidate
    distance: float
    field: str
    start_chars: int
    end_chars: int


class Nearest(msgspec.Struct, frozen=True):
    """The nearest records of all scopes, nearest first, then newer ones (`Candidate`).

    `pending` visible records were not embedded yet; `lost` as in `Matches`.
    """

    records: tuple[NearRecord, ...]
    pending: int = 0
    lost: frozenset[tuple[str, str]] = frozenset()


class Matches(msgspec.Struct, frozen=True):
    """The candidates of all scopes in no particular order, and what is known of the rest.

    `truncated` names the (connection, stream) pairs with more than `window` matches, `lost` those
    left out for lack of time; `document_frequencies[i]` belongs to term i; `pending` visible
    records are not in the word index yet.
    """

    candidates: Sequence[Candidate]
    document_frequencies: tuple[int, ...]
    truncated: frozenset[tuple[str, str]]
    lost: frozenset[tuple[str, str]] = frozenset()
    pending: int = 0


class Change(msgspec.Struct, frozen=True):
    """One item of a feed: a visible record, or the tombstone of one that left."""

    sequence: int
    item: StoredRecord | TombstoneRow


class Feed(msgspec.Struct, frozen=True):
    """Items in order; `more` says whether others follow up to the horizon.

    `end` is the number that was reached, where many records that do not satisfy the conditions
    ended the page.
    """

    items: tuple[Change, ...]
    more: bool
    end: int | None = None


class BlobReference(msgspec.Struct, frozen=True):
    """The authorizing reference: where it was found and what it says of the bytes."""

    connection_id: str
    stream: str
    key: str
    field: str
    reference: dict[str, object]
