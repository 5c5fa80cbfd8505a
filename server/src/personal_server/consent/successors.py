"""Changing what was given: what may be asked of a grant anew, and in what terms reach further.

Rule: pure; what a change offers is everything its sources have, filled in as it was given, so that
nothing is added or taken away unless its owner says so.
Source: docs/contract/authorization-server.md 11.6; docs/decisions.md C35.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pdpp_kernel.oauth_errors import NotANarrowing
from pdpp_kernel.values import instant_text
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.offers import EntryOffer, StreamOffer, Ungrantable
from personal_server.consent.selections import ALL_STREAMS, Selection, StreamSelection
from personal_server.consent.terms import AS_AGREED, EntryTerms
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import Grant, StreamGrant, value_text

SourceStream = tuple[str, str]
"""(source id, stream)"""


# In what terms reach further than grants --------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Gain:
    """One dimension in which terms reach further than what is held.

    `what` is purpose, stream, fields, accounts, older, newer, records or values; `names` are those
    of fields or connections.
    """

    source_id: str
    stream: str | None
    what: str
    names: tuple[str, ...] = ()


def gains(entries: Iterable[EntryTerms], held: Sequence[Grant]) -> Iterator[Gain]:
    """What no grant of `held` reaches, kind by kind of records."""
    purposes = {(one.source.id, one.purpose_code) for one in held}
    known = {source_id for source_id, _ in purposes}
    for entry in entries:
        source_id = entry.offer.selection.source_id
        if source_id in known and (source_id, entry.offer.selection.purpose_code) not in purposes:
            yield Gain(source_id, None, "purpose")
        for stream in entry.streams:
            earlier = [
                before
                for one in held
                if one.source.id == source_id
                for before in one.streams
                if before.name == stream.name
            ]
            if not earlier:
                yield Gain(source_id, stream.name, "stream")
            else:
                yield from _stream_gains(source_id, stream, earlier)


def _stream_gains(
    source_id: str, stream: StreamGrant, earlier: Sequence[StreamGrant]
) -> Iterator[Gain]:
    fields = {name for before in earlier for name in before.fields}
    if new := tuple(name for name in stream.fields if name not in fields):
        yield Gain(source_id, stream.name, "fields", new)
    accounts = {one for before in earlier for one in before.instance_ids}
    if new := tuple(one for one in stream.instance_ids if one not in accounts):
        yield Gain(source_id, stream.name, "accounts", new)
    bounds = [before.time_constraint for before in earlier]
    if not any(_begins_before(bound, stream.time_constraint) for bound in bounds):
        yield Gain(source_id, stream.name, "older")
    if not any(_ends_after(bound, stream.time_constraint) for bound in bounds):
        yield Gain(source_id, stream.name, "newer")
    named = {key for before in earlier for key in before.resources or ()}
    if all(before.resources for before in earlier) and not named.issuperset(
        stream.resources or ("",)
    ):
        yield Gain(source_id, stream.name, "records")
    if not any(_lets_through(before, stream) for before in earlier):
        yield Gain(source_id, stream.name, "values")


def _lets_through(before: StreamGrant, stream: StreamGrant) -> bool:
    """Whether the content limits of an earlier grant leave all of these records."""
    kept = {limit.field: frozenset(limit.values) for limit in stream.only}
    return all(
        each.field in kept and kept[each.field] <= frozenset(each.values) for each in before.only
    )


def _begins_before(bound: TimeConstraint | None, asked: TimeConstraint | None) -> bool:
    if bound is None or bound.since_ns is None:
        return True
    if asked is None or asked.since_ns is None or asked.field != bound.field:
        return False
    return bound.since_ns <= asked.since_ns


def _ends_after(bound: TimeConstraint | None, asked: TimeConstraint | None) -> bool:
    if bound is None or bound.until_ns is None:
        return True
    if asked is None or asked.until_ns is None or asked.field != bound.field:
        return False
    return asked.until_ns <= bound.until_ns


# What a change asks for -------------------------------------------------------------------------
def change_selections(
    held: Sequence[Grant], commitments: Mapping[str, tuple[str, ...]]
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
        for grant in held
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


def choices_like(offers: Offers, held: Iterable[Grant]) -> dict[int, EntryChoice]:
    """The choices of earlier grants, as far as these offers have them."""
    earlier = {(grant.source.id, stream.name): stream for grant in held for stream in grant.streams}
    return {
        offer.index: _entry_like(offer, earlier)
        for offer in offers
        if isinstance(offer, EntryOffer)
    }


def _entry_like(offer: EntryOffer, earlier: Mapping[SourceStream, StreamGrant]) -> EntryChoice:
    source_id = offer.selection.source_id
    found = {s.name: g for s in offer.streams if (g := earlier.get((source_id, s.name)))}
    connections = {c for grant in found.values() for c in grant.instance_ids}
    eligible = {c.connection_id for c in offer.connections}
    return EntryChoice(
        keep=bool(found),
        connections=frozenset(connections & eligible) or None,
        streams={s.name: _stream_like(s, found.get(s.name)) for s in offer.streams},
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
    asked = stream.time_range
    if stream.stream.consent_time_field is None:
        return choice
    if asked is not None and asked.since_ns is not None and asked.since_ns >= start_ns:
        return choice
    if asked is not None and asked.until_ns is not None and asked.until_ns <= start_ns:
        return choice
    return replace(choice, since=_day_or_instant(start_ns))


def until_at(stream: StreamOffer, choice: StreamChoice, end_ns: int) -> StreamChoice:
    """The choice of a stream before an instant, unless what was asked ends earlier or begins."""
    asked = stream.time_range
    if stream.stream.consent_time_field is None:
        return choice
    if asked is not None and asked.until_ns is not None and asked.until_ns <= end_ns:
        return choice
    if asked is not None and asked.since_ns is not None and asked.since_ns >= end_ns:
        return choice
    return replace(choice, until=_day_or_instant(end_ns))


def _day_or_instant(at_ns: int) -> str:
    text = instant_text(at_ns)
    return text[:10] if text.endswith("T00:00:00Z") else text


# A change in words, as a command line gives it --------------------------------------------------
@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is to be left of an access; what is not named stays as it is.

    Shapes: `sources` are ids; `streams` names the kinds of records that stay, with the fields that
        stay of each (`None`: those it has); `connections` are ids; times and end as in a form.
    """

    sources: frozenset[str] | None = None
    streams: Mapping[str, frozenset[str] | None] | None = None
    connections: frozenset[str] | None = None
    since: str = ""
    until: str = ""
    expiry: str | None = None


