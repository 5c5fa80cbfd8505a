"""What a resource server may take in a read beyond what every one takes: a closed list of words.

A server names its words in its metadata; a client sends what a word stands for only to a server
that names it.
Source: docs/contract/resource-server.md 5.1; docs/decisions.md C31.
"""

from enum import StrEnum


class ReadCapability(StrEnum):
    """One word of `pdpp_read_capabilities`.

    Each filter operator that not all servers take has one, which its row in `operators` names.
    """

    PAGE_SIZE = "page_size"
    FILTER_IN = "filter_in"
    FILTER_NE = "filter_ne"
    FILTER_CONTAINS = "filter_contains"
    FILTER_STARTS_WITH = "filter_starts_with"
    FILTER_EXISTS = "filter_exists"
    TIMELINE = "timeline"
    TIMES = "times"
    TIME_ZONE = "time_zone"
    RECORD_TIME = "record_time"
    SEARCH_SORT = "search_sort"
    SEARCH_MODE = "search_mode"
    SEARCH_EXACT = "search_exact"
    CHANGES_INSTANT = "changes_instant"
    CHANGES_FILTER = "changes_filter"
    AGGREGATE_METRICS = "aggregate_metrics"
    AGGREGATE_GROUPS = "aggregate_groups"
    AGGREGATE_QUERY = "aggregate_query"
    AGGREGATE_ACROSS = "aggregate_across"


OF_THIS_PROGRAM = frozenset(ReadCapability)
"""What the resource server of this program takes: all of it."""
