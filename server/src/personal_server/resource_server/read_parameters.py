"""The parameters of the read routes, and the queries that they spell.

Rule: syntax only; whether a name is declared or granted is decided in `enforcement`.
Source: docs/contract/resource-server.md 6.2, 7.1, 8, 9, 10, 11.1.
"""

from __future__ import annotations

from typing import cast

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import GroupOrder, HitOrder
from pdpp_kernel.errors import (
    InvalidExpand,
    InvalidFilter,
    InvalidRequest,
    InvalidWindow,
    UnsupportedSearchMode,
)
from pdpp_kernel.operators import LISTED_OPERATORS
from pdpp_kernel.values import instant_or_day_ns
from personal_server.enforcement.filter_texts import MAX_FILTER_VALUES, FilterText, filters_of
from personal_server.enforcement.queries import (
    DEFAULT_GROUPS,
    DEFAULT_LIMIT,
    MAX_CONTEXT_CHARS,
    MAX_GROUPS,
    MAX_LIMIT,
    MAX_MATCH_CHARS,
    MAX_WINDOW_CHARS,
    AggregateQuery,
    ChangesQuery,
    Expand,
    FieldSelection,
    FieldWindowQuery,
    PageSize,
    RecordQuery,
    RecordsQuery,
    SearchMode,
    SearchQuery,
    Selectors,
    TimelineQuery,
    Times,
)
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.parameters import (
    CURSOR,
    SELECTORS,
    Form,
    Kind,
    Parameter,
    Parameters,
    page_limit,
)
from personal_server.web.requests import Request

FIELDS = Parameter(
    "fields", "Only these fields, and the primary key.", form=Form.LIST, max_items=256
)
VIEW = Parameter("view", "A declared view instead of `fields`.")
EXPAND = Parameter("expand", "Relations to read along.", form=Form.LIST, max_items=8)
EXPAND_LIMIT = Parameter(
    "expand_limit",
    "How many children of a relation; asks for the relation too.",
    form=Form.KEYED,
    kind=Kind.INTEGER,
    error=InvalidExpand,
    example="expand_limit[comments]=3",
)
FILTER = Parameter(
    "filter",
    "Conditions on granted fields: equal, or an operator of the field; `in` several times.",
    form=Form.KEYED,
    depth=2,
    repeated=LISTED_OPERATORS,
    max_items=MAX_FILTER_VALUES,
    error=InvalidFilter,
    example="filter[created_at][gte]=2026-01-01T00:00:00Z",
)

