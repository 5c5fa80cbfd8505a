"""The consent page's words: windows, counts, promises, ends, and masked sample values.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from personal_server.consent.offers import EntryOffer, StreamOffer, Ungrantable
from personal_server.consent.selections import SINGLE_USE, TimeRange
from personal_server.consent.terms import Missing
from personal_server.console.words import counted, day_of, day_of_text, field_words, shown, span_of
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.values import ValueKind, day_number, instant_ns
from personal_server.reading.preview import Evidence

CONTINUOUS_ENDS = (
    ("30d", "30 days"),
    ("90d", "90 days"),
    ("1y", "1 year"),
    ("none", "no end, until you end it"),
)
SINGLE_ENDS = (("1h", "1 hour"), ("24h", "24 hours"))
UNGRANTABLE = {
    "source_unknown": "This server keeps no such source.",
    "no_connection": "No account of this source is connected here.",
    "connection_unknown": "The account it names is not one that can be given.",
    "source_kind_mismatch": "The app asked for a source of another kind.",
    "unknown_stream": "The source has no such kind of records.",
    "unknown_view": "The source has no such view.",
    "unknown_field": "The source has no such field.",
    "unknown_preset": "The source has no such preset.",
    "unsupported_selection": "The source cannot be limited in the way the app asked.",
    "invalid_resource": "The app named records that cannot exist.",
    "invalid_limit": "The app named values that the records cannot have.",
}
HIDDEN = "•••"
_KEPT_CHARS = 2
_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?\Z"
)
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


def ends_of(mode: str) -> tuple[tuple[str, str], ...]:
    """The ends to choose from in a mode, with their words."""
    return SINGLE_ENDS if mode == SINGLE_USE else CONTINUOUS_ENDS


def source_name(offer: EntryOffer | Ungrantable) -> str:
    """The name of a source: its publisher's, or what the client called it."""
    if isinstance(offer, EntryOffer):
        return offer.declaration.display_name
    return offer.selection.source_id


def account_names(offer: EntryOffer) -> dict[str, str]:
    """What the connections of an offer are called, by id."""
    return {c.connection_id: c.display_name or c.connection_id for c in offer.connections}


def window(bound: TimeConstraint | None, stream: StreamOffer) -> str:
    """The time window in words of its field."""
    time_field = stream.stream.consent_time_field
    if time_field is None:
        return "Of any age: these records carry no time to limit them by."
    if bound is None:
        return "Of any age."
    name = field_words(bound.field)
    if bound.until_ns is None:
        return f"Only those “{name}” {day_of(bound.since_ns or 0)} or later."
    if bound.since_ns is None:
        return f"Only those “{name}” before {day_of(bound.until_ns)}."
    return f"Only those “{name}” from {day_of(bound.since_ns)} until {day_of(bound.until_ns)}."


def asked_window(asked: TimeRange | None) -> str:
    """What the app asked for, beside the controls that narrow it."""
    if asked is None:
        return "The app asked for records of any age."
    since = f" from {day_of(asked.since_ns)}" if asked.since_ns is not None else ""
    until = f" until {day_of(asked.until_ns)}" if asked.until_ns is not None else ""
    return f"The app asked for records{since}{until}."


def count(found: Iterable[Evidence]) -> str:
    """`412 records`, `at least 100 records`."""
    each = list(found)
    total = sum(evidence.count for evidence in each)
    if any(evidence.at_least for evidence in each):
        return f"at least {counted(total, 'record')}"
    return counted(total, "record")


def span(found: Iterable[Evidence]) -> str | None:
    """From the oldest record to the newest, if they carry dates."""
    each = list(found)
    earliest = min((evidence.earliest for evidence in each if evidence.earliest), default=None)
    latest = max((evidence.latest for evidence in each if evidence.latest), default=None)
    return None if earliest is None or latest is None else span_of(earliest, latest)


def retention(promised: Mapping[str, object] | None) -> str | None:
    """The promise about keeping data, in words."""
    if promised is None:
        return None
    duration = str(promised.get("max_duration", ""))
    then = "made anonymous" if promised.get("on_expiry") == "anonymize" else "deleted"
    return f"The app promises that after {duration_words(duration)} your data is {then}."


def duration_words(duration: str) -> str:
    """`P30D` → `30 days`; what is not understood stays as it is."""
    match = _DURATION.match(duration)
    parts = [
        counted(int(amount), unit)
        for amount, unit in zip(match.groups() if match else (), _UNITS, strict=False)
        if amount
    ]
    return " ".join(parts) or duration


def missing(found: Missing, offer: EntryOffer | None) -> str:
    """What must still be chosen."""
    source = "" if offer is None else f" of {offer.declaration.display_name}"
    match found.what:
        case "entry":
            return "Choose at least one source."
        case "stream":
            return f"Choose at least one kind of records{source}."
        case "connection":
            return f"Choose which accounts{source} the app may read."
        case _:
            return f"Choose at least one record{source}, or leave that kind out."


def mask(value: object, kind: ValueKind | None) -> str:
    """A value as a sample shows it: its kind can be recognised, the value not read.

    A string keeps two characters, a short one at most half; a number one leading digit, a time the
    date, anything nested its type only.
    Source: docs/contract/authorization-server.md 7.3.
    """
    match value:
        case None:
            return "empty"
        case bool():
            return "yes or no"
        case int() | float():
            return _number(value)
        case str():
            return _text(value, kind)
        case list():
            return "a list"
        case _:
            return "an object"


def _number(value: float) -> str:
    digit = next((character for character in str(value) if character in "123456789"), "0")
    return f"{'−' if value < 0 else ''}{digit}{HIDDEN}"


def _text(value: str, kind: ValueKind | None) -> str:
    timely = kind in (ValueKind.DATE, ValueKind.INSTANT)
    if timely and (instant_ns(value) is not None or day_number(value) is not None):
        return day_of_text(value)
    readable = shown(value, 80)
    if not readable:
        return "empty"
    return readable[: min(_KEPT_CHARS, len(readable) // 2)] + HIDDEN
