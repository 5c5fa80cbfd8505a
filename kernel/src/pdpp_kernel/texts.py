"""Texts before they have a language: messages, moments, counts.  Pure.

Rule: a view returns these, and a refusal may hold one; a page renders them once, for whoever reads
it (`console/languages.py`).  `str` of one is what stands in the source: English, times in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Self, Union, cast
from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.values import NANOSECONDS, day_number, instant_ns

LISTED = 5
EXACT = 10_000
_EPOCH = date(1970, 1, 1)


class CatalogueText(str):
    """The English of a text of the catalogue, which keeps what it was made of.

    Shapes: `text` has its `values` as `%(name)s`; `plural` is the English for several, where `num`
        of the values decides.
    """

    __slots__ = ("plural", "text", "values")
    text: str
    values: Mapping[str, Text]
    plural: str | None

    def __new__(
        cls, text: str, values: Mapping[str, Text] | None = None, plural: str | None = None
    ) -> Self:
        """What a wire says: the English, whole."""
        figures = values or {}
        is_one = plural is None or figures.get("num") == 1
        sentence = super().__new__(
            cls,
            (text if is_one else plural or "")
            % {name: figure(value) for name, value in figures.items()},
        )
        sentence.text, sentence.values, sentence.plural = text, figures, plural
        return sentence


class Minute(msgspec.Struct, frozen=True):
    """A moment, shown to the minute."""

    at_ns: int

    def __str__(self) -> str:
        return f"{Day(self.at_ns)}, {moment_of(self.at_ns):%H:%M} UTC"


class Day(msgspec.Struct, frozen=True):
    """A moment, shown as the day that it is where the reader lives."""

    at_ns: int

    def __str__(self) -> str:
        return str(Date(moment_of(self.at_ns).date()))


class Date(msgspec.Struct, frozen=True):
    """A day of the calendar, with its weekday or without; a month, a year or the weekday of it.

    Shapes: `unit` is day, named_day, month, year, short_day or short_month (their names alone).
    """

    day: date
    unit: str = "day"

    def __str__(self) -> str:
        forms = {"day": "%d %b %Y", "month": "%b %Y", "year": "%Y", "named_day": "%a %d %b %Y"}
        forms["short_day"] = "%a"
        forms["short_month"] = "%b"
        return self.day.strftime(forms[self.unit]).removeprefix("0")


class DaySpan(msgspec.Struct, frozen=True):
    """From one day to another; what both have in common is said once."""

    first: Day | Date
    last: Day | Date

    def __str__(self) -> str:
        first, last = str(self.first), str(self.last)
        if first == last:
            return first
        year = last[-5:]
        return f"{first.removesuffix(year)} – {last}"


class Size(msgspec.Struct, frozen=True):
    """So many bytes, in the unit that reads best."""

    size_bytes: int

    def __str__(self) -> str:
        amount, unit = scaled(self.size_bytes)
        return f"{amount:,.{self.decimals}f} {unit}"

    @property
    def decimals(self) -> int:
        """How many stand behind the point."""
        amount, unit = scaled(self.size_bytes)
        return 0 if unit == "B" or (amount >= 100 and unit != "GB") else 1


class Joined(msgspec.Struct, frozen=True):
    """Texts in a row."""

    parts: tuple[Text, ...]
    glue: str = ", "

    def __str__(self) -> str:
        return self.glue.join(figure(part) for part in self.parts)


Text = Union[str, int, CatalogueText, Minute, Day, Date, DaySpan, Size, Joined]  # noqa: UP007 (named before it is whole)
"""What a page can say.  A plain string is data: a name, a value of a record."""
RENDERED = (CatalogueText, Minute, Day, Date, DaySpan, Size, Joined)


def message(text: str, /, **values: Text) -> CatalogueText:
    """A text of the catalogue; the extraction finds it by this name."""
    return CatalogueText(text, values)


def text_of(sentence: str) -> CatalogueText:
    """A sentence of ours as a text; one without values needs no mark where it is written."""
    if isinstance(sentence, CatalogueText):
        return sentence
    return CatalogueText(sentence.replace("%", "%%"))


def render_text(text: str) -> object:
    """A text as JSON, with what it was made of; other words as they are."""
    if not isinstance(text, CatalogueText):
        return text
    values = {
        name: value if isinstance(value, int) else render_text(value)
        for name, value in text.values.items()
        if isinstance(value, (int, str))
    }
    return [text.text, values, text.plural]


def parse_text(value: Any) -> str:
    """The text that `render_text` rendered: the inverse."""
    if not isinstance(value, list):
        return str(value)
    text, values, several = cast("tuple[str, dict[str, Any], str | None]", value)
    parts = {n: v if isinstance(v, int) else parse_text(v) for n, v in values.items()}
    return CatalogueText(text, parts, several)


def plural(one: str, many: str, num: int, /, **values: Text) -> CatalogueText:
    """A text that counts something, by `%(num)s`; the extraction finds it by this name."""
    return CatalogueText(one, {"num": num, **values}, many)


def counted(num: int, one: str, many: str | None = None) -> CatalogueText:
    """`1 record`, `2,000 records`; the extraction finds it by this name."""
    single, several = counted_texts(one, many)
    return CatalogueText(single, {"num": num}, several)


def counted_texts(one: str, many: str | None = None) -> tuple[str, str]:
    """The two texts that `counted` has in the catalogue."""
    return f"%(num)s {one}", f"%(num)s {many or one + 's'}"


def bounded(value: int) -> Text:
    """A count that is told exactly up to a point: `9,999`, `10,000+`."""
    return value if value <= EXACT else Joined((EXACT, "+"), "")


def listed(names: Iterable[Text]) -> Text:
    """A few names, and how many more: `a, b, c, d, e and 2 more`; a single one more is named."""
    shown_names = tuple(names)
    if len(shown_names) <= LISTED + 1:
        return Joined(shown_names)
    few = Joined(shown_names[:LISTED])
    return message("%(names)s and %(num)s more", names=few, num=len(shown_names) - LISTED)


def day_of_text(text: str) -> Text:
    """The day of a stored time or date; other text as it is."""
    day = day_number(text)
    if day is not None:
        return date_of(day)
    at_ns = instant_ns(text)
    return text if at_ns is None else Day(at_ns)


def span_of_texts(first: str, last: str) -> Text:
    """From one stored time or date to another; other text as it is."""
    ends = (day_of_text(first), day_of_text(last))
    match ends:
        case (Day() | Date(), Day() | Date()):
            return DaySpan(*ends)
        case _:
            return Joined(tuple(dict.fromkeys(ends)), " – ")


def date_of(day: int) -> Date:
    """A day counted from 1970."""
    return Date(_EPOCH + timedelta(days=day))


def start_of_day(day: int, zone: ZoneInfo) -> int:
    """When a day begins in a zone; where clocks skip midnight, with the first minute after."""
    begun = datetime.combine(_EPOCH + timedelta(days=day), time(), zone)
    return int(begun.timestamp()) * NANOSECONDS


def moment_of(at_ns: int) -> datetime:
    """A moment in UTC."""
    return datetime.fromtimestamp(at_ns // NANOSECONDS, UTC)


def local_moment(at_ns: int, zone: tzinfo) -> datetime:
    """A moment in a zone; in UTC where it lies so near an end of the calendar that the zone's
    clocks would leave it.
    """
    moment = moment_of(at_ns)
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def scaled(size_bytes: int) -> tuple[float, str]:
    """Bytes in the unit that reads best."""
    amount = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if amount < 1_000:
            return amount, unit
        amount /= 1_000
    return amount, "GB"


def figure(value: Text) -> str:
    """A value in the English of the source."""
    return f"{value:,}" if isinstance(value, int) else str(value)