TIMES = (
    Parameter(
        "since",
        "Only from this time on: an instant with its offset, or a day (its start, UTC).",
        example="2026-01-01",
    ),
    Parameter("until", "Only before this time.", example="2026-02-01T00:00:00Z"),
)
PAGE_SIZE = (
    Parameter(
        "page_chars",
        "The page ends before its items count more characters than this; it holds at least one.",
        kind=Kind.INTEGER,
        minimum=1,
        example="10000",
    ),
    Parameter(
        "member_chars",
        "In `page_chars`, the most that one member of `data` counts.",
        kind=Kind.INTEGER,
        minimum=1,
    ),
)
RECORDS = (
    page_limit(DEFAULT_LIMIT, MAX_LIMIT),
    *PAGE_SIZE,
    CURSOR,
    Parameter("changes_since", "A bookmark, `beginning`, `now` or when: what changed since."),
    *SELECTORS,
    Parameter("order", "Direction; with `sort` they must agree.", choices=("asc", "desc")),
    Parameter("sort", "`field` ascending, `-field` descending.", example="-created_at"),
    *TIMES,
    FILTER,
    EXPAND,
    EXPAND_LIMIT,
    FIELDS,
    VIEW,
    Parameter(
        "count", "Also count the list.", choices=("none", "estimated", "exact"), default="none"
    ),
    Parameter("window", "Also the list's extent.", choices=("none", "exact"), default="none"),
)
RECORD = (FIELDS, VIEW, EXPAND, EXPAND_LIMIT, *SELECTORS)
FIELD_WINDOW = (
    Parameter("field", "One granted top-level property."),
    Parameter(
        "offset_chars",
        "Where the window begins.",
        kind=Kind.INTEGER,
        minimum=0,
        error=InvalidWindow,
    ),
    Parameter(
        "limit_chars",
        "How long it is; 4 096 unless told.",
        kind=Kind.INTEGER,
        minimum=1,
        maximum=MAX_WINDOW_CHARS,
        clamps=True,
        error=InvalidWindow,
    ),
    Parameter(
        "q",
        "Window around the first match of this text.",
        max_chars=MAX_MATCH_CHARS,
        error=InvalidWindow,
    ),
    *(
        Parameter(
            name,
            f"Characters {side} the match.",
            kind=Kind.INTEGER,
            minimum=0,
            maximum=MAX_CONTEXT_CHARS,
            error=InvalidWindow,
        )
        for name, side in (("before_chars", "before"), ("after_chars", "after"))
    ),
    *SELECTORS,
)
AGGREGATE = (
    Parameter("metric", "What is computed.", required=True, choices=tuple(m.value for m in Metric)),
    Parameter("field", "Of which field; not for `count`."),
    Parameter("group_by", "Group by a scalar field, or by `connection_id`."),
    Parameter("then_by", "Each group again by a second field; needs `group_by`."),
    Parameter("group_by_time", "Group by a time field; needs `granularity`."),
    Parameter("granularity", "Size of time groups.", choices=tuple(g.value for g in Granularity)),
    Parameter("time_zone", "IANA name for time groups; UTC unless told.", example="Europe/Rome"),
    Parameter("bin", "Steps of the number `group_by`, how wide; 0: as the numbers ask for."),
    Parameter("q", "Only records that hold these words."),
    Parameter(
        "across", "Every connection that holds the stream, of any source.", choices=("connections",)
    ),
    Parameter(
        "sort", "What groups are ordered by.", choices=tuple(order.value for order in GroupOrder)
    ),
    Parameter(
        "limit",
        f"Groups returned: {DEFAULT_GROUPS} unless told, {MAX_GROUPS} of times, steps or pairs.",
        kind=Kind.INTEGER,
        minimum=1,
        maximum=MAX_GROUPS,
    ),
    FILTER,
    *SELECTORS,
)
STREAMS = Parameter("streams", "Only these streams.", form=Form.LIST, max_items=64)
TIMELINE = (
    *TIMES,
    Parameter("order", "`desc` begins with the newest.", choices=("asc", "desc"), default="desc"),
    STREAMS,
    page_limit(DEFAULT_LIMIT, MAX_LIMIT),
    *PAGE_SIZE,
    CURSOR,
    *SELECTORS,
)
SEARCH = (
    Parameter(
        "q",
        'Words in any form, "phrases", prefix*, -not, one OR other, field:word, from:, to:.',
        required=True,
    ),
    page_limit(DEFAULT_LIMIT, MAX_LIMIT),
    *PAGE_SIZE,
    STREAMS,
    *TIMES,
    Parameter(
        "sort",
        "Best first, or in the order of time.",
        choices=tuple(order.value for order in HitOrder),
        default=HitOrder.RELEVANCE.value,
    ),
    FILTER,
    Parameter(
        "exact",
        "`true`: all words as they are, or nothing; fewer words and other spellings never.",
        choices=("true", "false"),
        default="false",
    ),
    CURSOR,
    *SELECTORS,
)
SEARCH_ANY = (
    *SEARCH,
    Parameter(
        "mode",
        "`auto`: by words and meaning, where passages are embedded and the query is plain words.",
        choices=tuple(SearchMode),
        error=UnsupportedSearchMode,
    ),
)
SCHEMA = (
    Parameter("view", "`compact` for flags instead of objects.", choices=("full", "compact")),
    Parameter("detail", "`full` needs `stream`.", choices=("full", "compact")),
    Parameter("stream", "Only rows of this stream."),
    *SELECTORS,
)

_NOT_WITH_CHANGES = (
    "since",
    "until",
    "sort",
    "order",
    "count",
    "window",
    "expand",
    "expand_limit",
)


def selectors_of(parameters: Parameters) -> Selectors:
    """Which connections are asked."""
    texts = parameters.texts
    return Selectors(texts.get("connection_id"), texts.get("connector_id"))


