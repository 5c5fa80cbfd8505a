"""Figures that stand in lists of records: what payments of a month come to, which chats there are.

Rule: amounts of different currencies are never added; what does not fit the time of a page is left
out and said to be.  Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Text, day_of_text
from personal_server.console.presentations import field_with_role, money_fields
from personal_server.console.record_figures import ViewFigures, stretched_time, with_times
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
    asked = _sums_asked(figures, months)
    dated = time_field(figures.source)
    if asked is None or dated is None or dated.name not in _by_time(figures):
        return {}
    query = replace(asked.query, group_by_time=dated.name, granularity="month")
    found = figures.aggregate(query)
    if found is None or found.other_count:
        return None
    sums: dict[str, tuple[tuple[Decimal, str], ...]] = {}
    for group in found.groups or ():
        month: object = msgspec.json.decode(group.then) if group.then else None
        if isinstance(month, str) and group.value:
            value = Decimal(bytes(group.value).decode())
            sums[month[:7]] = (*sums.get(month[:7], ()), (value, _named(group.key)))
    return {month: tuple(sorted(each, key=lambda pair: pair[1])) for month, each in sums.items()}


class CategorySum(msgspec.Struct, frozen=True):
    """What the payments of a category come to in a month, in one currency; `link` shows them.

    Shapes: `name` is empty for those without a category.
    """

    name: str
    amount: Decimal
    currency: str
    count: int
    link: str | None


def category_sums(figures: ViewFigures, month: str) -> list[CategorySum] | None:
    """What the payments of a month come to by category, the largest first, by currency.

    Shapes: empty where it cannot be asked for, `None` where that takes too long or they are more
        than are read.
    """
    source, view = figures.source, figures.view
    field = field_with_role(source, "category")
    asked = _sums_asked(figures, [month])
    if asked is None or field is None:
        return []
    if field not in source.declared.groupable or any(e.field == field for e in view.filters):
        return []
    found = figures.aggregate(replace(asked.query, group_by=field, then_by=asked.query.group_by))
    if found is None or found.other_count:
        return None
    alone = replace(view, since=asked.since, until=asked.until, sort=None)
    sums: list[CategorySum] = []
    for group in found.groups or ():
        key: object = msgspec.json.decode(group.key)
        is_named = isinstance(key, str) and bool(key)
        condition = FilterText(field, Operator.EXISTS.value, "false")
        link = alone.having(FilterText(field, None, str(key)) if is_named else condition).link
        if group.value and (is_named or key is None):
            sums.append(
                CategorySum(
                    cut(str(key), NAME_CHARS) if is_named else "",
                    Decimal(bytes(group.value).decode()),
                    _named(group.then) if group.then else "",
                    group.count,
                    link if len(link) <= MOST_LINK_BYTES else None,
                )
            )
    return sorted(sums, key=lambda each: (each.currency, -abs(each.amount)))


class _SumsAsked(msgspec.Struct, frozen=True):
    """Sums of payments by currency, and the days that bound them."""

    query: AggregateQuery
    since: str
    until: str | None


def _sums_asked(figures: ViewFigures, months: Sequence[str]) -> _SumsAsked | None:
    """The sums of what a view has of these months; none where that cannot be asked for."""
    source, view = figures.source, figures.view
    declared, dated, money, ends = (
        source.declared,
        stretched_time(source),
        money_fields(source),
        month_ends(months),
    )
    if dated is None or money is None or ends is None:
        return None
    amount, currency = money
    asked = {each.field for each in view.filters}
    if dated.name in asked or currency not in declared.groupable:
        return None
    since = max(view.since or "", ends[0])
    until = min(filter(None, (view.until, ends[1])), default=None)
    bounds = ((Operator.GTE.value, since), (Operator.LT.value, until))
    query = AggregateQuery(
        source.stream,
        "sum",
        Selectors(source.connection_id),
        field=amount,
        group_by=currency,
        limit=SUMS_READ,
        filters=(
            *view.filters,
            *(FilterText(dated.name, operator, day) for operator, day in bounds if day),
        ),
    )
    return _SumsAsked(query, since, until)


def _by_time(figures: ViewFigures) -> tuple[str, ...]:
    return figures.source.declared.aggregations.group_by_time


def _named(raw: msgspec.Raw) -> str:
    name: object = msgspec.json.decode(raw)
    return cut(name, NAME_CHARS) if isinstance(name, str) else ""


class ChatLine(msgspec.Struct, frozen=True):
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
