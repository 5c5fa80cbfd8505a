"""From `authorization_details` to selections, or the reason why not.

Rule: only the *shape* is judged here, without knowledge of any source, so that no error tells a
client what a person keeps.  Closed objects at every level.
Source: docs/contract/authorization-server.md 4.1, 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from personal_server.domain.declaration_document import ABSOLUTE_URI
from personal_server.domain.grant import bound_ns
from personal_server.domain.json_shapes import Shaped, ShapeFault
from personal_server.errors import InvalidAuthorizationDetails

# Selection requests: what a client asks for, as values.
#
# Rule: a selection says what is wanted, never what is allowed; only resolution against accepted
# declarations and the owner's decision make a grant of it.
# Source: docs/contract/authorization-server.md 4.1.


DATA_ACCESS = "https://pdpp.dev/data-access"
AGENT_CONTEXT = "https://pdpp.dev/purpose/agent_context"
AI_TRAINING = "https://pdpp.dev/purpose/ai_training"
SINGLE_USE, CONTINUOUS = "single_use", "continuous"
ALL_STREAMS = "*"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Wanted bounds: since inclusive, until exclusive, nanoseconds UTC; at least one."""

    since_ns: int | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class StreamSelection:
    """One wanted stream; `None` means not limited by the client."""

    name: str
    required: bool = True
    instance_ids: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    view: str | None = None
    time_range: TimeRange | None = None
    resources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """One entry of a request: streams of one source, for one purpose.

    Shapes: exactly one of `streams` (non-empty) and `selection_preset`; `retention` as agreed;
        `commitments` are the client's own words and appear in no grant.
    """

    source_id: str
    purpose_code: str
    access_mode: str
    source_kind: str | None = None
    purpose_description: str | None = None
    retention: Mapping[str, object] | None = None
    commitments: tuple[str, ...] | None = None
    selection_preset: str | None = None
    streams: tuple[StreamSelection, ...] = ()


MAX_ENTRIES = 16
MAX_PICKED = 1_000
MAX_BYTES = 64 * 1024
MAX_URI = 2_048
STREAM_MEMBERS = frozenset(
    {"necessity", "instance_ids", "fields", "view", "time_range", "resources"}
)
_DURATION = re.compile(
    r"P(?=\d|T\d)(\d{1,6}Y)?(\d{1,6}M)?(\d{1,6}W)?(\d{1,6}D)?"
    r"(T(?=\d)(\d{1,9}H)?(\d{1,9}M)?(\d{1,9}S)?)?"
)


def parse_selections(content: str | Sequence[object]) -> tuple[Selection, ...]:
    """The entries of a request, from JSON text or its parsed form.

    Raises: InvalidAuthorizationDetails, with `reason` and `param` (a JSON pointer).
    """
    try:
        return _selections(_document(content), MAX_ENTRIES)
    except ShapeFault as fault:
        raise InvalidAuthorizationDetails(
            fault.sentence, param=fault.pointer or None, reason=fault.reason
        ) from None


def parse_stored(details: Sequence[object]) -> tuple[Selection, ...]:
    """The entries of a request that was accepted; a picker's may be many."""
    return _selections(list(details), MAX_PICKED)


def _selections(document: object, most: int) -> tuple[Selection, ...]:
    selections = tuple(_entry(entry) for entry in Shaped(document, "").items(1, most))
    _fit_together(selections)
    return selections


def parse_stream_selection(entry: Shaped) -> StreamSelection:
    """One wanted stream."""
    entry.close(
        {"name"}, {"necessity", "instance_ids", "fields", "view", "time_range", "resources"}
    )
    if entry.has("fields") and entry.has("view"):
        raise entry.fault("exclusive_members", "Name fields or a view, not both.")
    return StreamSelection(
        name=entry["name"].text(128),
        required=not entry.has("necessity")
        or entry["necessity"].choice("required", "optional") == "required",
        instance_ids=entry["instance_ids"].texts(50) if entry.has("instance_ids") else None,
        fields=entry["fields"].texts(500) if entry.has("fields") else None,
        view=entry["view"].text(200) if entry.has("view") else None,
        time_range=_time_range(entry["time_range"]) if entry.has("time_range") else None,
        resources=entry["resources"].texts(1_000, 4_096) if entry.has("resources") else None,
    )