def records_query(request: Request) -> RecordsQuery:
    """A record list, as the query string spells it."""
    sent = request.parameters
    texts = sent.texts
    return RecordsQuery(
        stream=request.path["stream"],
        selectors=selectors_of(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=texts.get("cursor"),
        order=texts.get("order"),
        sort=texts.get("sort"),
        filters=_filters(sent),
        times=_times(sent),
        cut=_cut(sent),
        expand=_expand(sent),
        count=texts["count"] != "none",
        window=texts["window"] != "none",
    )


def changes_query(request: Request) -> ChangesQuery:
    """A change feed, which has its own order.  Raises: InvalidRequest."""
    sent = request.parameters
    for name in _NOT_WITH_CHANGES:
        # a default that is sent says no more than one that is not
        if name in sent.sent and sent.texts.get(name) != "none":
            raise InvalidRequest(f"'{name}' does not go with 'changes_since'.", param=name)
    return ChangesQuery(
        stream=request.path["stream"],
        selectors=selectors_of(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
        changes_since=sent.texts.get("changes_since"),
        filters=_filters(sent),
        cut=_cut(sent),
    )


def timeline_query(request: Request) -> TimelineQuery:
    """A page of the time line.  Raises: InvalidRequest."""
    sent = request.parameters
    return TimelineQuery(
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=_times(sent),
        descending=sent.texts["order"] == "desc",
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
    )


def record_query(request: Request) -> RecordQuery:
    """One record."""
    sent = request.parameters
    return RecordQuery(
        stream=request.path["stream"],
        key=request.path["record_key"],
        selectors=selectors_of(sent),
        cut=_cut(sent),
        expand=_expand(sent),
    )


def field_window_query(request: Request) -> FieldWindowQuery:
    """A stretch of one field."""
    sent = request.parameters
    texts, integers = sent.texts, sent.integers
    return FieldWindowQuery(
        stream=request.path["stream"],
        key=request.path["record_key"],
        field=texts.get("field") or "",
        selectors=selectors_of(sent),
        offset_chars=integers.get("offset_chars"),
        limit_chars=integers.get("limit_chars"),
        text=texts.get("q"),
        before_chars=integers.get("before_chars"),
        after_chars=integers.get("after_chars"),
    )


def aggregate_query(request: Request) -> AggregateQuery:
    """An aggregate."""
    sent = request.parameters
    texts = sent.texts
    return AggregateQuery(
        stream=request.path["stream"],
        metric=texts["metric"],
        selectors=selectors_of(sent),
        field=texts.get("field"),
        group_by=texts.get("group_by"),
        then_by=texts.get("then_by"),
        group_by_time=texts.get("group_by_time"),
        granularity=texts.get("granularity"),
        time_zone=texts.get("time_zone"),
        bin=texts.get("bin"),
        text=texts.get("q"),
        across=texts.get("across"),
        sort=texts.get("sort"),
        limit=sent.integers.get("limit"),
        filters=_filters(sent),
    )


def search_query(request: Request) -> SearchQuery:
    """A search; one that is exact goes by words, unless told."""
    sent = request.parameters
    exact = sent.texts["exact"] == "true"
    mode = sent.texts.get("mode", SearchMode.WORDS if exact else SearchMode.AUTO)
    return SearchQuery(
        text=sent.texts["q"],
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=_times(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
        filters=_filters(sent),
        mode=SearchMode(mode),
        sort=HitOrder(sent.texts["sort"]),
        exact=exact,
    )


def _times(parameters: Parameters) -> Times:
    return Times(_instant(parameters, "since"), _instant(parameters, "until"))


def _instant(parameters: Parameters, name: str) -> int | None:
    text = parameters.texts.get(name)
    if text is None:
        return None
    at_ns = instant_or_day_ns(text)
    if at_ns is None:
        raise InvalidRequest(
            f"'{name}' is an instant with its offset, or a day: {name}=2026-01-31T09:00:00Z.",
            param=name,
        )
    return at_ns


def _size(parameters: Parameters) -> PageSize:
    integers = parameters.integers
    return PageSize(integers.get("page_chars"), integers.get("member_chars"))


def _cut(parameters: Parameters) -> FieldSelection:
    return FieldSelection(parameters.lists.get("fields", ()), parameters.texts.get("view"))


def _expand(parameters: Parameters) -> Expand:
    sent = parameters.keyed.get("expand_limit", ())
    limits = tuple((each.path[0], int(each.value)) for each in sent)
    return Expand(parameters.lists.get("expand", ()), limits)


def _filters(parameters: Parameters) -> tuple[FilterText, ...]:
    return filters_of((each.path, each.value) for each in parameters.keyed.get("filter", ()))


def snapshot_of(request: Request) -> ReadSnapshot:
    """The one state that a read is answered from; the frame opened it."""
    return cast("ReadSnapshot", request.snapshot)
