"""Queries: what was asked, typed, before anybody looked at what is allowed.

Rule: a query holds the caller's words only; names of fields, views and relations are unchecked
text until `authorize` has met them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pdpp_kernel.criteria import HitOrder
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.enforcement.filter_texts import FilterText

# Items of a page, groups of an aggregate: unless told, and at most.
DEFAULT_LIMIT, MAX_LIMIT = 25, 100
DEFAULT_GROUPS, MAX_GROUPS = 10, 100

# A field window (docs/contract/resource-server.md 9.2): its length unless told and at most, what is
# looked for in it, and what may stand on each side of that.
DEFAULT_WINDOW_CHARS = 4_096
MAX_WINDOW_CHARS = 16_384
MAX_MATCH_CHARS = 256
MAX_CONTEXT_CHARS = 8_192


class Selectors(msgspec.Struct, frozen=True):
    """Which connections a read is narrowed to.  Source: docs/contract/resource-server.md 2.5."""

    connection_id: str | None = None
    connector_id: str | None = None


class FieldSelection(msgspec.Struct, frozen=True):
    """`fields` or `view`: what of `data` is shown.  Both empty: all granted fields."""

    fields: tuple[str, ...] = ()
    view: str | None = None


class Expand(msgspec.Struct, frozen=True):
    """`expand` and `expand_limit[relation]`."""

    names: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()


class PageSize(msgspec.Struct, frozen=True):
    """What a caller has room for; `None` where it said nothing.

    Units: `chars` of all items of a page; `member_chars` is the most that one member of `data`
        counts, for callers that show long ones in part.
    Source: docs/contract/resource-server.md 7.8.
    """

    chars: int | None = None
    member_chars: int | None = None


class Times(msgspec.Struct, frozen=True):
    """`since` (inclusive) and `until` (exclusive), UTC nanoseconds; `None` is no bound.

    Shapes: the days that they mean for what is dated by days; of UTC where nothing is said.
    """

    since_ns: int | None = None
    until_ns: int | None = None
    since_day: int | None = None
    until_day: int | None = None

    @property
    def days(self) -> tuple[int | None, int | None]:
        """The first day of the range, and the first one behind it."""
        since, until = self.since_day, self.until_day
        if since is None and self.since_ns is not None:
            since = self.since_ns // DAY_NANOSECONDS
        if until is None and self.until_ns is not None:
            until = -(-self.until_ns // DAY_NANOSECONDS)
        return since, until


ALWAYS = Times()


class RecordsQuery(msgspec.Struct, frozen=True):
    """A record list.  Source: docs/contract/resource-server.md 7.1."""

    stream: str
    selectors: Selectors = Selectors()
    limit: int = DEFAULT_LIMIT
    size: PageSize = PageSize()
    cursor: str | None = None
    order: str | None = None
    sort: str | None = None
    filters: tuple[FilterText, ...] = ()
    times: Times = ALWAYS
    cut: FieldSelection = FieldSelection()
    expand: Expand = Expand()
    count: bool = False
    window: bool = False
    time_zone: str | None = None


class TimelineQuery(msgspec.Struct, frozen=True):
    """A page of all streams in the order of time.  Source: docs/contract/resource-server.md 7.9."""

    selectors: Selectors = Selectors()
    streams: tuple[str, ...] = ()
    times: Times = ALWAYS
    descending: bool = True
    limit: int = DEFAULT_LIMIT
    size: PageSize = PageSize()
    cursor: str | None = None
    time_zone: str | None = None


class ChangesQuery(msgspec.Struct, frozen=True):
    """A change feed.  Source: docs/contract/resource-server.md 8."""

    stream: str
    selectors: Selectors = Selectors()
    limit: int = DEFAULT_LIMIT
    size: PageSize = PageSize()
    cursor: str | None = None
    changes_since: str | None = None
    filters: tuple[FilterText, ...] = ()
    cut: FieldSelection = FieldSelection()
    time_zone: str | None = None


class RecordQuery(msgspec.Struct, frozen=True):
    """One record.  Source: docs/contract/resource-server.md 9.1."""

    stream: str
    key: str
    selectors: Selectors = Selectors()
    cut: FieldSelection = FieldSelection()
    expand: Expand = Expand()
    time_zone: str | None = None


class FieldWindowQuery(msgspec.Struct, frozen=True):
    """A stretch of one field.  `None` where the caller said nothing.

    Source: docs/contract/resource-server.md 9.2.
    """

    stream: str
    key: str
    field: str
    selectors: Selectors = Selectors()
    offset_chars: int | None = None
    limit_chars: int | None = None
    text: str | None = None
    before_chars: int | None = None
    after_chars: int | None = None


class AggregateQuery(msgspec.Struct, frozen=True):
    """An aggregate.  Source: docs/contract/resource-server.md 10."""

    stream: str
    metric: str
    selectors: Selectors = Selectors()
    field: str | None = None
    group_by: str | None = None
    then_by: str | None = None
    group_by_time: str | None = None
    granularity: str | None = None
    time_zone: str | None = None
    bin: str | None = None
    text: str | None = None
    across: str | None = None
    sort: str | None = None
    limit: int | None = None
    filters: tuple[FilterText, ...] = ()


class SearchMode(StrEnum):
    """What a search goes by.  `auto` is settled by the server."""

    AUTO = "auto"
    WORDS = "words"
    MEANING = "meaning"
    HYBRID = "hybrid"


class SearchQuery(msgspec.Struct, frozen=True):
    """A search; `exact`: never relaxed.  Source: docs/contract/resource-server.md 11.1."""

    text: str
    selectors: Selectors = Selectors()
    streams: tuple[str, ...] = ()
    times: Times = ALWAYS
    limit: int = DEFAULT_LIMIT
    size: PageSize = PageSize()
    cursor: str | None = None
    filters: tuple[FilterText, ...] = ()
    mode: SearchMode = SearchMode.AUTO
    sort: HitOrder = HitOrder.RELEVANCE
    exact: bool = False
    time_zone: str | None = None


class SchemaQuery(msgspec.Struct, frozen=True):
    """A schema.  `detail` is `full` when one full body was asked for.

    Source: docs/contract/resource-server.md 6.2.
    """

    compact: bool = False
    full_detail: bool = False
    stream: str | None = None
    selectors: Selectors = Selectors()


class StreamQuery(msgspec.Struct, frozen=True):
    """The metadata of one stream.  Source: docs/contract/resource-server.md 6.5."""

    stream: str
    selectors: Selectors = Selectors()


class BlobQuery(msgspec.Struct, frozen=True):
    """The bytes behind a blob reference.  Source: docs/contract/resource-server.md 12.1."""

    blob_id: str
    selectors: Selectors = Selectors()
