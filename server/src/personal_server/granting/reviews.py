"""What the owner is asked: a request resolved against the sources, with choices applied.

Rule: page and command line judge by the same function; a review without `missing` has an artifact
and a revision, and only such a one can be approved.
Source: docs/contract/authorization-server.md 4.3, 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails, NotANarrowing
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.client_registration import client_display
from personal_server.consent.gains import Gain, gains
from personal_server.consent.offers import EntryOffer, Ungrantable, resolve_request
from personal_server.consent.review import (
    Artifact,
    ClientFacts,
    RequestFacts,
    build_artifact,
    facts_text,
    revision_of,
    trains,
)
from personal_server.consent.selections import Selection, parse_stored
from personal_server.consent.successors import choices_like
from personal_server.consent.terms import (
    AS_AGREED,
    AgreedTerms,
    Missing,
    Terms,
    asks_for_events,
    grant_of,
    narrow,
)
from personal_server.domain.grant import ACTIVE, MemberGrant, Resolved
from personal_server.granting.grant_changes import AccessChange
from personal_server.granting.holdings import Holding
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.catalog import Catalog


class ReviewRequest(msgspec.Struct, frozen=True):
    """A request with all that is needed to review it.

    `opened_at_ns` is when it was first opened: ends count from there; `replaced` is what a change
    of the owner's changes.
    """

    facts: RequestFacts
    client: ClientRow
    display: Mapping[str, object]
    selections: tuple[Selection, ...]
    opened_at_ns: int
    redirect_uri: str | None = None
    auth_method: str = "none"
    picker: bool = False
    replaced: Holding | None = None

    @property
    def client_facts(self) -> ClientFacts:
        """The client as the decision binds it."""
        return ClientFacts(
            client_id=self.client.client_id,
            registration=self.client.registration,
            client_display=self.display,
            redirect_uri=self.redirect_uri,
            auth_method=self.auth_method,
        )


class Review(msgspec.Struct, frozen=True):
    """One state of the consent page.

    Shapes: `offers` at their widest, `terms` after the choices; `artifact` and `revision` are
        `None` while something is `missing`; `request` is the row as it stood before, with the
        `revision`, `shown` and `facts` of the page that was shown last; `earlier` is what the
        client holds now.
    """

    asked: ReviewRequest
    request: RequestRow | None
    offers: tuple[EntryOffer | Ungrantable, ...]
    choices: Choices
    terms: Terms
    artifact: Artifact | None
    revision: str | None
    earlier: tuple[Holding, ...] = ()

    @property
    def missing(self) -> tuple[Missing, ...]:
        """What must still be chosen."""
        return self.terms.missing

    @property
    def impossible(self) -> InvalidAuthorizationDetails | None:
        """Why nothing at all can be granted, if so."""
        grantable = any(isinstance(offer, EntryOffer) for offer in self.offers)
        if grantable:
            return None
        refusals = [offer.refusal for offer in self.offers if isinstance(offer, Ungrantable)]
        nothing = InvalidAuthorizationDetails(
            "This server has no sources yet.", reason="no_connection"
        )
        return refusals[0] if refusals else nothing

    @property
    def is_change(self) -> bool:
        """Whether an access is changed, and not asked for."""
        return self.asked.replaced is not None

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What no grant that its client holds, or that is changed, reaches yet."""
        if self.asked.replaced is not None:
            return tuple(gains(self.terms.entries, self.asked.replaced.living_grants))
        grants_held = [view for holding in self.earlier for view in holding.grants]
        active = [
            view.grant for view in grants_held if view.grant is not None and view.status == "active"
        ]
        return tuple(gains(self.terms.entries, active))

    @property
    def reaches_further(self) -> bool:
        """Whether more is given than before, or for longer: only a fresh sign-in may do that."""
        replaced = self.asked.replaced
        if replaced is None or self.gains:
            return True
        end, before = self.terms.expires_at_ns, replaced.expires_at_ns
        return before is not None and (end is None or end > before)

    @property
    def trains(self) -> bool:
        """Whether approving means consent to training."""
        return trains(self.terms)

    def prospective(self) -> Resolved:
        """What a token of this review would stand for: the authority of counts and samples."""
        grants = tuple(
            MemberGrant(
                grant_id=f"review:{entry.offer.index}",
                grant=grant_of(
                    entry,
                    self.terms,
                    grant_id=f"review:{entry.offer.index}",
                    subject_id=self.asked.facts.subject_id,
                    client_id=self.asked.client.client_id,
                    client_display=self.asked.display,
                    now_ns=self.asked.opened_at_ns,
                ),
                connector_key=entry.offer.declaration.connector_key,
                status=ACTIVE,
            )
            for entry in self.terms.entries
            if entry.streams
        )
        package = len(grants) > 1
        return Resolved(
            kind="mcp_package" if package else "client",
            subject_id=self.asked.facts.subject_id,
            client_id=self.asked.client.client_id,
            token_reference="",
            resource=self.asked.facts.resource,
            expires_at_ns=self.terms.expires_at_ns or 0,
            grants=grants,
            package_id="review" if package else None,
        )