def _document(content: str | Sequence[object]) -> object:
    try:
        text = content.encode() if isinstance(content, str) else orjson.dumps(content)
        if len(text) > MAX_BYTES:
            raise ShapeFault("", "malformed", "The authorization details are too large.")
        return orjson.loads(text)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, UnicodeEncodeError, TypeError):
        raise ShapeFault("", "malformed", "The authorization details are not JSON.") from None


def _entry(entry: Shaped) -> Selection:
    _check_type(entry)
    entry.close(
        {"type", "source", "purpose_code", "access_mode"},
        {"purpose_description", "retention", "client_claims", "selection_preset", "streams"},
    )
    if entry.has("streams") == entry.has("selection_preset"):
        raise entry.fault("exclusive_members", "Name streams or a selection preset, one of them.")
    source = entry["source"]
    source.close({"id"}, {"kind"})
    return Selection(
        source_id=_uri(source["id"]),
        source_kind=source["kind"].choice("connector", "provider_native")
        if source.has("kind")
        else None,
        purpose_code=_uri(entry["purpose_code"]),
        purpose_description=entry["purpose_description"].text(1_000)
        if entry.has("purpose_description")
        else None,
        access_mode=entry["access_mode"].choice(SINGLE_USE, CONTINUOUS),
        retention=_retention(entry["retention"]) if entry.has("retention") else None,
        commitments=_commitments(entry["client_claims"]) if entry.has("client_claims") else None,
        selection_preset=entry["selection_preset"].text(128)
        if entry.has("selection_preset")
        else None,
        streams=_streams(entry["streams"]) if entry.has("streams") else (),
    )


def _check_type(entry: Shaped) -> None:
    entry.members()
    if entry.has("type") and entry["type"].text(MAX_URI) != DATA_ACCESS:
        raise entry["type"].fault("unsupported_type", f"The only type here is {DATA_ACCESS}.")


def _uri(found: Shaped) -> str:
    text = found.text(MAX_URI)
    if ABSOLUTE_URI.fullmatch(text) is None:
        raise found.fault("not_a_uri", "An absolute URI is needed here.")
    return text


def _streams(found: Shaped) -> tuple[StreamSelection, ...]:
    streams = tuple(parse_stream_selection(item) for item in found.items(1, 100))
    names = [stream.name for stream in streams]
    if ALL_STREAMS in names and len(names) > 1:
        raise found.fault("wildcard_not_alone", "The wildcard * stands alone.")
    if len(set(names)) != len(names):
        raise found.fault("duplicate_stream", "A stream is named twice.")
    return streams


def _time_range(found: Shaped) -> TimeRange:
    found.close(set(), {"since", "until"})
    since = _bound(found, "since")
    until = _bound(found, "until")
    if since is None and until is None:
        raise found.fault("invalid_time_range", "A time range needs since or until.")
    if since is not None and until is not None and since >= until:
        raise found.fault("invalid_time_range", "A time range ends after it begins.")
    return TimeRange(since, until)


def _bound(found: Shaped, name: str) -> int | None:
    if not found.has(name):
        return None
    bound = bound_ns(found[name].text(64))
    if bound is None:
        raise found.fault("invalid_time_range", "A time needs an offset, or is a day YYYY-MM-DD.")
    return bound


def _retention(found: Shaped) -> dict[str, object]:
    found.close({"max_duration", "on_expiry"}, set())
    duration = found["max_duration"].text(64)
    if _DURATION.fullmatch(duration) is None:
        raise found["max_duration"].fault("invalid_retention", "Not an ISO 8601 duration.")
    on_expiry = found["on_expiry"].choice("delete", "anonymize")
    return {"max_duration": duration, "on_expiry": on_expiry}


def _commitments(found: Shaped) -> tuple[str, ...]:
    found.close({"commitments"}, set())
    return found["commitments"].texts(10, 500)


def _fit_together(selections: tuple[Selection, ...]) -> None:
    def fault(reason: str, sentence: str) -> ShapeFault:
        return ShapeFault("", reason, sentence)

    if len({selection.access_mode for selection in selections}) > 1:
        raise fault("mixed_access_mode", "All entries have one access mode.")
    if len({selection.source_id for selection in selections}) != len(selections):
        raise fault("duplicate_source", "Each source stands in one entry.")
    trains = any(selection.purpose_code == AI_TRAINING for selection in selections)
    if trains and len(selections) > 1:
        raise fault("ai_training_not_alone", "Training is asked for alone.")
