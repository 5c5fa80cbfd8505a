"""The consent page's sentences: purposes, promises, windows, ends, differences.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import urlsplit

from personal_server.consent.narrowing import Missing
from personal_server.consent.resolution import EntryOffer, StreamOffer
from personal_server.console.words import counted, day_of, field_words, number
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.selection import TimeRange
from personal_server.operations.evidence import Evidence

_TRUST = {
    "pre_registered": ("good", "Set up on this server"),
    "client_id_metadata_document": ("good", "Domain {host} checked"),
    "dynamic": ("warn", "Unverified app"),
    "local": ("good", "Created on this computer"),
}
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
}
_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?\Z"
)
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


def trust_mark(registration: str | None, client_id: str) -> tuple[str, str]:
    """How far an app is known: the look of the mark, and its words.  Source: AS contract 3."""
    look, said = _TRUST.get(registration or "", ("warn", "Unverified app"))
    return look, said.format(host=urlsplit(client_id).hostname or "")


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


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """What changed between two review artifacts, in words."""
    said: list[str] = []
    if before.get("client") != after.get("client"):
        said.append("What is known of the app changed.")
    if before.get("access_mode") != after.get("access_mode"):
        once = after.get("access_mode") == "single_use"
        said.append(f"Access is now {'for one use' if once else 'standing'}.")
    if before.get("expires_at") != after.get("expires_at"):
        end = after.get("expires_at")
        said.append(
            "Access now has no end." if end is None else f"Access now ends {str(end)[:10]}."
        )
    if before.get("ends") != after.get("ends"):
        said.append("What ends on approval changed.")
    old, new = _streams(before), _streams(after)
    said += [f"Added: {_place(place)}." for place in new.keys() - old.keys()]
    said += [f"Left out: {_place(place)}." for place in old.keys() - new.keys()]
    for place in old.keys() & new.keys():
        said += _stream_differences(place, old[place], new[place])
    return said


def changed_streams(
    before: Mapping[str, object], after: Mapping[str, object]
) -> frozenset[tuple[str, str]]:
    """The (source id, stream) pairs that differ, to be marked."""
    old, new = _streams(before), _streams(after)
    return frozenset(place for place, stream in new.items() if old.get(place) != stream)


def _stream_differences(
    place: tuple[str, str], old: Mapping[str, object], new: Mapping[str, object]
) -> list[str]:
    said: list[str] = []
    for member, label in (("fields", "field"), ("instance_ids", "account")):
        before, after = _names(old, member), _names(new, member)
        if len(before) != len(after) or before != after:
            said.append(
                f"{_place(place)}: {counted(len(after), label)}, before {number(len(before))}."
            )
    if old.get("time_constraint") != new.get("time_constraint"):
        said.append(f"{_place(place)}: another time window.")
    if old.get("resources") != new.get("resources"):
        said.append(f"{_place(place)}: other named records.")
    return said


def _names(stream: Mapping[str, object], member: str) -> set[str]:
    return set(cast("list[str]", stream.get(member) or []))


def _place(place: tuple[str, str]) -> str:
    return f"{place[1]} of {place[0].rstrip('/').rsplit('/', 1)[-1]}"


def _streams(artifact: Mapping[str, object]) -> dict[tuple[str, str], Mapping[str, object]]:
    sources = cast("list[dict[str, object]]", artifact.get("sources") or [])
    return {
        (_source_id(source), str(stream["name"])): stream
        for source in sources
        for stream in cast("list[dict[str, object]]", source["streams"])
    }


def _source_id(source: Mapping[str, object]) -> str:
    return str(cast("Mapping[str, object]", source["source"])["id"])