def narrowed(offers: Offers, held: Sequence[Grant], to: Narrowing) -> Choices:
    """The choices that leave this of what is held.  Raises: NotANarrowing."""
    like = choices_like(offers, held)
    shown = [offer for offer in offers if isinstance(offer, EntryOffer)]
    known = {offer.selection.source_id for offer in shown}
    streams = {stream.name for offer in shown for stream in offer.streams}
    eligible = {c.connection_id for offer in shown for c in offer.connections}
    if not (to.sources or frozenset()) <= known:
        raise NotANarrowing("The access has no such source.", param="source")
    if not (to.connections or frozenset()) <= eligible:
        raise NotANarrowing("The access has no such connection.", param="connection")
    if to.streams is not None and not to.streams.keys() <= streams:
        raise NotANarrowing("The source has no such stream.", param="stream")
    entries: dict[int, EntryChoice] = {}
    for offer in shown:
        left_out = to.sources is not None and offer.selection.source_id not in to.sources
        entry = like[offer.index]
        own = {c.connection_id for c in offer.connections} & (to.connections or frozenset())
        entries[offer.index] = replace(
            entry,
            keep=entry.keep and not left_out and _keeps_some(offer, to),
            connections=frozenset(own) or entry.connections,
            streams={n: _stream_left(n, c, to) for n, c in entry.streams.items()},
        )
    return Choices(entries=entries, expiry=to.expiry or AS_AGREED)


def _keeps_some(offer: EntryOffer, to: Narrowing) -> bool:
    if to.streams is None:
        return True
    return any(stream.name in to.streams for stream in offer.streams)


def _stream_left(name: str, choice: StreamChoice, to: Narrowing) -> StreamChoice:
    if to.streams is not None:
        if name not in to.streams:
            return replace(choice, wanted=False)
        fields = to.streams[name]
        choice = replace(choice, wanted=True, fields=choice.fields if fields is None else fields)
    return replace(choice, since=to.since or choice.since, until=to.until or choice.until)
