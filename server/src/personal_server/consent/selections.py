"""Selections: what a client asks for, and how its `authorization_details` are read.

Rule: a selection says what is wanted, never what is allowed.  Only the *shape* is judged here,
without knowledge of any source, so that no error tells a client what a person keeps; closed
objects at every level.
Source: docs/contract/authorization-server.md 4.1, 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import orjson

from pdpp_kernel.json_shapes import MALFORMED, FirstFault, Members, ShapeFault, items_at, text_at
from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails
from personal_server.domain.declaration_document import ABSOLUTE_URI, SOURCE_KINDS
from personal_server.domain.grant import (
    MOST_LIMITS,
    MOST_VALUES,
    VALUE_CHARS,
    ContentLimit,
    bound_ns,
    is_limit_value,
)

DATA_ACCESS = "https://pdpp.dev/data-access"
AGENT_CONTEXT = "https://pdpp.dev/purpose/agent_context"
AI_TRAINING = "https://pdpp.dev/purpose/ai_training"
SINGLE_USE, CONTINUOUS = "single_use", "continuous"
ALL_STREAMS = "*"
MAX_ENTRIES = 16
MAX_PICKED = 1_000
MAX_BYTES = 64 * 1024
MAX_URI = 2_048
_DURATION = re.compile(
    r"P(?=\d|T\d)(\d{1,6}Y)?(\d{1,6}M)?(\d{1,6}W)?(\d{1,6}D)?"
    r"(T(?=\d)(\d{1,9}H)?(\d{1,9}M)?(\d{1,9}S)?)?"
)


class TimeRange(msgspec.Struct, frozen=True):
    """Wanted bounds: since inclusive, until exclusive, nanoseconds UTC; at least one."""

    since_ns: int | None = None
    until_ns: int | None = None


class StreamSelection(msgspec.Struct, frozen=True):
    """One wanted stream; `None` means not limited by the client."""

    name: str
    required: bool = True
    instance_ids: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    view: str | None = None
    time_range: TimeRange | None = None
    resources: tuple[str, ...] | None = None
    only: tuple[ContentLimit, ...] = ()


class Selection(msgspec.Struct, frozen=True):
    """One entry of a request: streams of one source, for one purpose.

    Shapes: exactly one of `streams` (non-empty) and `selection_preset`; `retention` as agreed;
        `commitments` are the client's own words and appear in no grant; `events` is whether it
        asks to be told when something changes.
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
    events: bool = False


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


def parse_streams(value: object, path: str = "") -> tuple[StreamSelection, ...]:
    """The streams of an entry or of a declared preset.  Raises: ShapeFault."""
    return tuple(_stream(item) for item in _objects(value, path, 100))


def _document(content: str | Sequence[object]) -> object:
    try:
        text = content.encode() if isinstance(content, str) else orjson.dumps(content)
        if len(text) > MAX_BYTES:
            raise ShapeFault("", MALFORMED, "The authorization details are too large.")
        return orjson.loads(text)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, UnicodeEncodeError, TypeError):
        raise ShapeFault("", MALFORMED, "The authorization details are not JSON.") from None


def _selections(document: object, most: int) -> tuple[Selection, ...]:
    selections = tuple(_entry(entry) for entry in _objects(document, "", most))
    _fit_together(selections)
    return selections


def _entry(entry: Members) -> Selection:
    if entry.has("type") and entry.text("type", limit=MAX_URI) != DATA_ACCESS:
        entry.fault("type", f"The only supported type is {DATA_ACCESS}.", "unsupported_type")
    entry.only(
        ("type", "source", "purpose_code", "access_mode"),
        (
            "purpose_description",
            "retention",
            "client_claims",
            "selection_preset",
            "streams",
            "events",
        ),
    )
    if entry.has("streams") == entry.has("selection_preset"):
        entry.fault("", "Name either streams or a selection preset.", "exclusive_members")
    source = entry.object("source")
    source.only(["id"], ["kind"])
    return Selection(
        source_id=_uri(source, "id"),
        source_kind=source.choice("kind", SOURCE_KINDS) or None,
        purpose_code=_uri(entry, "purpose_code"),
        purpose_description=entry.text("purpose_description", limit=1_000) or None,
        access_mode=entry.choice("access_mode", (SINGLE_USE, CONTINUOUS)),
        retention=_retention(entry.object("retention")),
        commitments=_commitments(entry.object("client_claims")),
        selection_preset=entry.text("selection_preset", limit=128) or None,
        streams=_streams(entry),
        events=entry.flag("events"),
    )


def _uri(members: Members, name: str) -> str:
    text = members.text(name, limit=MAX_URI)
    if ABSOLUTE_URI.fullmatch(text) is None:
        members.fault(name, "The value must be an absolute URI.", "not_a_uri")
    return text


