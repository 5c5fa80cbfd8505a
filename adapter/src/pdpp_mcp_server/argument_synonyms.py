"""Other words for arguments: for a name, `order_by` for `sort`, and for one of a few values,
`average` for `avg`, `monthly` for `month`.
"""

from __future__ import annotations

from collections.abc import Collection

from pdpp_kernel.aggregations import Granularity, Metric

RENAMED = {
    "stream": "streams",
    "streams": "stream",
    "order_by": "sort",
    "connector_instance_id": "connection_id",
    "filters": "filter",
}
"""Names that other interfaces have for an argument of ours."""
_SYNONYMS = {
    "average": Metric.AVG.value,
    "mean": Metric.AVG.value,
    "total": Metric.SUM.value,
    "minimum": Metric.MIN.value,
    "maximum": Metric.MAX.value,
    "distinct": Metric.COUNT_DISTINCT.value,
    "unique": Metric.COUNT_DISTINCT.value,
    "p50": Metric.MEDIAN.value,
    "hourly": Granularity.HOUR.value,
    "daily": Granularity.DAY.value,
    "weekly": Granularity.WEEK.value,
    "monthly": Granularity.MONTH.value,
    "quarterly": Granularity.QUARTER.value,
    "yearly": Granularity.YEAR.value,
}


def named_value(written: str, allowed: Collection[str]) -> str:
    """The allowed value that is meant; what was written, where none is."""
    plain = written.strip().lower()
    named = _SYNONYMS.get(plain, plain)
    return named if named in allowed else written
