"""Grants made on the machine that holds the store, without a browser.

Rule: the same resolution, narrowing, artifact and rows as the page; here decision and redemption
coincide in one transaction, and being able to write the store is the authority.
Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import AmbiguousConnection, OwnerSessionRequired
from pdpp_kernel.oauth_errors import (
    AiTrainingConsentRequired,
    InvalidAuthorizationDetails,
    NotANarrowing,
    RequestClosed,
    ReviewStale,
)
from personal_server.consent.authorization_requests import SCOPE_OFFLINE, SCOPE_READ
from personal_server.consent.choices import Choices
from personal_server.consent.client_registration import LOCAL, local_client_id
from personal_server.consent.credentials import CLIENT_REFERENCE, REQUEST, RandomBytes, new_id
from personal_server.consent.narrowings import Narrowing, narrowed
from personal_server.consent.offers import Ungrantable
from personal_server.consent.review import RequestFacts
from personal_server.consent.selections import Selection
from personal_server.domain.connection import Connection
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.codes import consume
from personal_server.granting.decisions import GrantIds, issue_grants, limit_as_chosen
from personal_server.granting.grant_changes import change_of, change_request
from personal_server.granting.holdings import active_held
from personal_server.granting.reviews import (
    Review,
    ReviewRequest,
    all_choices,
    asked_of,
    facts_of,
    review_of,
)
from personal_server.granting.tokens import Entitlement, Issued, mint
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)


class LocalRequest(msgspec.Struct, frozen=True):
    """What the owner asks for on the command line.

    Shapes: `selections` from `parse_selections`; `choices` `None` for all that was asked, with
        `mode` and `expiry` beside; `origin` is the public origin the credential is for.
    """

    client_name: str
    origin: str
    selections: tuple[Selection, ...]
    mode: str | None = None
    expiry: str | None = None
    ai_training: bool = False


class LocalChange(msgspec.Struct, frozen=True):
    """What is to be left of a grant or package."""

    held_id: str
    to: Narrowing


class LocalGranting:
    """Reviews and grants in one process with the store."""

    def __init__(
        self,
        store: AuthorizationStore,
        catalogs: Catalogs,
        clock: Callable[[], int],
        random_bytes: RandomBytes,
    ) -> None:
        self._store = store
        self._catalogs = catalogs
        self._clock = clock
        self._random_bytes = random_bytes

    def review(self, request: LocalRequest) -> Review:
        """What would be granted, to be shown before it is.

        Raises: InvalidAuthorizationDetails, NotANarrowing; AmbiguousConnection with
            `available_connections` if several connections could be meant and none is named.
        """
        request_id = new_id(REQUEST, self._random_bytes)
        client = _client_row(request, self._random_bytes, self._clock())
        with self._store.read() as reader:
            registered = reader.get(ClientRow, ClientRow.client_id.equals(client.client_id))
            return self._review(reader, request, registered or client, request_id, self._clock())

    def approve(self, request: LocalRequest, reviewed: Review, acting: Acting) -> Issued:
        """Grant exactly what was shown, and mint its token.

        Raises: ReviewStale, AiTrainingConsentRequired, and what `review` raises.
        """
        now_ns = self._clock()
        facts = reviewed.asked.facts
        with self._store.write() as writer:
            client = writer.get(
                ClientRow, ClientRow.client_id.equals(reviewed.asked.client.client_id)
            )
            if client is None:
                client = reviewed.asked.client
                writer.insert(client)
                registered = Subject(client_id=client.client_id)
                audit(writer, "client.registered", acting, now_ns, registered)
            opened_at_ns = reviewed.asked.opened_at_ns
            review = self._review(writer, request, client, facts.request_id, opened_at_ns)
            if review.revision != reviewed.revision or facts_of(review) != facts_of(reviewed):
                raise ReviewStale("A source changed meanwhile. Run the command again.")
            if review.trains and not request.ai_training:
                raise AiTrainingConsentRequired(
                    "Add --ai-training-consent to allow the training of AI models."
                )
            ids = issue_grants(writer, review, acting, "local_cli", self._random_bytes, now_ns)
            limit_as_chosen(writer, review.choices, ids, acting, now_ns)
            entitled = Entitlement(
                kind="mcp_package" if ids.package_id else "client",
                client_id=client.client_id,
                origin=request.origin,
                resource=request.origin,
                scope=f"{SCOPE_READ} {SCOPE_OFFLINE}",
                access_mode=review.terms.access_mode,
                grant_id=ids.grant_id,
                package_id=ids.package_id,
                expires_at_ns=review.terms.expires_at_ns,
            )
            grant_ids = tuple(grant.grant_id for grant in ids.grants)
            consume(writer, grant_ids, review.terms.access_mode, acting, now_ns)
            issued = mint(writer, entitled, self._random_bytes, now_ns)
            subject = Subject(client.client_id, ids.grant_id, ids.package_id)
            audit(writer, "token.issued", acting, now_ns, subject)
        return replace(issued, grant_ids=grant_ids, details=ids.details)

    def review_change(self, change: LocalChange) -> Review:
        """What would be left of an access, to be shown before it is changed.

        Raises: NotFound, RequestClosed, NotANarrowing; OwnerSessionRequired for what gives more or
            for longer, which is decided on the page.
        """
        now_ns = self._clock()
        with self._store.read() as reader:
            row = change_request(reader, change.held_id, self._random_bytes, now_ns)
            return self._change_review(reader, row, change.to, now_ns)

    def change(self, change: LocalChange, reviewed: Review, acting: Acting) -> GrantIds:
        """Put exactly what was shown in the place of what was given.

        Raises: ReviewStale, and what `review_change` raises.
        """
        now_ns = self._clock()
        if reviewed.request is None:
            raise AssertionError("What is changed was previewed.")
        with self._store.write() as writer:
            review = self._change_review(writer, reviewed.request, change.to, now_ns)
            if review.revision != reviewed.revision or facts_of(review) != facts_of(reviewed):
                raise ReviewStale(
                    "The access or a source changed meanwhile. Run the command again."
                )
            return issue_grants(writer, review, acting, "local_cli", self._random_bytes, now_ns)

    def _change_review(
        self, reader: AuthorizationReader, row: RequestRow, to: Narrowing, now_ns: int
    ) -> Review:
        client = reader.get(ClientRow, ClientRow.client_id.equals(row.client_id))
        change = change_of(reader, row, now_ns)
        if client is None or change is None:
            raise RequestClosed("The app of this access no longer exists.")
        request = asked_of(self._store.subject_id, row, client, change)
        catalog = self._catalogs()
        first = review_of(request, catalog, None)
        choices = narrowed(first.offers, change.replaced.living_grants, to)
        review = review_of(request, catalog, choices, request=row)
        if review.missing:
            raise NotANarrowing(
                "This change would leave nothing to read.",
                next_step="To end the access: pdpp grant revoke ID.",
            )
        if review.reaches_further:
            page = f"{row.origin}/owner/access/{change.replaced.id}"
            raise OwnerSessionRequired(
                "To allow more, or for longer, you must be signed in.",
                next_step=f"Change the access on its page: {page}",
            )
        return review

    def _review(
        self,
        reader: AuthorizationReader,
        ask: LocalRequest,
        client: ClientRow,
        request_id: str,
        opened_at_ns: int,
    ) -> Review:
        facts = RequestFacts(request_id, ask.origin, self._store.subject_id, ask.origin)
        display = {"name": client.name}
        request = ReviewRequest(facts, client, display, ask.selections, opened_at_ns)
        catalog = self._catalogs()
        earlier = active_held(reader, client.client_id, self._clock())
        first = review_of(request, catalog, Choices(mode=ask.mode, expiry=ask.expiry))
        for offer in first.offers:  # nobody is here to see that a part was left out
            if isinstance(offer, Ungrantable):
                raise _ungrantable(offer, len(first.offers))
        choices = replace(
            all_choices(first.offers),
            mode=ask.mode,
            expiry=ask.expiry,
            ai_training=ask.ai_training,
        )
        review = review_of(request, catalog, choices, earlier=earlier)
        for missing in review.missing:
            if missing.what == "connection":
                raise _ambiguous(review, missing.index)
            raise NotANarrowing("The request leaves nothing to grant.")
        return review


def _ungrantable(offer: Ungrantable, entries: int) -> InvalidAuthorizationDetails:
    refusal = offer.refusal
    if entries == 1:
        return refusal
    return InvalidAuthorizationDetails(
        f"Entry {offer.index + 1} of {entries} cannot be granted: {refusal.message}",
        param=refusal.param,
        reason=refusal.reason,
        next_step="Leave the entry out, or correct it. Nothing was granted.",
    )


def _client_row(request: LocalRequest, random_bytes: RandomBytes, now_ns: int) -> ClientRow:
    return ClientRow(
        client_id=local_client_id(request.client_name),
        client_ref=new_id(CLIENT_REFERENCE, random_bytes),
        registration=LOCAL,
        name=request.client_name,
        registered_at_ns=now_ns,
    )


def _ambiguous(review: Review, index: int) -> AmbiguousConnection:
    offer = next(candidate for candidate in review.offers if candidate.index == index)
    connections: Sequence[Connection] = getattr(offer, "connections", ())
    return AmbiguousConnection(
        "Several accounts match. Name one or more with --connection.",
        param="connection",
        available_connections=[
            {
                "connection_id": connection.connection_id,
                "connector_key": connection.connector_key,
                "display_name": connection.display_name,
            }
            for connection in connections
        ],
    )
