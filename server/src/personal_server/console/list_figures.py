"""Figures that stand in lists of records: what payments of a month come to, which chats there are.

Rule: amounts of different currencies are never added; what does not fit the time of a page is left
out and said to be.  Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import msgspec

from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Text, day_of_text
from personal_server.console.presentations import money_fields
from personal_server.console.record_figures import STRETCH, ViewFigures, with_times
from personal_server.console.record_lists import month_ends
from personal_server.console.record_view import MOST_LINK_BYTES
from personal_server.console.words import cut
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import AggregateQuery, Selectors
from personal_server.enforcement.timeline import time_field

SUMS_READ = 100
CHATS_SHOWN = 12
NAME_CHARS = 60


def month_sums(
    figures: ViewFigures, months: Sequence[str]
) -> Mapping[str, tuple[tuple[Decimal, str], ...]] | None:
    """What the payments of these months come to, each currency by itself.

    Shapes: by month, as `2026-01`; empty where it cannot be asked for, `None` where that takes too
        long.
    """
    source, view = figures.source, figures.view
    declared, dated, money, ends = (
        source.declared,
        time_field(source),
        money_fields(source),
        month_ends(months),
    )
    if dated is None or money is None or ends is None:
        return {}
    amount, currency = money
    asked = {each.field for each in view.filters}
    is_ranged = set(declared.range_filters.get(dated.name, ())) >= STRETCH
    is_grouped = dated.name in declared.aggregations.group_by_time
    if dated.name in asked or not (is_ranged and is_grouped and currency in declared.groupable):
        return {}
    since = max(view.since or "", ends[0])
    until = min(filter(None, (view.until, ends[1])), default=None)
    bounds = ((Operator.GTE.value, since), (Operator.LT.value, until))
    query = AggregateQuery(
        source.stream,
        "sum",
        Selectors(source.connection_id),
        field=amount,
        group_by=currency,
        group_by_time=dated.name,
        granularity="month",
        limit=SUMS_READ,
        filters=(
            *view.filters,
            *(FilterText(dated.name, operator, day) for operator, day in bounds if day),
        ),
    )
    found = figures.aggregate(query)
    if found is None or found.other_count:
        return None
    sums: dict[str, tuple[tuple[Decimal, str], ...]] = {}
    for group in found.groups or ():
        month: object = msgspec.json.decode(group.then) if group.then else None
        name: object = msgspec.json.decode(group.key)
        if isinstance(month, str) and group.value:
            value = Decimal(bytes(group.value).decode())
            said = cut(name, NAME_CHARS) if isinstance(name, str) else ""
            sums[month[:7]] = (*sums.get(month[:7], ()), (value, said))
    return {month: tuple(sorted(each, key=lambda pair: pair[1])) for month, each in sums.items()}


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A conversation of many: its name, how many messages, the day of the newest."""

    name: str
    count: int
    newest: Text
    link: str


def chat_lines(figures: ViewFigures) -> list[ChatLine] | None:
    """The conversations in which something was said last; `None` where that takes too long."""
    source, view, dated = figures.source, figures.view, time_field(figures.source)
    declared, field = source.declared, source.declared.conversation_field
    if field is None or dated is None or field not in declared.groupable:
        return []
    is_labelled = declared.properties[field].label_field in source.fields
    conditions = with_times(view, source)
    if conditions is None or not is_labelled or any(each.field == field for each in view.filters):
        return []
    tells_newest = dated.name in declared.aggregations.max
    query = AggregateQuery(
        source.stream,
        "max" if tells_newest else "count",
        Selectors(source.connection_id),
        field=dated.name if tells_newest else None,
        group_by=field,
        sort="-value",
        limit=CHATS_SHOWN,
        filters=conditions,
    )
    found = figures.aggregate(query)
    if found is None:
        return None
    lines: list[ChatLine] = []
    for group in found.groups or ():
        key: object = msgspec.json.decode(group.key)
        if not isinstance(key, str) or not isinstance(group.label, str):
            continue
        newest: object = msgspec.json.decode(group.value) if group.value else None
        day = day_of_text(newest) if isinstance(newest, str) else ""
        link = view.having(FilterText(field, None, key)).link
        if len(link) <= MOST_LINK_BYTES:
            lines.append(ChatLine(cut(group.label, NAME_CHARS), group.count, day, link))
    return lines