def asked_of(
    subject_id: str, row: RequestRow, client: ClientRow, change: AccessChange | None = None
) -> ReviewRequest:
    """A stored request as it is reviewed; it has been opened.

    A `change` asks for all that may be given in the place of what it changes.
    """
    replaced = None if change is None else change.replaced
    selections = parse_stored(row.details) if row.details else ()
    return ReviewRequest(
        facts=RequestFacts(
            row.request_id, row.origin, subject_id, row.resource, replaced and replaced.id
        ),
        client=client,
        display=client_display(client.client_id, client.name, client.display, row.display),
        selections=selections if change is None else change.selections,
        opened_at_ns=row.opened_at_ns or row.created_at_ns,
        redirect_uri=row.redirect_uri,
        auth_method=client.auth_method,
        picker=row.picker,
        replaced=replaced,
    )


def render_choices(choices: Choices) -> str:
    """Choices as they are kept with their request until it is decided."""
    return msgspec.json.encode(choices).decode()


def stored_choices(text: str) -> Choices:
    """The choices that were kept.  Raises: NotANarrowing, if they are not ours."""
    try:
        return msgspec.json.decode(text, type=Choices)
    except msgspec.ValidationError as error:
        raise NotANarrowing("Your earlier choices cannot be read.") from error


def first_choices(offers: Sequence[EntryOffer | Ungrantable], *, picker: bool) -> Choices:
    """What is ticked when the page first opens: what the client asked for, optional things not.

    Source: docs/contract/authorization-server.md 7.6.
    """
    return Choices(
        entries={
            offer.index: EntryChoice(
                keep=not picker,
                streams={stream.name: StreamChoice(stream.required) for stream in offer.streams},
            )
            for offer in offers
            if isinstance(offer, EntryOffer)
        },
        events=not picker and asks_for_events(offers),
    )


def all_choices(offers: Sequence[EntryOffer | Ungrantable]) -> Choices:
    """Everything that was asked for, optional streams too."""
    first = first_choices(offers, picker=False)
    return replace(
        first,
        entries={
            index: replace(
                entry, streams={n: replace(s, wanted=True) for n, s in entry.streams.items()}
            )
            for index, entry in first.entries.items()
        },
    )


def review_of(
    asked: ReviewRequest,
    catalog: Catalog,
    choices: Choices | None,
    *,
    earlier: tuple[Holding, ...] = (),
    request: RequestRow | None = None,
) -> Review:
    """The review of a request under these choices (`None`: what is first ticked).

    Raises: NotANarrowing.
    """
    offers = resolve_request(asked.selections, catalog.declarations, catalog.connections)
    replaced, agreed = asked.replaced, None
    if replaced is not None:
        agreed = AgreedTerms(replaced.expires_at_ns)
    if choices is not None:
        chosen = choices
    elif replaced is not None:
        chosen = Choices(choices_like(offers, replaced.living_grants), expiry=AS_AGREED)
    else:
        chosen = first_choices(offers, picker=asked.picker)
    if not set(chosen.ends) <= {earlier_ids.id for earlier_ids in earlier}:
        raise NotANarrowing(
            "The form would end an access that this app does not have.", param="end"
        )
    terms = narrow(offers, chosen, asked.opened_at_ns, agreed)
    complete = not terms.missing
    artifact = build_artifact(asked.facts, asked.client_facts, terms) if complete else None
    return Review(
        asked=asked,
        request=request,
        offers=offers,
        choices=chosen,
        terms=terms,
        artifact=artifact,
        revision=None if artifact is None else revision_of(artifact),
        earlier=earlier,
    )


def facts_of(review: Review) -> str:
    """What the owner did not choose and must not change underneath, as canonical JSON."""
    request = review.asked
    client = request.client_facts
    return facts_text(client, request.client.redirect_uris, review.offers, request.facts.replaces)
