"""From a selection to an offer: what could be granted, named to the last field and connection.

Rule: pure; the same selection, declaration and connections give the same offer.  After this no
wildcard, preset or view exists, the floor is present and nothing is empty.  Judged only with the
owner signed in, since every failure tells of sources.
Source: docs/contract/authorization-server.md 4.2, 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Stream
from pdpp_kernel.json_shapes import ShapeFault
from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import ValueKind
from personal_server.consent.selections import (
    AGENT_CONTEXT,
    ALL_STREAMS,
    CONTINUOUS,
    DATA_ACCESS,
    Selection,
    StreamSelection,
    TimeRange,
    parse_streams,
)
from personal_server.domain.connection import CLIENT_READABLE, Connection
from personal_server.domain.grant import ContentLimit


class StreamOffer(msgspec.Struct, frozen=True):
    """One stream that could be granted, at its widest.

    Shapes: `fields` in schema order, floor included; `connections` eligible, non-empty, sorted;
        `settled` is whether all of them are meant unless the owner chooses fewer.
    """

    stream: Stream
    required: bool
    fields: tuple[str, ...]
    connections: tuple[str, ...]
    settled: bool
    time_range: TimeRange | None = None
    resources: tuple[str, ...] | None = None
    only: tuple[ContentLimit, ...] = ()

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.stream.name


class Unoffered(msgspec.Struct, frozen=True):
    """An optional stream that cannot be granted, and the stable word why."""

    name: str
    reason: str


class EntryOffer(msgspec.Struct, frozen=True):
    """One entry that could be granted.  `index` is its place in the request."""

    index: int
    selection: Selection
    declaration: SourceDeclaration
    connections: tuple[Connection, ...]
    streams: tuple[StreamOffer, ...]
    unoffered: tuple[Unoffered, ...] = ()

    def stream(self, name: str) -> StreamOffer | None:
        """The offer of that stream, if there is one."""
        return next((offer for offer in self.streams if offer.name == name), None)


class Ungrantable(msgspec.Struct, frozen=True):
    """An entry that cannot be granted, and why."""

    index: int
    selection: Selection
    refusal: InvalidAuthorizationDetails


Declarations = Mapping[str, SourceDeclaration]
"""The accepted declarations by `source.id`."""


def resolve_request(
    selections: Sequence[Selection], declarations: Declarations, connections: Iterable[Connection]
) -> tuple[EntryOffer | Ungrantable, ...]:
    """Every entry as an offer, or why it cannot be one."""
    sorted_connections = tuple(sorted(connections, key=lambda connection: connection.connection_id))
    resolved: list[EntryOffer | Ungrantable] = []
    for index, selection in enumerate(selections):
        try:
            resolved.append(resolve_entry(index, selection, declarations, sorted_connections))
        except InvalidAuthorizationDetails as refusal:
            resolved.append(Ungrantable(index, selection, refusal))
    return tuple(resolved)


def resolve_entry(
    index: int,
    selection: Selection,
    declarations: Declarations,
    connections: Sequence[Connection],
) -> EntryOffer:
    """One entry against the accepted declaration and the usable connections of its source.

    Raises: InvalidAuthorizationDetails, with `reason` of the owner rows of 4.2.
    """
    declaration = declarations.get(selection.source_id)
    if declaration is None:
        raise _refusal("source_unknown", "This server has no such source.", f"/{index}/source")
    if selection.source_kind not in (None, declaration.source_kind):
        raise _refusal(
            "source_kind_mismatch",
            "The source with this name is of another kind.",
            f"/{index}/source",
        )
    usable = tuple(c for c in connections if _usable(c, selection.source_id))
    if not usable:
        raise _refusal("no_connection", "This server has no account of this source.", f"/{index}")
    offers: list[StreamOffer] = []
    unoffered: list[Unoffered] = []
    first: InvalidAuthorizationDetails | None = None
    for position, selected in enumerate(_named_streams(index, selection, declaration)):
        try:
            offers.append(_offer(selected, declaration, usable, f"/{index}/streams/{position}"))
        except InvalidAuthorizationDetails as refusal:
            if selected.required:
                raise
            first = first or refusal
            unoffered.append(Unoffered(selected.name, refusal.reason or ""))
    if not offers and first is not None:
        raise first
    served = {connection for offer in offers for connection in offer.connections}
    return EntryOffer(
        index=index,
        selection=selection,
        declaration=declaration,
        connections=tuple(c for c in usable if c.connection_id in served),
        streams=tuple(offers),
        unoffered=tuple(unoffered),
    )


def picker_selections(
    declarations: Declarations, connections: Iterable[Connection]
) -> tuple[Selection, ...]:
    """The request of a client that asked for nothing in particular: every source, all optional.

    Source: docs/contract/authorization-server.md 4.3, "Picker".
    """
    usable = {c.source_id for c in connections if c.status in CLIENT_READABLE}
    return tuple(
        Selection(
            source_id=source_id,
            purpose_code=AGENT_CONTEXT,
            access_mode=CONTINUOUS,
            streams=(StreamSelection(name=ALL_STREAMS, required=False),),
            events=True,
        )
        for source_id in sorted(usable & declarations.keys())
    )


def picker_details(selections: Iterable[Selection]) -> list[dict[str, object]]:
    """A picker's request as it is stored with the request."""
    return [
        {
            "type": DATA_ACCESS,
            "source": {"id": selection.source_id},
            "purpose_code": selection.purpose_code,
            "access_mode": selection.access_mode,
            "streams": [{"name": ALL_STREAMS, "necessity": "optional"}],
            "events": selection.events,
        }
        for selection in selections
    ]


