"""Comparable values: how stored JSON scalars are ordered, equal and bounded.

Rule: a stored value is never changed; it only gets a *comparable* beside it, the same on every
store.  Missing, `null` and unparsable values have none (`None`): they are null values.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

NANOSECONDS = 1_000_000_000
DAY_NANOSECONDS = 86_400 * NANOSECONDS
COMPARED_CODE_POINTS = 256
MAX_INTEGER = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})\Z"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
# Wide enough to add any doubles without rounding: 308 places before the point, 1,074 after it.
_WIDE = Context(prec=1_500)
Comparable = bool | int | float | str


class ValueKind(StrEnum):
    """How a scalar property is compared."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    STRING = "string"
    DATE = "date"
    INSTANT = "date-time"
    __hash__ = str.__hash__  # that of an enumeration is Python, and asked for with each value


TIMES = frozenset({ValueKind.DATE, ValueKind.INSTANT})
NUMBERS = frozenset({ValueKind.INTEGER, ValueKind.NUMBER})
SCALARS = frozenset(ValueKind)


def instant_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 date-time with offset, or `None`.

    Source: docs/contract/resource-server.md 2.8 ("instants compare as instants (nanoseconds)").
    """
    match = _INSTANT.match(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    offset = "+00:00" if offset in "Zz" else offset
    leap = clock.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock[:-2] + '59' if leap else clock}{offset}")
    except ValueError:
        return None
    delta = moment - _EPOCH
    seconds = delta.days * 86_400 + delta.seconds + leap
    return seconds * NANOSECONDS + int((fraction or "").ljust(9, "0"))


def instant_or_day_ns(text: str) -> int | None:
    """The same, where a calendar day stands for its start (UTC)."""
    day = day_number(text)
    return instant_ns(text) if day is None else day * DAY_NANOSECONDS


def day_number(text: str) -> int | None:
    """Days since 1970-01-01 of a `YYYY-MM-DD` calendar day, or `None`."""
    if _DATE.match(text) is None:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def comparable(value: object, kind: ValueKind) -> Comparable | None:
    """The value that stands for `value` in order and equality, or `None` for a null value.

    Shapes: instants are nanoseconds and dates days since 1970 (int); strings stay whole here,
        ordering looks at their first 256 code points only; the rest is itself.
    Source: docs/contract/resource-server.md 2.8.
    """
    kinds, convert = _COMPARABLE[kind]
    return convert(value) if type(value) in kinds else None


def _integral(value: int | float) -> Comparable:
    return int(value) if isinstance(value, float) and value.is_integer() else _number(value)


def _number(value: int | float) -> Comparable:
    """Not every database tells -0.0 from 0.0."""
    return value + 0.0 if isinstance(value, float) else value


def without_nul(text: str) -> str:
    """A text as it is compared: not every database holds U+0000, for which U+FFFD stands.

    Source: docs/contract/resource-server.md 2.8.
    """
    return text.replace("\0", "\ufffd") if "\0" in text else text


# The types of JSON that a kind has comparables of, and which.
_COMPARABLE: Mapping[ValueKind, tuple[Collection[type], Callable[[Any], Comparable | None]]] = {
    ValueKind.STRING: ((str,), without_nul),
    ValueKind.INSTANT: ((str,), instant_ns),
    ValueKind.DATE: ((str,), day_number),
    ValueKind.BOOLEAN: ((bool,), bool),
    ValueKind.INTEGER: ((int, float), _integral),
    ValueKind.NUMBER: ((int, float), _number),
}


def order_key(value: Comparable) -> Comparable:
    """The part of a comparable that takes part in ordering."""
    return value[:COMPARED_CODE_POINTS] if isinstance(value, str) else value


def bound(value: Comparable | None) -> Comparable | None:
    """A comparable as the database compares it; wide integers become doubles."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def event_instant_ns(value: object, kind: ValueKind) -> int | None:
    """The instant of a consent-time value: a date counts as 00:00:00Z of its day.

    Source: docs/contract/resource-server.md 4.3, `in_window`.
    """
    point = comparable(value, kind)
    if not isinstance(point, int) or isinstance(point, bool):
        return None
    return point * DAY_NANOSECONDS if kind is ValueKind.DATE else point


@lru_cache(maxsize=8_192)
def render_instant(ns: int) -> str:
    """RFC 3339, UTC, milliseconds, `Z` (rounded down).

    Source: docs/contract/resource-server.md 2.8.
    """
    moment = _EPOCH + timedelta(microseconds=ns // 1_000)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def instant_text(ns: int) -> str:
    """RFC 3339, UTC, `Z`: whole seconds stand without fraction, finer ones keep every digit.

    So a bound that is read back is the same bound.
    Source: docs/contract/authorization-server.md 0.
    """
    seconds, remainder = divmod(ns, NANOSECONDS)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{remainder:09d}".rstrip("0") if remainder else ""
    return f"{moment.replace(tzinfo=None).isoformat()}{fraction}Z"


def render_day(day: int) -> str:
    """`YYYY-MM-DD` of days since 1970-01-01: the one text that a calendar day has."""
    return date.fromordinal(day + _EPOCH_ORDINAL).isoformat()


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    """The decimal sum without rounding.

    Source: docs/contract/resource-server.md 10, "exact decimal arithmetic".
    """
    return reduce(_WIDE.add, values, Decimal(0))


def exact_number(value: float) -> Fraction:
    """A number as the decimal that was written down."""
    return Fraction(Decimal(repr(value)))


def percent_of(part: int, total: int) -> int:
    """Whole percent; not a hundred before the end."""
    return min(99, 100 * max(0, part) // max(1, total))


def render_number(value: Fraction) -> int | float:
    """An exact number as JSON: an integer where it is one, else the nearest double."""
    if value.denominator == 1 and abs(value) <= MAX_INTEGER:
        return int(value)
    largest = Fraction(sys.float_info.max)
    return float(max(-largest, min(largest, value)))


def render_sum(total: Decimal) -> int | float:
    """A sum as a JSON number: an integer where it is one, else the nearest double."""
    if total == total.to_integral_value(context=_WIDE) and abs(total) <= MAX_INTEGER:
        return int(total)
    return max(-sys.float_info.max, min(sys.float_info.max, float(total)))
