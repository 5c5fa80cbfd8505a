"""The owner's choices applied to offers: terms never wider than what was asked, and their grants.

Rule: in sources, streams, connections, fields, records and time, terms are a subset of the
offers, or the choices are refused; what is left open stands in `missing` and cannot be approved.
Source: docs/contract/authorization-server.md 6.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.oauth_errors import NotANarrowing
from pdpp_kernel.texts import message
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, instant_text
from personal_server.consent.choices import (
    DEFAULT_EXPIRY,
    Choices,
    EntryChoice,
    StreamChoice,
    box_of,
)
from personal_server.consent.offers import EntryOffer, StreamOffer, Ungrantable
from personal_server.consent.selections import CONTINUOUS, DATA_ACCESS, SINGLE_USE
from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.domain.grant import (
    MOST_LIMITS,
    MOST_VALUES,
    VALUE_CHARS,
    ContentLimit,
    Grant,
    StreamGrant,
    bound_ns,
    is_limit_value,
    told_stream_grant,
)

MAX_KEPT = 64
AS_AGREED = "as_agreed"
"""The end of an access that is changed: the one it has."""
_ENDS: dict[str, dict[str, int | None]] = {
    CONTINUOUS: {
        "30d": 30 * DAY_NANOSECONDS,
        "90d": 90 * DAY_NANOSECONDS,
        "1y": 365 * DAY_NANOSECONDS,
        "none": None,
    },
    SINGLE_USE: {"1h": 3_600 * NANOSECONDS, "24h": DAY_NANOSECONDS},
}


class Missing(msgspec.Struct, frozen=True):
    """Something the owner must still choose: `what` is entry, stream, connection or record."""

    what: str
    index: int
    stream: str | None = None


class EntryTerms(msgspec.Struct, frozen=True):
    """One kept entry with its final streams."""

    offer: EntryOffer
    streams: tuple[StreamGrant, ...]


class Terms(msgspec.Struct, frozen=True):
    """What a decision would fix.  Complete, and so approvable, if nothing is `missing`.

    `expires_at_ns` is `None` for no end.
    """

    entries: tuple[EntryTerms, ...]
    access_mode: str
    expires_at_ns: int | None
    ends: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


class AgreedTerms(msgspec.Struct, frozen=True):
    """What an access that is changed has, and keeps unless its owner says otherwise."""

    expires_at_ns: int | None


def narrow(
    offers: Sequence[EntryOffer | Ungrantable],
    choices: Choices,
    opened_at_ns: int,
    agreed: AgreedTerms | None = None,
) -> Terms:
    """The terms of these choices; `agreed` are those of the access that is changed, if one is.

    Units: `opened_at_ns` is when the request was first opened; ends count from there.
    Raises: NotANarrowing.
    """
    _refuse_strangers(offers, choices)
    if choices.events and not asks_for_events(offers):
        raise NotANarrowing("The app did not ask for notifications.")
    missing: list[Missing] = []
    entries: list[EntryTerms] = []
    for offer in offers:
        if isinstance(offer, EntryOffer) and (len(offers) == 1 or choices.entry(offer.index).keep):
            streams = _entry_streams(offer, choices.entry(offer.index), missing)
            entries.append(EntryTerms(offer, streams))
    if len(entries) > MAX_KEPT:
        raise NotANarrowing(
            message("You can allow at most %(most)s sources at once.", most=MAX_KEPT)
        )
    if not entries:
        missing.append(Missing("entry", 0))
    mode = _mode(offers, choices, agreed)
    return Terms(
        entries=tuple(entries),
        access_mode=mode,
        expires_at_ns=_end(mode, choices, opened_at_ns, agreed),
        ends=choices.ends,
        missing=tuple(missing),
    )


def grant_of(
    entry: EntryTerms,
    terms: Terms,
    *,
    grant_id: str,
    subject_id: str,
    client_id: str,
    client_display: Mapping[str, object],
    now_ns: int,
) -> Grant:
    """The grant that a kept entry becomes.  Source: docs/contract/authorization-server.md 11.1."""
    selection, declaration = entry.offer.selection, entry.offer.declaration
    return Grant(
        grant_id=grant_id,
        issued_at=instant_text(now_ns),
        subject_id=subject_id,
        client_id=client_id,
        client_display=dict(client_display) or None,
        source=SourceId(declaration.source_kind, declaration.source_id),
        declaration_version=declaration.version,
        purpose_code=selection.purpose_code,
        purpose_description=selection.purpose_description,
        access_mode=terms.access_mode,
        streams=entry.streams,
        expires_at=None if terms.expires_at_ns is None else instant_text(terms.expires_at_ns),
        selection_preset=selection.selection_preset,
        retention=None if selection.retention is None else dict(selection.retention),
    )


def asks_for_events(offers: Sequence[EntryOffer | Ungrantable]) -> bool:
    """Whether the request asks that its app may be told when something changes."""
    return any(isinstance(offer, EntryOffer) and offer.selection.events for offer in offers)


def render_details(grant: Grant) -> dict[str, object]:
    """A grant as one entry of `authorization_details`.

    Source: docs/contract/authorization-server.md 9.
    """
    details: dict[str, object] = {
        "type": DATA_ACCESS,
        "source": {"kind": grant.source.kind, "id": grant.source.id},
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode,
        "streams": [told_stream_grant(stream) for stream in grant.streams],
    }
    optional = {
        "purpose_description": grant.purpose_description,
        "retention": grant.retention,
    }
    details.update({name: value for name, value in optional.items() if value is not None})
    return details


def _refuse_strangers(offers: Sequence[EntryOffer | Ungrantable], choices: Choices) -> None:
    by_index = {offer.index: offer for offer in offers}
    for index, choice in choices.entries.items():
        offer = by_index.get(index)
        if offer is None or (isinstance(offer, Ungrantable) and choice.keep):
            raise NotANarrowing("The form includes a source that cannot be shared.")
        if isinstance(offer, EntryOffer) and any(offer.stream(n) is None for n in choice.streams):
            raise NotANarrowing("The form names a kind of records that the app did not ask for.")


def _entry_streams(
    offer: EntryOffer, choice: EntryChoice, missing: list[Missing]
) -> tuple[StreamGrant, ...]:
    eligible = {connection.connection_id for connection in offer.connections}
    if not (choice.connections or frozenset()) <= eligible:
        raise NotANarrowing("The form names an account that the app did not ask for.")
    streams = [s for s in offer.streams if s.required or choice.stream(s.name).wanted]
    if not streams:
        missing.append(Missing("stream", offer.index))
    granted: list[StreamGrant] = []
    for stream in streams:
        connections = _connections(stream, choice.connections)
        resources = _resources(stream, choice.stream(stream.name))
        if not connections:
            missing.append(Missing("connection", offer.index, stream.name))
        if resources == ():
            missing.append(Missing("record", offer.index, stream.name))
        if connections and resources != ():
            granted.append(_grant(offer.index, stream, choice, connections, resources))
    return tuple(granted)


def _connections(offer: StreamOffer, chosen: frozenset[str] | None) -> tuple[str, ...]:
    if len(offer.connections) == 1 and not chosen:
        return offer.connections
    if chosen is None:
        return offer.connections if offer.settled else ()
    return tuple(connection for connection in offer.connections if connection in chosen)


def _resources(offer: StreamOffer, choice: StreamChoice) -> tuple[str, ...] | None:
    chosen = choice.resources
    if not (chosen or frozenset()) <= set(offer.resources or ()):
        raise NotANarrowing("The form names a record that the app did not ask for.")
    if offer.resources is None or chosen is None:
        return offer.resources
    return tuple(key for key in offer.resources if key in chosen)


def _grant(
    index: int,
    offer: StreamOffer,
    entry: EntryChoice,
    connections: tuple[str, ...],
    resources: tuple[str, ...] | None,
) -> StreamGrant:
    choice = entry.stream(offer.name)
    return StreamGrant(
        name=offer.name,
        instance_ids=connections,
        fields=_fields(offer, choice.fields),
        time_constraint=_window(index, offer, choice),
        resources=resources,
        only=_limits(index, offer, choice),
    )


def _limits(index: int, offer: StreamOffer, choice: StreamChoice) -> tuple[ContentLimit, ...]:
    """What was asked, where nothing is chosen; else what is chosen of it."""
    limits_asked = {limit.field: limit for limit in offer.only}
    boxes = {field: box_of("others", index, offer.name, field) for field in choice.only}
    chosen = {
        field: _chosen(offer.stream, field, texts, boxes[field])
        for field, texts in choice.only.items()
    }
    for field, limit in chosen.items():
        if field in limits_asked and not set(limit.values) <= set(limits_asked[field].values):
            raise NotANarrowing(
                "The form names a value that the app did not ask for.", param=boxes[field]
            )
    limits = limits_asked | chosen
    if len(limits) > MOST_LIMITS:
        last = boxes[next(reversed(chosen))]
        raise NotANarrowing(
            message("At most %(most)s fields can limit a kind of records.", most=MOST_LIMITS),
            param=last,
        )
    return tuple(limits[name] for name in offer.stream.properties if name in limits)


def _chosen(stream: Stream, field: str, texts: tuple[str, ...], box: str) -> ContentLimit:
    declared = stream.properties.get(field)
    if declared is None or field not in stream.limiting:
        field_names = ", ".join(stream.limiting) or message("nothing")
        raise NotANarrowing(
            message("This kind of records can be limited by %(fields)s.", fields=field_names)
        )
    values = dict.fromkeys(declared.limit_value(text) for text in texts)
    usable = tuple(value for value in values if value is not None and is_limit_value(value))
    if len(usable) < len(values) or len(usable) > MOST_VALUES:
        raise NotANarrowing(
            message(
                (
                    "A limit takes at most %(most)s values of the field's type, with "
                    "at most %(chars)s characters each."
                ),
                most=str(MOST_VALUES),
                chars=VALUE_CHARS,
            ),
            param=box,
        )
    return ContentLimit(field, usable)


def _fields(offer: StreamOffer, ticked: frozenset[str] | None) -> tuple[str, ...]:
    if ticked is None:
        return offer.fields
    if not ticked <= set(offer.fields):
        raise NotANarrowing("The form names a field that the app did not ask for.")
    fields = ticked | set(offer.stream.floor)
    if not offer.stream.selectable_fields and not set(offer.fields) <= fields:
        raise NotANarrowing("The fields of this kind of records can only be shared together.")
    return tuple(name for name in offer.fields if name in fields)


def _window(index: int, offer: StreamOffer, choice: StreamChoice) -> TimeConstraint | None:
    constraint = offer.time_range
    asked_since = None if constraint is None else constraint.since_ns
    asked_until = None if constraint is None else constraint.until_ns
    first, last = (box_of(bound, index, offer.name) for bound in ("since", "until"))
    since = asked_since if not choice.since else _typed(choice.since, first)
    until = asked_until if not choice.until else _typed(choice.until, last)
    if since is None and until is None:
        return None
    if asked_since is not None and (since is None or since < asked_since):
        raise NotANarrowing(
            "The form asks for records from an earlier time than the app asked for.", param=first
        )
    if asked_until is not None and (until is None or until > asked_until):
        raise NotANarrowing(
            "The form asks for records until a later time than the app asked for.", param=last
        )
    if offer.stream.consent_time_field is None:
        raise NotANarrowing("This kind of records cannot be limited by date.")
    if since is not None and until is not None and since >= until:
        box = last if choice.until else first
        raise NotANarrowing("The chosen time range ends before it begins.", param=box)
    return TimeConstraint(
        field=offer.stream.consent_time_field,
        since_ns=since,
        until_ns=until,
        since=None if since is None else instant_text(since),
        until=None if until is None else instant_text(until),
    )


def _typed(text: str, box: str) -> int:
    bound = bound_ns(text)
    if bound is None:
        raise NotANarrowing(
            "Write the time as a day, such as 2026-11-21, or with a time zone offset.", param=box
        )
    return bound


def _mode(
    offers: Sequence[EntryOffer | Ungrantable], choices: Choices, agreed: AgreedTerms | None
) -> str:
    mode = offers[0].selection.access_mode if offers else CONTINUOUS
    if agreed is not None and choices.mode not in (None, mode):
        raise NotANarrowing("On this page you cannot switch between one-time and ongoing access.")
    if choices.mode not in (None, SINGLE_USE, CONTINUOUS):
        raise NotANarrowing("The form must choose one-time or ongoing access.")
    if choices.mode == CONTINUOUS and mode == SINGLE_USE:
        raise NotANarrowing("The app asked for one-time access only.")
    return choices.mode or mode


def _end(mode: str, choices: Choices, opened_at_ns: int, agreed: AgreedTerms | None) -> int | None:
    if agreed is not None and choices.expiry in (None, AS_AGREED):
        return agreed.expires_at_ns
    allowed = _ENDS[mode]
    expiry = choices.expiry or DEFAULT_EXPIRY[mode]
    if mode == SINGLE_USE and expiry in _ENDS[CONTINUOUS]:
        expiry = DEFAULT_EXPIRY[mode]
    if expiry not in allowed:
        raise NotANarrowing(
            message("The access can end after one of these: %(ends)s.", ends=", ".join(allowed))
        )
    duration = allowed[expiry]
    whole_second = opened_at_ns - opened_at_ns % NANOSECONDS
    return None if duration is None else whole_second + duration
