"""Changing what was given: what may be asked of a grant anew, and in what terms reach further.

Rule: pure; what a change offers is everything its sources have, filled in as it was given, so that
nothing is added or taken away unless its owner says so.
Source: docs/contract/authorization-server.md 11.6; docs/decisions.md C35.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from pdpp_kernel.values import instant_text
from personal_server.consent.choices import EntryChoice, StreamChoice
from personal_server.consent.offers import EntryOffer, StreamOffer, Ungrantable
from personal_server.consent.selections import ALL_STREAMS, Selection, StreamSelection
from personal_server.domain.grant import Grant, StreamGrant, value_text

SourceStream = tuple[str, str]
"""(source id, stream)"""


def change_selections(
    grants: Sequence[Grant], commitments: Mapping[str, tuple[str, ...]]
) -> tuple[Selection, ...]:
    """The request that a change of these grants is: all of their sources, nothing required.

    Where streams are bound to records, or to accounts of their own, those streams alone and no
    more: one form has one choice of accounts for a source, and no list of records to add to.
    `commitments` are the client's own words, by source.
    """
    return tuple(
        Selection(
            source_id=grant.source.id,
            source_kind=grant.source.kind,
            purpose_code=grant.purpose_code,
            purpose_description=grant.purpose_description,
            access_mode=grant.access_mode,
            retention=grant.retention,
            commitments=commitments.get(grant.source.id),
            streams=_selected(grant),
        )
        for grant in grants
    )


def _selected(grant: Grant) -> tuple[StreamSelection, ...]:
    alike = len({stream.instance_ids for stream in grant.streams}) == 1
    if alike and not any(stream.resources for stream in grant.streams):
        return (StreamSelection(ALL_STREAMS, required=False),)
    return tuple(
        StreamSelection(
            stream.name,
            required=False,
            instance_ids=None if alike else stream.instance_ids,
            resources=stream.resources,
        )
        for stream in grant.streams
    )


Offers = Sequence[EntryOffer | Ungrantable]


def choices_like(offers: Offers, grants: Iterable[Grant]) -> dict[int, EntryChoice]:
    """The choices of earlier grants, as far as these offers have them."""
    earlier = {
        (grant.source.id, stream.name): stream for grant in grants for stream in grant.streams
    }
    return {
        offer.index: _entry_like(offer, earlier)
        for offer in offers
        if isinstance(offer, EntryOffer)
    }


def _entry_like(offer: EntryOffer, earlier: Mapping[SourceStream, StreamGrant]) -> EntryChoice:
    source_id = offer.selection.source_id
    streams = {s.name: g for s in offer.streams if (g := earlier.get((source_id, s.name)))}
    connections = {c for grant in streams.values() for c in grant.instance_ids}
    eligible = {c.connection_id for c in offer.connections}
    return EntryChoice(
        keep=bool(streams),
        connections=frozenset(connections & eligible) or None,
        streams={s.name: _stream_like(s, streams.get(s.name)) for s in offer.streams},
    )


def _stream_like(stream: StreamOffer, earlier: StreamGrant | None) -> StreamChoice:
    if earlier is None:
        return StreamChoice(wanted=stream.required)
    fields = frozenset(earlier.fields) & frozenset(stream.fields)
    cut = fields if stream.stream.selectable_fields else None
    only = {limit.field: tuple(map(value_text, limit.values)) for limit in earlier.only}
    choice = StreamChoice(wanted=True, fields=cut, only=only)
    window = earlier.time_constraint
    if window is None:
        return choice
    if window.since_ns is not None:
        choice = since_at(stream, choice, window.since_ns)
    return choice if window.until_ns is None else until_at(stream, choice, window.until_ns)


def since_at(stream: StreamOffer, choice: StreamChoice, start_ns: int) -> StreamChoice:
    """The choice of a stream from an instant on, unless what was asked begins later or ends."""
    time_range = stream.time_range
    if stream.stream.consent_time_field is None:
        return choice
    if (
        time_range is not None
        and time_range.since_ns is not None
        and time_range.since_ns >= start_ns
    ):
        return choice
    if (
        time_range is not None
        and time_range.until_ns is not None
        and time_range.until_ns <= start_ns
    ):
        return choice
    return replace(choice, since=_day_or_instant(start_ns))


def until_at(stream: StreamOffer, choice: StreamChoice, end_ns: int) -> StreamChoice:
    """The choice of a stream before an instant, unless what was asked ends earlier or begins."""
    time_range = stream.time_range
    if stream.stream.consent_time_field is None:
        return choice
    if time_range is not None and time_range.until_ns is not None and time_range.until_ns <= end_ns:
        return choice
    if time_range is not None and time_range.since_ns is not None and time_range.since_ns >= end_ns:
        return choice
    return replace(choice, until=_day_or_instant(end_ns))


def _day_or_instant(at_ns: int) -> str:
    text = instant_text(at_ns)
    return text[:10] if text.endswith("T00:00:00Z") else text
