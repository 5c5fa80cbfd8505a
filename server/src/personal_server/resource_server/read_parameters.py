"""The parameters of the read routes: names, kinds, bounds, and what each is told for.

Source: docs/contract/resource-server.md 6.2, 7.1, 8, 9, 10, 11.1.
"""

from __future__ import annotations

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import GroupOrder, HitOrder
from pdpp_kernel.errors import (
    InvalidExpand,
    InvalidFilter,
    InvalidWindow,
    UnsupportedSearchMode,
)
from pdpp_kernel.operators import LISTED_OPERATORS
from personal_server.enforcement.filter_texts import MAX_FILTER_VALUES
from personal_server.enforcement.queries import (
    DEFAULT_GROUPS,
    DEFAULT_LIMIT,
    MAX_CONTEXT_CHARS,
    MAX_GROUPS,
    MAX_LIMIT,
    MAX_MATCH_CHARS,
    MAX_WINDOW_CHARS,
    SearchMode,
)
from personal_server.web.parameters import (
    CURSOR,
    SELECTORS,
    Form,
    Kind,
    Parameter,
    page_limit,
)

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

TIME_ZONE = Parameter(
    "time_zone",
    "Whose days bare days and times without an offset are: an IANA name, or `owner`; else UTC.",
    example="Europe/Rome",
)
TIMES = (
    Parameter(
        "since",
        "Only from this time on: an instant, or a day; of what lasts, also what lasts by then.",
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
    TIME_ZONE,
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
RECORD = (FIELDS, VIEW, EXPAND, EXPAND_LIMIT, TIME_ZONE, *SELECTORS)
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
    TIME_ZONE,
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
    TIME_ZONE,
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
    TIME_ZONE,
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
