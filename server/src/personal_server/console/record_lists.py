"""What a list of records looks like: an inbox, conversations, payments by month, an agenda.  Pure.

Rule: what a stream is follows from the roles of its declaration, never from its source
(`presentations`); each record is a link, called by what people know it by.
Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.texts import (
    Date,
    DaySpan,
    Joined,
    Minute,
    Text,
    day_of_text,
    local_moment,
    message,
    moment_of,
)
from pdpp_kernel.values import (
    DAY_NANOSECONDS,
    ValueKind,
    day_number,
    instant_ns,
    instant_or_day_ns,
)
from personal_server.console.presentations import (
    Appearance,
    Bubble,
    bubble_fields,
    bubbles,
    money_fields,
    text_fields,
    written_field,
)
from personal_server.console.record_values import (
    AUTHOR,
    SHORT_CHARS,
    author_of,
    called,
    joining_fields,
    title_of,
)
from personal_server.console.record_view import RecordsView
from personal_server.console.viewpoints import records_path
from personal_server.console.words import cut
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.timeline import time_field

Records = Sequence[tuple[str, Mapping[str, object]]]
"""Keys with the fields of their records."""
WORDS_CHARS = 140
ASIDE_CHARS = 60


class ListedRecord(msgspec.Struct, frozen=True):
    """A record of an inbox: whom or where it is from, what it is called, its first words, its day.

    `times` is when of its day an event takes place.
    """

    link: str
    name: Text
    by: str
    words: str
    at: Text
    times: Text = ""


class AgendaDay(msgspec.Struct, frozen=True):
    """A day with what begins on it: what lasts whole days first.

    Shapes: `day` is none for what has no time.
    """

    day: Date | None
    events: tuple[ListedRecord, ...]


class Payment(msgspec.Struct, frozen=True):
    """A payment; `amount` is none where its record says none."""

    listed: ListedRecord
    amount: Decimal | None
    currency: str


class PaymentMonth(msgspec.Struct, frozen=True):
    """The payments of a month that stand on a page, and what all of the month come to.

    Shapes: `name` is none where they stand in another order than that of time; `sums` has an amount
        for each currency.
    """

    name: Date | None
    payments: tuple[Payment, ...]
    sums: tuple[tuple[Decimal, str], ...] = ()


class Conversation(msgspec.Struct, frozen=True):
    """Messages of one conversation that follow each other; `link` shows it alone."""

    name: Text
    link: str | None
    bubbles: tuple[Bubble, ...]


def list_fields(source: ReadableSource, look: Appearance) -> tuple[str, ...]:
    """What of each record its place in a list is made of."""
    declared, dated = source.declared, time_field(source)
    names: list[str | None] = [declared.title_field, *bubble_fields(source), dated and dated.name]
    names += [_aside_field(source), *(money_fields(source) or ())]
    if look is Appearance.CHAT:
        names += [declared.conversation_field, _label_field(source)]
    if look is Appearance.AGENDA:
        names += [declared.event_end_field, declared.whole_days_field]
    return tuple(dict.fromkeys(n for n in names if n is not None and n in source.fields))


def inbox(root: str, source: ReadableSource, records: Records) -> list[ListedRecord]:
    """Records as an inbox shows its mails."""
    return [listed_record(root, source, key, data) for key, data in records]


def conversations(
    view: RecordsView, source: ReadableSource, records: Records
) -> list[Conversation]:
    """Messages as they were said, by the conversations that follow each other."""
    field = source.declared.conversation_field or ""
    found: list[Conversation] = []
    for value, group in groupby(records, key=lambda record: record[1].get(field)):
        messages = list(group)
        link = None
        if isinstance(value, str) and value:
            alone = view.having(FilterText(field, None, value)).link
            link = None if any(each.field == field for each in view.filters) else alone
        name = next((n for _, data in messages if (n := _conversation_name(source, data))), "")
        lines = bubbles(view.root, source, "", messages)
        found.append(Conversation(name or message("conversation"), link, tuple(lines)))
    return found


def agenda(
    root: str, source: ReadableSource, records: Records, zone: ZoneInfo, *, latest_first: bool
) -> list[AgendaDay]:
    """What takes place, by the day on which it begins where the owner lives; last what has none."""
    days: dict[date, list[tuple[tuple[bool, int], ListedRecord]]] = {}
    undated: list[ListedRecord] = []
    for key, data in records:
        begin_ns, end_ns, is_whole = times_of(source, data)
        if begin_ns is None:
            undated.append(listed_record(root, source, key, data))
            continue
        begins = moment_of(begin_ns) if is_whole else local_moment(begin_ns, zone)
        times = times_words(begin_ns, end_ns, zone, is_whole=is_whole)
        listed = replace(listed_record(root, source, key, data), times=times)
        days.setdefault(begins.date(), []).append(((not is_whole, begin_ns), listed))
    dated = [
        AgendaDay(
            Date(day, "named_day"),
            tuple(event for _, event in sorted(days[day], key=lambda pair: pair[0])),
        )
        for day in sorted(days, reverse=latest_first)
    ]
    return [*dated, AgendaDay(None, tuple(undated))] if undated else dated


def payments(root: str, source: ReadableSource, records: Records) -> list[Payment]:
    """Payments with what each comes to, in its own currency."""
    amount_field, currency_field = money_fields(source) or ("", "")
    found: list[Payment] = []
    for key, data in records:
        value, currency = data.get(amount_field), data.get(currency_field)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        amount = Decimal(str(value)) if is_number else None
        name = cut(currency, ASIDE_CHARS) if isinstance(currency, str) else ""
        found.append(Payment(listed_record(root, source, key, data), amount, name))
    return found


def months_of(source: ReadableSource, records: Records) -> list[str]:
    """The month of each record as `2026-01`, in UTC; empty where it has no time."""
    dated = time_field(source)
    return [_month(data.get("" if dated is None else dated.name)) for _, data in records]


def payment_months(
    shown: Sequence[Payment],
    months: Sequence[str],
    sums: Mapping[str, tuple[tuple[Decimal, str], ...]],
) -> list[PaymentMonth]:
    """Payments under their months.  Shapes: `months` has that of each payment."""
    found: list[PaymentMonth] = []
    for month, group in groupby(zip(months, shown, strict=True), key=lambda pair: pair[0]):
        name = Date(date.fromisoformat(f"{month}-01"), "month") if month else None
        of_month = tuple(payment for _, payment in group)
        found.append(PaymentMonth(name, of_month, sums.get(month, ())))
    return found


def listed_record(
    root: str, source: ReadableSource, key: str, data: Mapping[str, object]
) -> ListedRecord:
    """A record as it stands in a list."""
    dated = time_field(source)
    at = None if dated is None else data.get(dated.name)
    day = day_of_text(at) if isinstance(at, str) else ""
    written, title = written_field(source, data), title_of(source, data)
    is_title = written is None or written == source.declared.title_field
    words = "" if is_title else cut(str(data[written or ""]), WORDS_CHARS)
    name: Text = title or called(source, data) or words or day or cut(key, SHORT_CHARS)
    by = author_of(source, data) if source.declared.fields_with_role(AUTHOR) else ""
    aside = data.get(_aside_field(source) or "")
    return ListedRecord(
        link=records_path(root, source.connection_id, source.stream, key),
        name=name,
        by=by or (cut(aside, ASIDE_CHARS) if isinstance(aside, str) else ""),
        words="" if name == words else words,
        at=day,
    )


def _aside_field(source: ReadableSource) -> str | None:
    """A short value that tells records apart where nobody wrote them: a host, a calendar."""
    declared, joining = source.declared, joining_fields(source.declared)
    if any(name in source.fields for name in declared.fields_with_role(AUTHOR)):
        return None
    for name in declared.aggregations.group_by:
        field = declared.properties[name]
        tells = field.kind is ValueKind.STRING and field.role is None and field.type != "currency"
        if tells and name in source.fields and name not in joining and not name.endswith("_id"):
            return name
    return None


def _label_field(source: ReadableSource) -> str | None:
    """The field with the name of a conversation."""
    declared = source.declared
    field = declared.properties[declared.conversation_field or ""]
    if field.label_field in source.fields:
        return field.label_field
    title = declared.title_field
    return title if any(name != title for name in text_fields(source)) else None


def _conversation_name(source: ReadableSource, data: Mapping[str, object]) -> str:
    name = data.get(_label_field(source) or "")
    return cut(name, SHORT_CHARS) if isinstance(name, str) else ""


def times_of(
    source: ReadableSource, data: Mapping[str, object]
) -> tuple[int | None, int | None, bool]:
    """When a record begins and ends, and whether it lasts whole days.

    Units: nanoseconds; of whole days the end is the beginning of the day after the last.
    """
    declared, dated = source.declared, time_field(source)
    at = data.get("" if dated is None else dated.name)
    until = data.get(declared.event_end_field or "")
    begin, end = (
        instant_or_day_ns(each) if isinstance(each, str) else None for each in (at, until)
    )
    if dated is not None and dated.kind is ValueKind.DATE:
        return begin, None if end is None else end + DAY_NANOSECONDS, True
    return begin, end, data.get(declared.whole_days_field or "") is True


def times_words(begin_ns: int, end_ns: int | None, zone: ZoneInfo, *, is_whole: bool) -> Text:
    """When of its day something takes place, and until when."""
    if is_whole:
        first, last = moment_of(begin_ns).date(), moment_of((end_ns or 0) - 1).date()
        return DaySpan(Date(first), Date(last)) if last > first else message("all day")
    begins = local_moment(begin_ns, zone)
    clock = f"{begins:%H:%M}"
    if end_ns is None or end_ns <= begin_ns:
        return clock
    ends = local_moment(end_ns, zone)
    if day_of_end(ends) == begins.date():
        return f"{clock} – {ends:%H:%M}"
    return Joined((clock, Minute(end_ns)), " – ")


def day_of_end(ends: datetime) -> date:
    """The day on which something ends: midnight belongs to the day before."""
    return (ends - timedelta(microseconds=1)).date()


def _month(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if day_number(value) is not None:
        return value[:7]
    at_ns = instant_ns(value)
    return "" if at_ns is None else f"{moment_of(at_ns):%Y-%m}"


def month_ends(months: Iterable[str]) -> tuple[str, str | None] | None:
    """From the first day of the first month to the first day after the last one, if one follows."""
    known = sorted(month for month in months if month)
    if not known:
        return None
    year, month = int(known[-1][:4]), int(known[-1][5:])
    after = (year + 1, 1) if month == 12 else (year, month + 1)
    until = f"{after[0]:04}-{after[1]:02}-01"
    return f"{known[0]}-01", None if day_number(until) is None else until
