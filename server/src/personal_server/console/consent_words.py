"""The consent page's words: windows, counts, promises, ends, and masked sample values.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails
from pdpp_kernel.texts import (
    CatalogueText,
    Joined,
    Minute,
    Text,
    counted,
    date_of,
    day_of_text,
    message,
    span_of_texts,
)
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, day_number, instant_ns
from personal_server.consent.offers import EntryOffer, StreamOffer, Ungrantable
from personal_server.consent.selections import SINGLE_USE, TimeRange
from personal_server.consent.terms import Missing
from personal_server.console.words import declared_name, field_words, shown
from personal_server.domain.authority import TimeConstraint
from personal_server.reading.preview import Evidence

CONTINUOUS_ENDS: tuple[tuple[str, Text], ...] = (
    ("30d", counted(30, "day")),
    ("90d", counted(90, "day")),
    ("1y", counted(1, "year")),
    ("none", message("no end date, until you end it")),
)
SINGLE_ENDS: tuple[tuple[str, Text], ...] = (
    ("1h", counted(1, "hour")),
    ("24h", counted(24, "hour")),
)
_UNGRANTABLE: Mapping[str, Text] = {
    "source_unknown": message("This server has no such source."),
    "no_connection": message("This server has no account of this source."),
    "connection_unknown": message("The account that the app named cannot be shared."),
    "source_kind_mismatch": message("The app asked for a different kind of source."),
    "unknown_stream": message("The source does not have this kind of records."),
    "unknown_view": message("The source does not have this set of fields."),
    "unknown_field": message("The source does not have this field."),
    "unknown_preset": message("The source does not have this preset."),
    "unsupported_selection": message("The source cannot be limited in the way the app asked."),
    "invalid_resource": message("The app named records that cannot exist."),
    "invalid_limit": message("The app named values that the records cannot have."),
}
HIDDEN = "•••"
_KEPT_CHARS = 2
_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?\Z"
)
_UNITS: tuple[CatalogueText, ...] = (
    counted(0, "year"),
    counted(0, "month"),
    counted(0, "week"),
    counted(0, "day"),
    counted(0, "hour"),
    counted(0, "minute"),
    counted(0, "second"),
)


def ends_of(mode: str) -> tuple[tuple[str, Text], ...]:
    """The ends to choose from in a mode, with their words."""
    return SINGLE_ENDS if mode == SINGLE_USE else CONTINUOUS_ENDS


def ungrantable(refusal: InvalidAuthorizationDetails) -> Text:
    """Why something cannot be given."""
    return _UNGRANTABLE.get(refusal.reason or "", message("This source cannot be shared."))


def source_name(offer: EntryOffer | Ungrantable) -> str:
    """The name of a source: its publisher's, or what the client called it."""
    if isinstance(offer, EntryOffer):
        return declared_name(offer.declaration.display_name)
    return offer.selection.source_id


def account_names(offer: EntryOffer) -> dict[str, str]:
    """What the connections of an offer are called, by id."""
    return {c.connection_id: c.display_name or c.connection_id for c in offer.connections}


def window(bound: TimeConstraint | None, stream: StreamOffer) -> Text:
    """The time window in words of its field."""
    time_field = stream.stream.consent_time_field
    if time_field is None:
        return message("Shares records of any age: these records have no date to limit them by.")
    if bound is None:
        return message("Shares records of any age.")
    field = field_words(bound.field)
    since, until = (_bound(bound.since_ns or 0), _bound(bound.until_ns or 0))
    if bound.until_ns is None:
        return message(
            "Only records with “%(field)s” on %(since)s or later.", field=field, since=since
        )
    if bound.since_ns is None:
        return message("Only records with “%(field)s” before %(until)s.", field=field, until=until)
    return message(
        "Only records with “%(field)s” from %(since)s until %(until)s.",
        field=field,
        since=since,
        until=until,
    )