def _usable(connection: Connection, source_id: str) -> bool:
    return connection.source_id == source_id and connection.status in CLIENT_READABLE


def _named_streams(
    index: int, selection: Selection, declaration: SourceDeclaration
) -> tuple[StreamSelection, ...]:
    streams = selection.streams
    if selection.selection_preset is not None:
        streams = _preset(index, selection.selection_preset, declaration)
    if len(streams) == 1 and streams[0].name == ALL_STREAMS:
        return tuple(replace(streams[0], name=name) for name in declaration.streams)
    return streams


def _preset(
    index: int, preset_id: str, declaration: SourceDeclaration
) -> tuple[StreamSelection, ...]:
    presets = cast("list[dict[str, object]]", declaration.raw.get("selection_presets", []))
    preset = next((candidate for candidate in presets if candidate.get("id") == preset_id), None)
    unknown = _refusal(
        "unknown_preset", "The source has no such preset.", f"/{index}/selection_preset"
    )
    if preset is None:
        raise unknown
    try:
        return parse_streams(preset.get("streams"))
    except ShapeFault:
        raise unknown from None


def _offer(
    selection: StreamSelection,
    declaration: SourceDeclaration,
    usable: tuple[Connection, ...],
    pointer: str,
) -> StreamOffer:
    stream = declaration.streams.get(selection.name)
    if stream is None:
        raise _refusal("unknown_stream", "The source has no such stream.", f"{pointer}/name")
    _check_selectable(selection, stream, pointer)
    return StreamOffer(
        stream=stream,
        required=selection.required,
        fields=_fields(selection, stream, pointer),
        connections=_connections(selection, usable, pointer),
        settled=selection.instance_ids is not None or len(usable) == 1,
        time_range=selection.time_range,
        resources=_resources(selection, stream, pointer),
        only=tuple(_limit(limit, stream, pointer) for limit in selection.only),
    )


