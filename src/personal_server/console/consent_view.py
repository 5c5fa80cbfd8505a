"""A review as the consent page shows it: values for the template, nothing else.  Pure.

Rule: what this server enforces, what is only promised, what the publisher and what the client
wrote stay apart, so that the template can set each in its own block.  Source: AS contract 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from personal_server.consent.choices import DEFAULT_EXPIRY
from personal_server.consent.offers import EntryOffer, Ungrantable
from personal_server.consent.selections import SINGLE_USE, Selection
from personal_server.console import consent_words
from personal_server.console.consent_additions import additions
from personal_server.console.consent_streams import Shown, StreamView, stream_view
from personal_server.console.consent_who import (
    PromiseView,
    WhoView,
    promise_views,
    source_name,
    who_view,
)
from personal_server.console.words import span_of
from personal_server.domain.grant import StreamGrant
from personal_server.granting.holdings import Held
from personal_server.granting.reviews import Review
from personal_server.reading.preview import Evidence, Place

EvidenceBy = Mapping[Place, Evidence]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """One account of a source."""

    connection_id: str
    name: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class SourceView:
    """One entry of the request."""

    index: int
    name: str
    detail: str | None
    publisher: str | None
    kept: bool
    choosable: bool
    connections: tuple[ConnectionView, ...] = ()
    choose_connections: bool = False
    streams: tuple[StreamView, ...] = ()
    unoffered: tuple[str, ...] = ()
    refused: str | None = None
    commitments: tuple[str, ...] = ()

    @property
    def half_chosen(self) -> bool:
        """Whether something of it is ticked, but not the source itself."""
        ticked = any(stream.wanted and not stream.required for stream in self.streams)
        return self.choosable and not self.kept and ticked

    @property
    def empty(self) -> tuple[StreamView, ...]:
        """Streams that would give nothing now."""
        return tuple(stream for stream in self.streams if stream.empty)

    @property
    def has_time(self) -> bool:
        """Whether some stream can be limited in time."""
        return any(stream.time_field for stream in self.streams)


@dataclass(frozen=True, slots=True)
class EarlierView:
    """What the app holds already."""

    held: Held
    sources: tuple[str, ...]
    ending: bool


@dataclass(frozen=True, slots=True)
class ConsentView:
    """The whole page."""

    handle: str
    who: WhoView
    promises: tuple[PromiseView, ...]
    sources: tuple[SourceView, ...]
    several: bool
    picker: bool
    mode: str
    may_stand: bool
    expiry: str
    expires_at_ns: int | None
    earlier: tuple[EarlierView, ...]
    trains: bool
    training_agreed: bool
    missing: tuple[str, ...]
    revision: str | None
    impossible: str | None
    figures: tuple[tuple[str, str], ...]
    adds: tuple[str, ...]

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """The ends to choose from in this mode."""
        single = self.mode == SINGLE_USE
        return consent_words.SINGLE_ENDS if single else consent_words.CONTINUOUS_ENDS

    @property
    def opens_samples(self) -> bool:
        """Whether samples stand open: with one stream they are seen at a glance."""
        return sum(stream.given for source in self.sources for stream in source.streams) == 1

    @property
    def has_time(self) -> bool:
        """Whether something can be limited in time."""
        return any(source.has_time for source in self.sources)


def consent_view(
    review: Review,
    evidence: EvidenceBy,
    kept: Mapping[Place, int],
    changed: frozenset[tuple[str, str]] = frozenset(),
) -> ConsentView:
    """The page of a review.

    Shapes: `kept` counts all records, for what is not chosen; `changed` marks (source id, stream).
    """
    shown = Shown(evidence, kept, changed)
    sources = tuple(_source(review, offer, shown) for offer in review.offers)
    terms = review.terms
    default = DEFAULT_EXPIRY[terms.access_mode]
    asked_modes = {offer.selection.access_mode for offer in review.offers}
    return ConsentView(
        handle=review.asked.facts.request_id,
        who=who_view(review),
        promises=promise_views(review),
        sources=sources,
        several=len(review.offers) > 1,
        picker=review.asked.picker,
        mode=terms.access_mode,
        may_stand=SINGLE_USE not in asked_modes,
        expiry=_expiry(review.choices.expiry, terms.access_mode, default),
        expires_at_ns=terms.expires_at_ns,
        earlier=tuple(_earlier(review, held) for held in review.earlier),
        trains=review.trains,
        training_agreed=review.choices.ai_training,
        missing=tuple(
            consent_words.missing(found, _offer_of(review, found.index)) for found in review.missing
        ),
        revision=review.revision,
        impossible=_impossible(review),
        figures=_figures(review, sources, evidence),
        adds=additions(review),
    )


def _expiry(chosen: str | None, mode: str, default: str) -> str:
    ends = consent_words.SINGLE_ENDS if mode == SINGLE_USE else consent_words.CONTINUOUS_ENDS
    return chosen if chosen in dict(ends) else default


def _source(
    review: Review,
    offer: EntryOffer | Ungrantable,
    shown: Shown,
) -> SourceView:
    selection: Selection = offer.selection
    several = len(review.offers) > 1
    if isinstance(offer, Ungrantable):
        return SourceView(
            index=offer.index,
            name=source_name(offer),
            detail=None,
            publisher=None,
            kept=False,
            choosable=False,
            refused=consent_words.UNGRANTABLE.get(
                offer.refusal.reason or "", "It cannot be given."
            ),
        )
    choice = review.choices.entry(offer.index)
    kept = choice.keep or not several
    names = {c.connection_id: c.display_name or c.connection_id for c in offer.connections}
    chosen = choice.connections or frozenset()
    alone = len(offer.connections) == 1
    settled = all(stream.settled for stream in offer.streams) and choice.connections is None
    return SourceView(
        index=offer.index,
        name=source_name(offer),
        detail=offer.declaration.display_detail,
        publisher=offer.declaration.publisher_id,
        kept=kept,
        choosable=several,
        connections=tuple(
            ConnectionView(connection_id, name, alone or settled or connection_id in chosen)
            for connection_id, name in names.items()
        ),
        choose_connections=not alone,
        streams=tuple(
            stream_view(
                stream,
                choice.stream(stream.name),
                terms=_granted(review, offer.index, stream.name),
                shown=shown,
                names=names,
                prefix=f"{offer.index}.{quote(stream.name, safe='')}",
                changed=(offer.selection.source_id, stream.name) in shown.changed,
            )
            for stream in offer.streams
        ),
        unoffered=tuple(unoffered.name for unoffered in offer.unoffered),
        commitments=selection.commitments or (),
    )


def _granted(review: Review, index: int, name: str) -> StreamGrant | None:
    return next(
        (
            stream
            for entry in review.terms.entries
            if entry.offer.index == index
            for stream in entry.streams
            if stream.name == name
        ),
        None,
    )


def _earlier(review: Review, held: Held) -> EarlierView:
    names = {o.selection.source_id: source_name(o) for o in review.offers}
    sources = [
        names.get(grant.grant.source.id, grant.connector_key)
        if grant.grant
        else grant.connector_key
        for grant in held.grants
    ]
    return EarlierView(held, tuple(sources), held.id in review.choices.ends)


def _figures(
    review: Review, sources: tuple[SourceView, ...], evidence: EvidenceBy
) -> tuple[tuple[str, str], ...]:
    """The page at a glance: (figure, what it counts)."""
    if review.artifact is None:
        return ()
    shown = [stream for source in sources if source.kept for stream in source.streams]
    given = [stream for stream in shown if stream.given]
    fields = sum(len(stream.granted_fields) for stream in given)
    kinds = ", ".join(stream.name for stream in given[:3]) + ("…" if len(given) > 3 else "")
    return (
        (consent_words.count(evidence.values()), kinds),
        (
            f"{fields} fields",
            f"of {len(given)} {'kind' if len(given) == 1 else 'kinds'} of records",
        ),
        (_span(evidence), "oldest to newest"),
    )


def _span(evidence: EvidenceBy) -> str:
    earliest = min((e.earliest for e in evidence.values() if e.earliest), default=None)
    latest = max((e.latest for e in evidence.values() if e.latest), default=None)
    return "no dates" if earliest is None or latest is None else span_of(earliest, latest)


def _offer_of(review: Review, index: int) -> EntryOffer | None:
    return next((o for o in review.offers if isinstance(o, EntryOffer) and o.index == index), None)


def _impossible(review: Review) -> str | None:
    refusal = review.impossible
    if refusal is None:
        return None
    return consent_words.UNGRANTABLE.get(refusal.reason or "", refusal.message)
