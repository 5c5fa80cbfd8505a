"""A change in words, as a command line gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import NotANarrowing
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.offers import EntryOffer
from personal_server.consent.successors import Offers, choices_like
from personal_server.consent.terms import AS_AGREED
from personal_server.domain.grant import Grant


class Narrowing(msgspec.Struct, frozen=True):
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


def narrowed(offers: Offers, grants: Sequence[Grant], to: Narrowing) -> Choices:
    """The choices that leave this of what is held.  Raises: NotANarrowing."""
    like = choices_like(offers, grants)
    entry_offers = [offer for offer in offers if isinstance(offer, EntryOffer)]
    source_ids = {offer.selection.source_id for offer in entry_offers}
    streams = {stream.name for offer in entry_offers for stream in offer.streams}
    eligible = {c.connection_id for offer in entry_offers for c in offer.connections}
    if not (to.sources or frozenset()) <= source_ids:
        raise NotANarrowing("This access has no such source.", param="source")
    if not (to.connections or frozenset()) <= eligible:
        raise NotANarrowing("This access has no such account.", param="connection")
    if to.streams is not None and not to.streams.keys() <= streams:
        raise NotANarrowing("The source has no such stream.", param="stream")
    entries: dict[int, EntryChoice] = {}
    for offer in entry_offers:
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