def _streams(entry: Members) -> tuple[StreamSelection, ...]:
    if not entry.has("streams"):
        return ()
    streams = parse_streams(entry.raw["streams"], f"{entry.path}/streams")
    names = [stream.name for stream in streams]
    if ALL_STREAMS in names and len(names) > 1:
        entry.fault(
            "streams", "The wildcard * cannot be combined with names.", "wildcard_not_alone"
        )
    if len(set(names)) != len(names):
        entry.fault("streams", "The request names a stream twice.", "duplicate_stream")
    return streams


def _stream(stream: Members) -> StreamSelection:
    narrowing = ["instance_ids", "fields", "view", "time_range", "resources", "only"]
    stream.only(["name"], ["necessity", *narrowing])
    if stream.has("fields") and stream.has("view"):
        stream.fault("", "Name either fields or a view, not both.", "exclusive_members")
    return StreamSelection(
        name=stream.text("name", limit=128),
        required=stream.choice("necessity", ("required", "optional")) != "optional",
        instance_ids=_texts(stream, "instance_ids", 50),
        fields=_texts(stream, "fields", 500),
        view=stream.text("view", limit=200) or None,
        time_range=_time_range(stream.object("time_range")),
        resources=_texts(stream, "resources", 1_000, 4_096),
        only=_limits(stream),
    )


def _limits(stream: Members) -> tuple[ContentLimit, ...]:
    """The limits by content: for each field the values that records may have."""
    if not stream.has("only"):
        return ()
    members = stream.object("only")
    if not 1 <= len(members.raw) <= MOST_LIMITS:
        stream.fault("only", f"Name 1 to {MOST_LIMITS} fields.")
    return tuple(_limit(members, name) for name in members.raw)


def _limit(members: Members, name: str) -> ContentLimit:
    path = f"{members.path}/{name}"
    items = _counted(members.raw[name], path, MOST_VALUES)
    values = [value for _, value in items if isinstance(value, str | int)]
    if len(values) < len(items) or not all(map(is_limit_value, values)):
        sentence = (
            f"Values must be texts of up to {VALUE_CHARS} characters, whole numbers or booleans."
        )
        raise ShapeFault(path, MALFORMED, sentence)
    if not name or len({(type(value), value) for value in values}) < len(values):
        raise ShapeFault(path, MALFORMED, "The request contains a value twice.")
    return ContentLimit(name, tuple(values))


def _time_range(members: Members) -> TimeRange | None:
    if not members.present:
        return None
    members.only((), ["since", "until"])
    since = _bound(members, "since")
    until = _bound(members, "until")
    if since is None and until is None:
        members.fault("", "A time range needs since or until.", "invalid_time_range")
    if since is not None and until is not None and since >= until:
        members.fault("", "The time range does not end after its start.", "invalid_time_range")
    return TimeRange(since, until)


def _bound(members: Members, name: str) -> int | None:
    text = members.text(name, limit=64)
    bound = bound_ns(text) if text else None
    if text and bound is None:
        sentence = "Write the time with an offset, or as a day YYYY-MM-DD."
        members.fault("", sentence, "invalid_time_range")
    return bound


def _retention(members: Members) -> dict[str, object] | None:
    if not members.present:
        return None
    members.only(["max_duration", "on_expiry"])
    duration = members.text("max_duration", limit=64)
    if _DURATION.fullmatch(duration) is None:
        members.fault("max_duration", "The value is not an ISO 8601 duration.", "invalid_retention")
    on_expiry = members.choice("on_expiry", ("delete", "anonymize"))
    return {"max_duration": duration, "on_expiry": on_expiry}


def _commitments(members: Members) -> tuple[str, ...] | None:
    if not members.present:
        return None
    members.only(["commitments"])
    return _texts(members, "commitments", 10, 500)


def _texts(
    members: Members, name: str, most: int, limit_chars: int = 2_048
) -> tuple[str, ...] | None:
    if not members.has(name):
        return None
    items = _counted(members.raw[name], f"{members.path}/{name}", most)
    texts = tuple(text_at(value, path, members.findings, limit_chars) for path, value in items)
    if len(set(texts)) != len(texts):
        members.fault(name, "The list contains an item twice.")
    return texts


def _objects(value: object, path: str, most: int) -> Iterator[Members]:
    for at, item in _counted(value, path, most):
        yield Members(item, at, FirstFault())


def _counted(value: object, path: str, most: int) -> list[tuple[str, object]]:
    items = items_at(value, path, FirstFault())
    if not 1 <= len(items) <= most:
        raise ShapeFault(path, MALFORMED, f"The list must have 1 to {most} items.")
    return items


def _fit_together(selections: tuple[Selection, ...]) -> None:
    if len({selection.access_mode for selection in selections}) > 1:
        raise ShapeFault("", "mixed_access_mode", "All entries must have the same access mode.")
    if len({selection.source_id for selection in selections}) != len(selections):
        raise ShapeFault("", "duplicate_source", "Each source can appear in only one entry.")
    trains = any(selection.purpose_code == AI_TRAINING for selection in selections)
    if trains and len(selections) > 1:
        raise ShapeFault(
            "", "ai_training_not_alone", "A request to train AI models must be the only entry."
        )
