"""What of a stream its owner looks at, as a link says it: filters, days, order.  Pure.

Rule: a view names only what may be read (`check_view`); how values read is in `record_values`.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.operators import RANGES, Operator, Takes
from pdpp_kernel.texts import Text, message
from pdpp_kernel.values import DAY_NANOSECONDS, day_number
from personal_server.console.viewpoints import OWN, records_path
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import ALWAYS, Times

MOST_LINK_BYTES = 600


class RecordsLayout(StrEnum):
    """How the records of a view stand on its page, as its link says it."""

    FIRST = ""
    """The first of those in which they look like what they are; else a table."""
    LIST = "list"
    MONTH = "month"
    DAYS = "days"
    LINES = "lines"
    MAP = "map"
    PICTURES = "pictures"
    TABLE = "table"
    READ = "text"
    """One after the other, each with its text."""


def _rank(operator: Operator) -> int:
    """Values and parts of them come first, then ranges, lists, presence."""
    if operator in RANGES:
        return 2
    return {Takes.VALUE: 0, Takes.PART: 1, Takes.VALUES: 3, Takes.PRESENCE: 4}[operator.takes]


OPERATORS: Mapping[str, Text] = {
    "" if operator is Operator.EQ else operator.value: message(operator.label)
    for operator in sorted(Operator, key=_rank)
}
"""What stands between field and value of a condition, in the order in which a page offers it."""


class RecordsView(msgspec.Struct, frozen=True):
    """What of a stream is looked at, as its link says it.

    Shapes: `since`, `until` are days; `root` is where the pages of its viewpoint begin.
    """

    connection_id: str
    stream: str
    filters: tuple[FilterText, ...] = ()
    since: str | None = None
    until: str | None = None
    sort: str | None = None
    root: str = OWN
    layout: RecordsLayout = RecordsLayout.FIRST

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What stands in its link."""
        filters = [
            (f"filter[{item.field}]" + (f"[{item.operator}]" if item.operator else ""), text)
            for item in self.filters
            for text in (item.text, *item.further)
        ]
        parameters = (("since", self.since), ("until", self.until), ("sort", self.sort))
        parameters += (("as", self.layout.value),)
        return filters + [(name, text) for name, text in parameters if text]

    @property
    def link(self) -> str:
        """The address of its page, below the root of this server."""
        query = urlencode(self.pairs, safe="[]")
        return self.place + (f"?{query}" if query else "")

    @property
    def place(self) -> str:
        """Where the whole of it stands."""
        return records_path(self.root, self.connection_id, self.stream)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return not (self.filters or self.since or self.until)

    @property
    def undated(self) -> RecordsView:
        """The same at any time."""
        return replace(self, since=None, until=None)

    def having(self, *added: FilterText) -> RecordsView:
        """With conditions in the place of those with the same field and operator."""
        replaced = {(limit.field, limit.operator) for limit in added}
        filters = [limit for limit in self.filters if (limit.field, limit.operator) not in replaced]
        return replace(self, filters=(*filters, *added))

    def lacking(self, condition: FilterText) -> RecordsView:
        """Without one of its conditions."""
        return replace(self, filters=tuple(e for e in self.filters if e is not condition))

    @property
    def times(self) -> Times:
        """Its days as instants."""
        since, until = _day_ns(self.since, "since"), _day_ns(self.until, "until")
        return ALWAYS if since is until is None else Times(since, until)


def with_parameters(link: str, **values: str | None) -> str:
    """A link with more parameters: those that have a value."""
    for name, value in values.items():
        if value:
            link += f"{'&' if '?' in link else '?'}{name}={quote(value, safe='')}"
    return link


def check_view(view: RecordsView, source: ReadableSource) -> None:
    """Raise: InvalidRequest for what no link of ours says; it repeats nothing of a link."""
    names = [limit.field for limit in view.filters]
    if any(name not in source.fields for name in names):
        raise InvalidRequest("This link names a field that these records do not have.")
    if view.sort is not None and view.sort.removeprefix("-") not in sortable_fields(source):
        raise InvalidRequest("These records cannot be sorted by that field.", param="sort")
    if len(urlencode(view.pairs)) > MOST_LINK_BYTES:
        raise InvalidRequest("This view has too many conditions. Remove some.")
    _ = view.times


def sortable_fields(source: ReadableSource) -> list[str]:
    """The fields by which these records can be sorted here."""
    return [name for name in source.declared.sortable if name in source.fields]


def _day_ns(text: str | None, param: str) -> int | None:
    if text is None:
        return None
    day = day_number(text)
    if day is None:
        raise InvalidRequest("Write the day like 2026-01-31.", param=param)
    return day * DAY_NANOSECONDS