def asked_window(time_range: TimeRange | None) -> Text:
    """What the app asked for, beside the controls that narrow it."""
    if time_range is None:
        return message("The app asked for records of any age.")
    since, until = (_bound(time_range.since_ns or 0), _bound(time_range.until_ns or 0))
    if time_range.until_ns is None:
        return message("The app asked for records from %(since)s.", since=since)
    if time_range.since_ns is None:
        return message("The app asked for records until %(until)s.", until=until)
    return message(
        "The app asked for records from %(since)s until %(until)s.", since=since, until=until
    )


def _bound(ns: int) -> Text:
    """A day is a bound by the calendar of UTC, and so the same for every reader."""
    return date_of(ns // DAY_NANOSECONDS) if ns % DAY_NANOSECONDS == 0 else Minute(ns)


def count(evidences: Iterable[Evidence]) -> Text:
    """`412 records`, `at least 100 records`."""
    items = list(evidences)
    total = counted(sum(evidence.count for evidence in items), "record")
    if any(evidence.at_least for evidence in items):
        return message("at least %(records)s", records=total)
    return total


def span(evidences: Iterable[Evidence]) -> Text | None:
    """From the oldest record to the newest, if they carry dates."""
    items = list(evidences)
    earliest = min((evidence.earliest for evidence in items if evidence.earliest), default=None)
    latest = max((evidence.latest for evidence in items if evidence.latest), default=None)
    if earliest is None or latest is None:
        return None
    return span_of_texts(shown(earliest, 40), shown(latest, 40))


def retention(promised: Mapping[str, object] | None) -> Text | None:
    """The promise about keeping data, in words."""
    if promised is None:
        return None
    duration = duration_words(str(promised.get("max_duration", "")))
    if promised.get("on_expiry") == "anonymize":
        return message(
            "The app promises that after %(duration)s your data is made anonymous.",
            duration=duration,
        )
    return message(
        "The app promises that after %(duration)s your data is deleted.", duration=duration
    )


def duration_words(duration: str) -> Text:
    """`P30D` → `30 days`; what is not understood stays as it is."""
    match = _DURATION.match(duration)
    parts = [
        CatalogueText(unit.text, {"num": int(amount)}, unit.plural)
        for amount, unit in zip(match.groups() if match else (), _UNITS, strict=False)
        if amount
    ]
    return Joined(tuple(parts), " ") if parts else shown(duration, 80)


def missing(entry: Missing, offer: EntryOffer | None) -> Text:
    """What must still be chosen."""
    source = "" if offer is None else declared_name(offer.declaration.display_name)
    match entry.what:
        case "entry":
            return message("Choose at least one source.")
        case "stream":
            return message("Choose at least one kind of records of %(source)s.", source=source)
        case "connection":
            return message("Choose which accounts of %(source)s the app may read.", source=source)
        case _:
            return message(
                ("Choose at least one record of %(source)s, or leave that kind of records out."),
                source=source,
            )


def mask(value: object, kind: ValueKind | None) -> Text:
    """A value as a sample shows it: its kind can be recognised, the value not read.

    A string keeps two characters, a short one at most half; a number one leading digit, a time the
    date, anything nested its type only.
    Source: docs/contract/authorization-server.md 7.3.
    """
    match value:
        case None:
            return message("empty")
        case bool():
            return message("yes or no")
        case int() | float():
            return _number(value)
        case str():
            return _text(value, kind)
        case list():
            return message("a list")
        case _:
            return message("a JSON object")


def _number(value: float) -> str:
    digit = next((character for character in str(value) if character in "123456789"), "0")
    return f"{'−' if value < 0 else ''}{digit}{HIDDEN}"


def _text(value: str, kind: ValueKind | None) -> Text:
    timely = kind in (ValueKind.DATE, ValueKind.INSTANT)
    if timely and (instant_ns(value) is not None or day_number(value) is not None):
        return day_of_text(value)
    readable = shown(value, 80)
    if not readable:
        return message("empty")
    return readable[: min(_KEPT_CHARS, len(readable) // 2)] + HIDDEN
