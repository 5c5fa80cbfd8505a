"""A review as the consent page shows it: values for the template, nothing else.  Pure.

Rule: what this server enforces, what is only promised, what the publisher and what the client
wrote stay apart, so that the template can set each in its own block.
Source: docs/contract/authorization-server.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.persons import CONNECTOR_KEY
from pdpp_kernel.texts import Day, Joined, Minute, Text, counted, message, plural
from personal_server.consent.bundles import EVERYTHING, OUTLINE, TEXTS, bundle_fields, bundles_of
from personal_server.consent.choices import DEFAULT_EXPIRY
from personal_server.consent.client_registration import DOCUMENT, DYNAMIC
from personal_server.consent.offers import EntryOffer, Ungrantable
from personal_server.consent.selections import AI_TRAINING, SINGLE_USE, Selection
from personal_server.consent.successors import SourceStream
from personal_server.consent.terms import AS_AGREED, Missing, asks_for_events
from personal_server.console import consent_words, words
from personal_server.console.consent_changes import additions
from personal_server.console.consent_streams import (
    NOTHING_REFUSED,
    HeldValues,
    RefusedBox,
    Shown,
    StreamView,
    form_prefix,
    stream_view,
)
from personal_server.console.consent_words import account_names, source_name
from personal_server.console.words import purpose_label, redirect_place
from personal_server.domain.grant import StreamGrant
from personal_server.domain.hosts import PUBLISHED
from personal_server.granting.grant_changes import CHANGE
from personal_server.granting.holdings import Holding
from personal_server.granting.reviews import Review
from personal_server.reading.preview import Evidence, StreamKey

SOURCES_UNFOLDED = 3
"""As many sources show their kinds at once; of more, each is a line that unfolds when ticked."""
OWN, KNOWN, CHECKED, CLAIMED, UNKNOWN = "own", "known", "checked", "claimed", "unknown"
LEVELS: Mapping[str, Text] = {
    OWN: message("App set up on this server"),
    KNOWN: message("Well-known app"),
    CHECKED: message("Domain verified"),
    CLAIMED: message("App name not verified"),
    UNKNOWN: message("Unknown app"),
}
"""How far an app is known, from most to least; each has a look of its own."""
BUNDLE_WORDS: Mapping[str, Text] = {
    OUTLINE: message("Without full texts"),
    TEXTS: message("With full texts"),
    EVERYTHING: message("Everything"),
}


class ConsentView(msgspec.Struct, frozen=True):
    """Everything that the consent page shows, in its order."""

    handle: str
    who: WhoView
    promises: tuple[PromiseView, ...]
    sources: tuple[SourceView, ...]
    several: bool
    picker: bool
    mode: str
    may_stand: bool
    expiry: str
    records_per_day: int | None
    asks_for_events: bool
    events: bool
    expires_at_ns: int | None
    earlier: tuple[EarlierView, ...]
    trains: bool
    training_agreed: bool
    missing: tuple[Text, ...]
    revision: str | None
    impossible: Text | None
    figures: tuple[tuple[Text, Text], ...]
    adds: tuple[Text, ...]
    gains: tuple[str, ...]
    refused: Mapping[str, RefusedBox]
    changes: ChangedView | None = None
    gives_nothing: bool = False

    @property
    def ends(self) -> tuple[tuple[str, Text], ...]:
        """The ends to choose from in this mode; what is changed may keep the one it has."""
        ends = consent_words.ends_of(self.mode)
        return ends if self.changes is None else ((AS_AGREED, self.changes.end), *ends)

    @property
    def folds(self) -> bool:
        """Whether a source is one line until it is ticked: more of them than one view shows."""
        return len(self.sources) > SOURCES_UNFOLDED

    @property
    def has_time(self) -> bool:
        """Whether something can be limited in time."""
        return any(source.has_time for source in self.sources)


class ChangedView(msgspec.Struct, frozen=True):
    """The access that is changed; `end` is when it ends now, `further` that more is given."""

    held: Holding
    end: Text
    further: bool


class WhoView(msgspec.Struct, frozen=True):
    """The app that asks, with what is known of it and what to be wary of.

    Shapes: `name` is its own word unless `name_checked`; `level` is one of `LEVELS`.
    Source: docs/contract/authorization-server.md 7.1.
    """

    name: str
    name_checked: bool
    level: str
    trust: Text
    identity: str
    leads_to: Text | None
    warnings: tuple[Text, ...]
    device: tuple[tuple[Text, Text], ...] = ()

    @property
    def headline(self) -> Text:
        """How far it is known, in a few words."""
        return LEVELS[self.level]


class PromiseView(msgspec.Struct, frozen=True):
    """What the app declares and nobody enforces; `of` names the sources where they differ.

    Source: docs/contract/authorization-server.md 7.2.
    """

    of: tuple[str, ...]
    purpose: Text | None
    code: str
    description: str | None
    retention: Text | None
    trains: bool


class SourceView(msgspec.Struct, frozen=True):
    """One entry of the request."""

    index: int
    name: str
    detail: str | None
    publisher: str | None
    chosen: bool
    choosable: bool
    connections: tuple[ConnectionView, ...] = ()
    choose_connections: bool = False
    streams: tuple[StreamView, ...] = ()
    unoffered: tuple[str, ...] = ()
    refused: Text | None = None
    commitments: tuple[str, ...] = ()
    bundles: tuple[BundleView, ...] = ()
    missing: tuple[Text, ...] = ()
    stored: int = 0
    is_worked_out: bool = False
    """Whether its records are made from those that the app may read."""

    @property
    def given(self) -> tuple[StreamView, ...]:
        """Kinds that are given, or would be."""
        return tuple(stream for stream in self.streams if stream.wanted)

    @property
    def unfolded(self) -> bool:
        """Whether its kinds are to be seen: something in them asks to be looked at."""
        asks = any(
            stream.changed or stream.troubled or (stream.given and stream.sensitive)
            for stream in self.streams
        )
        return asks or not self.bundles or any(stream.required for stream in self.streams)

    @property
    def empty(self) -> tuple[StreamView, ...]:
        """Streams that would give nothing now."""
        return tuple(stream for stream in self.streams if stream.empty)

    @property
    def has_time(self) -> bool:
        """Whether some stream can be limited in time."""
        return any(stream.time_field for stream in self.streams)


class BundleView(msgspec.Struct, frozen=True):
    """A ready choice of fields; `chosen` is what is given now."""

    bundle: str
    label: Text
    chosen: bool


class ConnectionView(msgspec.Struct, frozen=True):
    """One account of a source."""

    connection_id: str
    name: str
    chosen: bool


class EarlierView(msgspec.Struct, frozen=True):
    """What the app holds already."""

    held: Holding
    sources: tuple[str, ...]
    ending: bool


def consent_view(
    review: Review,
    evidence: Mapping[StreamKey, Evidence],
    stored_counts: Mapping[StreamKey, int],
    changed: frozenset[SourceStream] = frozenset(),
    values: HeldValues | None = None,
    refused: Mapping[str, RefusedBox] = NOTHING_REFUSED,
) -> ConsentView:
    """The page of a review.

    Shapes: `stored_counts` counts all records, for what is not chosen; `changed` is to be marked.
    """
    shown = Shown(evidence, stored_counts, changed, values or {}, refused)
    sources = tuple(_source(review, offer, shown) for offer in review.offers)
    terms = review.terms
    asked_modes = {offer.selection.access_mode for offer in review.offers}
    return ConsentView(
        handle=review.asked.facts.request_id,
        who=_who(review),
        promises=_promises(review),
        sources=sources,
        several=len(review.offers) > 1,
        picker=review.asked.picker,
        mode=terms.access_mode,
        may_stand=SINGLE_USE not in asked_modes and not review.is_change,
        expiry=_expiry(review, terms.access_mode),
        records_per_day=review.choices.records_per_day,
        asks_for_events=asks_for_events(review.offers),
        events=review.choices.events,
        expires_at_ns=terms.expires_at_ns,
        earlier=tuple(_earlier(review, holding) for holding in review.earlier),
        trains=review.trains,
        training_agreed=review.choices.ai_training,
        missing=tuple(
            consent_words.missing(entry, _offer_of(review, entry.index))
            for entry in _missing(review)
        ),
        revision=review.revision,
        impossible=_impossible(review),
        figures=_figures(sources, evidence),
        adds=additions(review),
        gains=tuple(gain.what for gain in review.gains),
        refused=refused,
        changes=_changed(review),
        gives_nothing=review.artifact is not None
        and not any(found.count or found.at_least for found in evidence.values()),
    )


def _expiry(review: Review, mode: str) -> str:
    chosen = review.choices.expiry
    if chosen in dict(consent_words.ends_of(mode)):
        return chosen or ""
    return AS_AGREED if review.is_change else DEFAULT_EXPIRY[mode]


def _changed(review: Review) -> ChangedView | None:
    holding = review.asked.replaced
    if holding is None:
        return None
    end_ns = holding.expires_at_ns
    end = message("unchanged: no end date")
    if end_ns is not None:
        end = message("as agreed before: %(day)s", day=Day(end_ns))
    return ChangedView(holding, end, review.reaches_further)


def _who(review: Review) -> WhoView:
    client, redirect = review.asked.client, review.asked.redirect_uri
    host = urlsplit(client.client_id).hostname or ""
    _, trust = words.trust_mark(client.registration, client.client_id, client.published_on)
    name = str(review.asked.display.get("name") or client.client_id)
    return WhoView(
        name=name,
        name_checked=client.registration not in (DYNAMIC, DOCUMENT),
        level=_level(review, host),
        trust=trust,
        identity=host if client.registration == DOCUMENT else client.client_id,
        leads_to=None if review.is_change else redirect_place(redirect),
        warnings=() if review.is_change else _warnings(review, host),
        device=_device(review),
    )


def _level(review: Review, host: str) -> str:
    """A document says who an app is only where the answer goes to the domain that it is from."""
    client = review.asked.client
    if client.registration == DYNAMIC:
        return UNKNOWN
    if client.registration != DOCUMENT:
        return OWN
    if not words.leads_to_host(review.asked.redirect_uri, host):
        return CLAIMED
    return KNOWN if client.client_id in PUBLISHED else CHECKED


def _warnings(review: Review, host: str) -> tuple[Text, ...]:
    client, redirect = review.asked.client, review.asked.redirect_uri
    texts: list[Text] = []
    if client.registration == DYNAMIC:
        texts.append(
            message(
                "Nobody has checked who this app is. Allow it only if you started this yourself."
            )
        )
    if client.registration == DOCUMENT:
        redirect_host = urlsplit(redirect or "").hostname
        if redirect_host in words.LOOPBACK_NAMES:
            texts.append(
                message(
                    "Any program on this computer can use this name, and would "
                    "then get this access. Allow it only if you started this "
                    "yourself."
                )
            )
        elif redirect_host and redirect_host != host:
            texts.append(
                message("Your answer goes to a different domain than the one that was checked.")
            )
    return tuple(texts)


def _device(review: Review) -> tuple[tuple[Text, Text], ...]:
    row = review.request
    if row is None or row.flow in ("code", CHANGE):
        return ()
    return (
        (message("Requested from"), row.address or message("unknown network address")),
        (message("Requesting program"), row.user_agent or message("an unknown program")),
        (message("Requested at"), Minute(row.created_at_ns)),
    )


def _promises(review: Review) -> tuple[PromiseView, ...]:
    """What the app declares; entries that declare the same share one."""
    groups: dict[tuple[str, str | None, str], tuple[Text | None, list[str]]] = {}
    for offer in review.offers:
        selection = offer.selection
        retention = consent_words.retention(selection.retention)
        key = (selection.purpose_code, selection.purpose_description, str(retention))
        groups.setdefault(key, (retention, []))[1].append(source_name(offer))
    return tuple(
        PromiseView(
            of=tuple(names) if len(groups) > 1 else (),
            purpose=purpose_label(code),
            code=code,
            description=description,
            retention=retention,
            trains=code == AI_TRAINING,
        )
        for (code, description, _), (retention, names) in groups.items()
    )


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
            chosen=False,
            choosable=False,
            refused=consent_words.ungrantable(offer.refusal),
        )
    choice = review.choices.entry(offer.index)
    is_chosen = choice.keep or not several
    names = account_names(offer)
    chosen = choice.connections or frozenset()
    alone = len(offer.connections) == 1
    settled = all(stream.settled for stream in offer.streams) and choice.connections is None
    return SourceView(
        index=offer.index,
        name=source_name(offer),
        detail=offer.declaration.display_detail,
        publisher=offer.declaration.publisher_id,
        chosen=is_chosen,
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
                prefix=form_prefix(offer, stream),
                changed=(offer.selection.source_id, stream.name) in shown.changed,
            )
            for stream in offer.streams
        ),
        unoffered=tuple(unoffered.name for unoffered in offer.unoffered),
        commitments=selection.commitments or (),
        bundles=_bundles(review, offer),
        missing=tuple(
            consent_words.missing(entry, offer)
            for entry in _missing(review)
            if entry.index == offer.index and entry.what != "entry"
        ),
        stored=sum(
            shown.stored_counts.get((connection, stream.name), 0)
            for connection in names
            for stream in offer.streams
        ),
        is_worked_out=offer.declaration.connector_key == CONNECTOR_KEY,
    )


def _missing(review: Review) -> tuple[Missing, ...]:
    """What must still be chosen, each once: the accounts of a source are, for all of its kinds."""
    return tuple({(entry.what, entry.index): entry for entry in review.missing}.values())


def _bundles(review: Review, offer: EntryOffer) -> tuple[BundleView, ...]:
    granted = {s.name: _granted(review, offer.index, s.name) for s in offer.streams}
    granted_fields = [
        (s, frozenset(terms.fields)) for s in offer.streams if (terms := granted[s.name])
    ]
    return tuple(
        BundleView(
            bundle=bundle,
            label=BUNDLE_WORDS[bundle],
            chosen=bool(granted_fields)
            and all(f == bundle_fields(s, bundle) for s, f in granted_fields),
        )
        for bundle, _ in bundles_of(offer)
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


def _earlier(review: Review, holding: Holding) -> EarlierView:
    names = {o.selection.source_id: source_name(o) for o in review.offers}
    sources = [
        names.get(grant.grant.source.id, grant.connector_key)
        if grant.grant
        else grant.connector_key
        for grant in holding.grants
    ]
    return EarlierView(holding, tuple(sources), holding.id in review.choices.ends)


def _figures(
    sources: tuple[SourceView, ...], evidence: Mapping[StreamKey, Evidence]
) -> tuple[tuple[Text, Text], ...]:
    """The page at a glance: (figure, what it counts)."""
    streams = [stream for source in sources if source.chosen for stream in source.streams]
    granted = [stream for stream in streams if stream.given]
    if not granted:
        return ()
    fields = sum(len(stream.granted_fields) for stream in granted)
    chosen = (source for source in sources if source.chosen)
    names = Joined(tuple(s.name for s in chosen if any(stream.given for stream in s.streams)))
    kinds = plural("from one kind", "from %(num)s kinds", len(granted))
    return (
        (
            consent_words.count(evidence.values()),
            consent_words.span(evidence.values()) or message("records without dates"),
        ),
        (
            counted(fields, "field"),
            Joined((*_texts_and_files(granted), Joined((kinds, names), ": "))),
        ),
    )


def _texts_and_files(granted: Sequence[StreamView]) -> tuple[Text, ...]:
    """Whether full texts and files are given, where these kinds have any to give."""
    texts = [field.chosen for stream in granted for field in stream.fields if field.is_text]
    files = any(field.chosen for stream in granted for field in stream.fields if field.is_file)
    if any(texts):
        return (message("with full texts and files") if files else message("with full texts"),)
    if files:
        return (message("with files"),)
    return (message("without full texts"),) if texts else ()


def _offer_of(review: Review, index: int) -> EntryOffer | None:
    return next((o for o in review.offers if isinstance(o, EntryOffer) and o.index == index), None)


def _impossible(review: Review) -> Text | None:
    refusal = review.impossible
    return None if refusal is None else consent_words.ungrantable(refusal)
