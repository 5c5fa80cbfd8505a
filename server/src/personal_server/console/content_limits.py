"""Content limits in the console: the box in which the owner picks values, and what is said of them.

Rule: what was ticked or typed stands in the form again, and values are shown as the records hold
them; `consent/terms.py` judges both.
Source: docs/contract/authorization-server.md 6.1, docs/contract/resource-server.md 4.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.texts import Joined, Text, message
from pdpp_kernel.values import ValueKind
from personal_server.consent.choices import StreamChoice
from personal_server.consent.offers import StreamOffer
from personal_server.console.words import field_words
from personal_server.domain.grant import ContentLimit, value_text
from personal_server.reading.preview import HeldValue

SAID_VALUES = 5
# A record may hold a megabyte in a field; what is longer cannot be limited by.
VALUE_CHARS = 80


class TickedValue(msgspec.Struct, frozen=True):
    """A value with its box; `count` is how many records have it, where that was counted."""

    text: str
    count: int | None
    chosen: bool


class LimitView(msgspec.Struct, frozen=True):
    """One field that a kind of record can be limited by.

    Shapes: `name` is `{entry}.{stream}/{field}` of its form fields; `others` are values that were
        typed, one a line; `asked` is a limit of the request, of which fewer values may be kept.
    """

    name: str
    field: str
    words: str
    values: tuple[TickedValue, ...]
    others: str
    asked: bool

    @property
    def is_set(self) -> bool:
        """Whether something is chosen."""
        return bool(self.others) or any(value.chosen for value in self.values)


def limit_views(
    offer: StreamOffer,
    choice: StreamChoice,
    prefix: str,
    held_values: Mapping[str, Sequence[HeldValue]],
) -> tuple[LimitView, ...]:
    """The boxes of a kind of record, in the order of its fields."""
    by_field = {limit.field: limit for limit in offer.only}
    return tuple(
        _box(field, by_field.get(field), choice.only.get(field), prefix, held_values.get(field, ()))
        for field in offer.stream.limiting
        if field in by_field or field in choice.only or not _is_measure(offer.stream, field)
    )


def _is_measure(stream: Stream, field: str) -> bool:
    """Whether a number says how much, and not which."""
    figures = stream.aggregations
    return stream.properties[field].kind is ValueKind.INTEGER and (
        field in stream.range_filters or field in (*figures.sum, *figures.min, *figures.max)
    )


def _box(
    field: str,
    limit: ContentLimit | None,
    chosen: Sequence[str] | None,
    prefix: str,
    held_values: Sequence[HeldValue],
) -> LimitView:
    counts = {value_text(held_value.value): held_value.count for held_value in held_values}
    values = list(counts) if limit is None else [value_text(value) for value in limit.values]
    ticked = values if limit is not None and chosen is None else chosen or ()
    return LimitView(
        name=f"{prefix}/{quote(field, safe='')}",
        field=field,
        words=field_words(field),
        values=tuple(TickedValue(text, counts.get(text), text in ticked) for text in values),
        others="\n".join(text for text in chosen or () if text not in values),
        asked=limit is not None,
    )


def limits_said(limits: Iterable[ContentLimit]) -> tuple[Text, ...]:
    """Each limit in words; of many values the first few."""
    return tuple(
        message("only %(field)s: %(values)s", field=field_words(limit.field), values=_said(limit))
        for limit in limits
    )


def _said(limit: ContentLimit) -> Text:
    texts = [value_text(value)[:VALUE_CHARS] or message("(empty)") for value in limit.values]
    few, more = Joined(tuple(texts[:SAID_VALUES])), len(texts) - SAID_VALUES
    return few if more <= 0 else message("%(names)s and %(num)s more", names=few, num=more)