def _check_selectable(selection: StreamSelection, stream: Stream, pointer: str) -> None:
    limits = {
        "time_range": selection.time_range is not None and stream.consent_time_field is None,
        "fields": selection.fields is not None and not stream.selectable_fields,
        "view": selection.view is not None and not stream.selectable_fields,
        "resources": selection.resources is not None and not stream.selectable_resources,
    }
    for member, unsupported in limits.items():
        if unsupported:
            sentence = "The stream cannot be limited in this way."
            raise _refusal("unsupported_selection", sentence, f"{pointer}/{member}")


def _fields(selection: StreamSelection, stream: Stream, pointer: str) -> tuple[str, ...]:
    fields = selection.fields
    if selection.view is not None:
        view = stream.view(selection.view)
        if view is None:
            raise _refusal("unknown_view", "The stream has no such view.", f"{pointer}/view")
        fields = view.fields
    if fields is None:
        return tuple(stream.properties)
    if not set(fields) <= stream.properties.keys():
        raise _refusal("unknown_field", "The stream has no such field.", f"{pointer}/fields")
    offered = {*fields, *stream.floor}
    return tuple(name for name in stream.properties if name in offered)


def _connections(
    selection: StreamSelection, usable: tuple[Connection, ...], pointer: str
) -> tuple[str, ...]:
    eligible = tuple(connection.connection_id for connection in usable)
    if selection.instance_ids is None:
        return eligible
    if not set(selection.instance_ids) <= set(eligible):
        sentence = "One of the named accounts cannot be shared."
        raise _refusal("connection_unknown", sentence, f"{pointer}/instance_ids")
    return tuple(connection for connection in eligible if connection in selection.instance_ids)


def _limit(limit: ContentLimit, stream: Stream, pointer: str) -> ContentLimit:
    declared = stream.properties.get(limit.field)
    if declared is None:
        raise _refusal("unknown_field", "The stream has no such field.", f"{pointer}/only")
    if limit.field not in stream.limiting:
        field_names = ", ".join(stream.limiting) or "none"
        sentence = f"The stream can be limited only by these fields: {field_names}."
        raise _refusal("unsupported_selection", sentence, f"{pointer}/only/{limit.field}")
    values = [declared.limit_value(value) for value in limit.values]
    distinct = tuple(dict.fromkeys(value for value in values if value is not None))
    if len(distinct) < len(values):
        sentence = f"Values of this field must be of type {declared.kind}, and all different."
        raise _refusal("invalid_limit", sentence, f"{pointer}/only/{limit.field}")
    return ContentLimit(limit.field, distinct)


def _resources(selection: StreamSelection, stream: Stream, pointer: str) -> tuple[str, ...] | None:
    for key in selection.resources or ():
        if not _is_key_of(stream, key):
            sentence = "One of the named records has a key that does not fit this stream."
            raise _refusal("invalid_resource", sentence, f"{pointer}/resources")
    return selection.resources


def _is_key_of(stream: Stream, key: str) -> bool:
    if len(stream.primary_key) == 1:
        return _is_part_of(stream, stream.primary_key[0], key)
    try:
        parts = json.loads(key)
    except ValueError:
        return False
    if not isinstance(parts, list):
        return False
    texts = cast("list[object]", parts)
    return (
        len(texts) == len(stream.primary_key)
        and json.dumps(texts, ensure_ascii=False, separators=(",", ":")) == key
        and all(
            isinstance(text, str) and _is_part_of(stream, name, text)
            for name, text in zip(stream.primary_key, texts, strict=True)
        )
    )


def _is_part_of(stream: Stream, name: str, text: str) -> bool:
    match stream.properties[name].kind:
        case ValueKind.INTEGER:
            digits = text.removeprefix("-")
            return digits.isdecimal() and str(int(digits)) == digits
        case ValueKind.BOOLEAN:
            return text in ("true", "false")
        case _:
            return True


def _refusal(reason: str, sentence: str, pointer: str) -> InvalidAuthorizationDetails:
    return InvalidAuthorizationDetails(sentence, param=pointer, reason=reason)
