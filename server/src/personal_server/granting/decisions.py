"""From a request to a decision: opened, previewed, approved or denied.

Rule: `approve` is one transaction; what it fixes is exactly the artifact that was shown, or
nothing is written.  No token exists after it.
Source: docs/contract/authorization-server.md 6; docs/decisions.md C16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace

import msgspec

from pdpp_kernel.errors import NotFound
from pdpp_kernel.oauth_errors import (
    AccessDenied,
    AiTrainingConsentRequired,
    ApprovalConflict,
    NotANarrowing,
    OAuthRefusal,
    RequestClosed,
    ReviewChanged,
    ReviewStale,
)
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.choices import Choices
from personal_server.consent.credentials import (
    AUTHORIZATION_CODE,
    GRANT,
    PACKAGE,
    RandomBytes,
    new_id,
    new_secret,
    secret_hash,
)
from personal_server.consent.offers import picker_details, picker_selections
from personal_server.consent.redirects import matches, with_parameters
from personal_server.consent.review import canonical
from personal_server.consent.terms import grant_of, render_details
from personal_server.domain.grant import Grant, render_grant
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.grant_changes import CHANGE, change_of
from personal_server.granting.grant_successors import hand_over, succeeding_grant
from personal_server.granting.holdings import Holding, active_held
from personal_server.granting.pending_requests import COLLECT_NS, OWNER_DEVICE
from personal_server.granting.reading_alarms import limit_reading
from personal_server.granting.reviews import (
    Review,
    asked_of,
    facts_of,
    render_choices,
    review_of,
    stored_choices,
)
from personal_server.granting.revocations import end_access
from personal_server.granting.transitions import close_request, transition
from personal_server.storage.authorization_rows import (
    ClientRow,
    CodeRow,
    GrantRow,
    JsonObject,
    PackageMemberRow,
    PackageRow,
    ReadingLimitsRow,
    RequestRow,
    ReviewArtifactRow,
)
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
)

CODE_NS = 120 * NANOSECONDS


class GrantIds(msgspec.Struct, frozen=True):
    """What was made: one grant, or a package; `grants` in the order of the request."""

    grants: tuple[Grant, ...]
    grant_id: str | None
    package_id: str | None

    @property
    def details(self) -> tuple[dict[str, object], ...]:
        """The grants as `authorization_details`."""
        return tuple(render_details(grant) for grant in self.grants)


class Decided(Unprinted, frozen=True):
    """How a decision goes back: by redirect (code flow), or to a device that polls.

    `held_id` is what a change of the owner's came to: the successor, or what it was.
    """

    flow: str
    redirect_to: str | None = None
    held_id: str | None = None


class Granting:
    """Reviews and decides requests.  `catalogs` looks at the sources, `clock` gives UTC ns."""

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

    def view(self, request_id: str, acting: Acting) -> Review:
        """The request with what was chosen so far, if that can still be meant.

        The first look opens it.

        Raises: NotFound, RequestClosed.
        """
        return self._show(request_id, None, acting)

    def choose(self, request_id: str, choices: Choices, acting: Acting) -> Review:
        """Keep these choices, and the review under them as what the owner was shown.

        Raises: NotFound, RequestClosed, NotANarrowing.
        """
        return self._show(request_id, choices, acting)

    def asked(self, request_id: str) -> Review:
        """An opened request as it was asked; looking changes nothing of what was shown.

        Raises: NotFound, RequestClosed.
        """
        now_ns = self._clock()
        with self._store.read() as reader:
            row = _selecting(self._pending(reader, request_id, now_ns))
            if row.opened_at_ns is None:
                raise NotFound("Open the request in the browser before you decide.")
            return self._review(reader, row, None, now_ns)

    def approve(
        self,
        request_id: str,
        choices: Choices,
        revision: str,
        acting: Acting,
        signature: JsonObject | None = None,
    ) -> Decided:
        """Fix exactly what was shown; `signature` is what the owner's passkey signed for it.

        Raises: NotFound, RequestClosed, ApprovalConflict, ReviewChanged, ReviewStale,
            NotANarrowing, AiTrainingConsentRequired.
        """
        try:
            return self._approve(request_id, choices, revision, acting, signature)
        except (ReviewStale, ReviewChanged):
            with self._store.write() as writer:
                audit(writer, "request.stale", acting, self._clock(), request=request_id)
            raise

    def _approve(
        self,
        request_id: str,
        choices: Choices,
        revision: str,
        acting: Acting,
        signature: JsonObject | None,
    ) -> Decided:
        now_ns = self._clock()
        with self._store.write() as writer:
            row = _selecting(self._decidable(writer, request_id, now_ns))
            if row.facts not in (None, facts_of(self._review(writer, row, None, now_ns))):
                raise ReviewStale("A source or the app changed. Check again, then decide.")
            review = self._review(writer, row, choices, now_ns)
            _check(review, row, revision)
            decided = [RequestRow.decided_at_ns.to(now_ns)]
            if not close_request(
                writer,
                "approved",
                now_ns,
                RequestRow.request_id.equals(request_id),
                columns=decided,
            ):
                raise ApprovalConflict("This request was decided already.")
            random_bytes = self._random_bytes
            ids = issue_grants(writer, review, acting, "page", random_bytes, now_ns, signature)
            subject = Subject(row.client_id, ids.grant_id, ids.package_id)
            audit(writer, "request.approved", acting, now_ns, subject, request=request_id)
            limit_as_chosen(writer, choices, ids, acting, now_ns)
            if row.flow == CHANGE:
                is_it = RequestRow.request_id.equals(request_id)
                transition(writer, RequestRow, "approved", "redeemed", now_ns, is_it)
                return Decided(row.flow, held_id=ids.package_id or ids.grant_id)
            if row.flow == "code":
                return self._with_code(writer, row, ids, now_ns)
            self._for_device(writer, row, ids, now_ns)
            return Decided(row.flow)

    def deny(self, request_id: str, acting: Acting) -> Decided:
        """Refuse, or go back from a request that cannot be granted.

        Raises: NotFound, RequestClosed, ApprovalConflict.
        """
        now_ns = self._clock()
        with self._store.write() as writer:
            row = self._decidable(writer, request_id, now_ns)
            impossible = self._review(writer, row, None, now_ns).impossible
            refusal = AccessDenied("The owner denied the request.")
            answer = refusal if impossible is None else impossible.for_client
            decided = [RequestRow.decided_at_ns.to(now_ns)]
            close_request(
                writer, "denied", now_ns, RequestRow.request_id.equals(request_id), columns=decided
            )
            subject = Subject(client_id=row.client_id)
            audit(writer, "request.denied", acting, now_ns, subject, request=request_id)
        return Decided(row.flow, refused_redirect(row, answer), row.replaces)

    def _show(self, request_id: str, choices: Choices | None, acting: Acting) -> Review:
        now_ns = self._clock()
        with self._store.write() as writer:
            row = self._open(writer, request_id, acting, now_ns)
            if choices is None:
                review = self._review_so_far(writer, row, now_ns)
            else:
                review = self._review(writer, row, choices, now_ns)
            to = [
                RequestRow.revision.to(review.revision),
                RequestRow.shown.to(review.artifact),
                RequestRow.facts.to(facts_of(review)),
            ]
            if choices is not None:
                to.append(RequestRow.choices.to(render_choices(choices)))
            writer.change(
                RequestRow,
                to,
                RequestRow.request_id.equals(request_id),
                RequestRow.status.equals("pending"),
            )
            if choices is not None:
                subject = Subject(client_id=row.client_id)
                audit(writer, "request.previewed", acting, now_ns, subject, request=request_id)
        return review

    def _review_so_far(self, reader: AuthorizationReader, row: RequestRow, now_ns: int) -> Review:
        """Choices that what changed has made impossible give way to those of the request."""
        try:
            chosen = None if row.choices is None else stored_choices(row.choices)
            return self._review(reader, row, chosen, now_ns)
        except NotANarrowing:
            return self._review(reader, row, None, now_ns)

    def _open(
        self, writer: AuthorizationWriter, request_id: str, acting: Acting, now_ns: int
    ) -> RequestRow:
        row = _selecting(self._pending(writer, request_id, now_ns))
        if row.opened_at_ns is not None:
            return row
        opened = dataclasses.replace(row, opened_at_ns=now_ns)
        to = [RequestRow.opened_at_ns.to(now_ns)]
        if row.picker:
            catalog = self._catalogs()
            picked = picker_selections(catalog.declarations, catalog.connections)
            opened = replace(opened, details=picker_details(picked))
            to.append(RequestRow.details.to(opened.details))
        writer.change(
            RequestRow,
            to,
            RequestRow.request_id.equals(request_id),
            RequestRow.opened_at_ns.equals(None),
        )
        subject = Subject(client_id=row.client_id)
        audit(writer, "request.opened", acting, now_ns, subject, request=request_id)
        return opened

    def _pending(self, reader: AuthorizationReader, request_id: str, now_ns: int) -> RequestRow:
        row = reader.get(RequestRow, RequestRow.request_id.equals(request_id))
        if row is None:
            raise NotFound("There is no such request. Start again from the app.")
        if row.status != "pending":
            raise RequestClosed("This request was decided already. Start again from the app.")
        if row.expires_at_ns <= now_ns:
            raise _expired(row)
        return row

    def _decidable(self, reader: AuthorizationReader, request_id: str, now_ns: int) -> RequestRow:
        row = reader.get(RequestRow, RequestRow.request_id.equals(request_id))
        if row is not None and row.status in ("approved", "denied", "redeemed"):
            raise ApprovalConflict("This request was decided already.")
        return self._pending(reader, request_id, now_ns)

    def _review(
        self,
        reader: AuthorizationReader,
        row: RequestRow,
        choices: Choices | None,
        now_ns: int,
    ) -> Review:
        client = reader.get(ClientRow, ClientRow.client_id.equals(row.client_id))
        if client is None or client.blocked_at_ns is not None:
            raise RequestClosed("The owner blocked this app, so the app cannot ask for access.")
        if row.redirect_uri is not None and not matches(client.redirect_uris, row.redirect_uri):
            raise RequestClosed(
                "The app changed the addresses to which answers go. Start again from the app."
            )
        catalog = self._catalogs()
        change = change_of(reader, row, now_ns)
        request = asked_of(self._store.subject_id, row, client, change)
        earlier = () if change is not None else active_held(reader, row.client_id, now_ns)
        return review_of(request, catalog, choices, earlier=earlier, request=row)

    def _with_code(
        self, writer: AuthorizationWriter, row: RequestRow, ids: GrantIds, now_ns: int
    ) -> Decided:
        code = new_secret(AUTHORIZATION_CODE, self._random_bytes)
        writer.insert(
            CodeRow(
                code_hash=secret_hash(code),
                request_id=row.request_id,
                client_id=row.client_id,
                redirect_uri=row.redirect_uri or "",
                code_challenge=row.code_challenge or "",
                jkt=row.jkt,
                resource=row.resource,
                scope=row.scope,
                origin=row.origin,
                expires_at_ns=now_ns + CODE_NS,
                grant_id=ids.grant_id,
                package_id=ids.package_id,
            )
        )
        answer = {"code": code, "state": row.state, "iss": row.origin}
        return Decided(row.flow, with_parameters(row.redirect_uri or "", answer))

    def _for_device(
        self, writer: AuthorizationWriter, row: RequestRow, ids: GrantIds, now_ns: int
    ) -> None:
        to = [
            RequestRow.grant_id.to(ids.grant_id),
            RequestRow.package_id.to(ids.package_id),
            RequestRow.collect_until_ns.to(max(row.expires_at_ns, now_ns + COLLECT_NS)),
        ]
        writer.change(RequestRow, to, RequestRow.request_id.equals(row.request_id))


def limit_as_chosen(
    writer: AuthorizationWriter, choices: Choices, ids: GrantIds, acting: Acting, now_ns: int
) -> None:
    """What was decided beside the grants, and can be changed later."""
    if choices.records_per_day is not None or choices.events:
        limits = ReadingLimitsRow(
            held_id=ids.package_id or ids.grant_id or "",
            records_per_day=choices.records_per_day,
            events=choices.events or None,
        )
        limit_reading(writer, limits, acting, now_ns)


def issue_grants(
    writer: AuthorizationWriter,
    review: Review,
    acting: Acting,
    channel: str,
    random_bytes: RandomBytes,
    now_ns: int,
    signature: JsonObject | None = None,
) -> GrantIds:
    """Write what a complete review decides: artifact, grants, their package, and what it ends.

    Called inside the transaction of the decision, by the page and by the command line alike.  What
    a change makes succeeds what is changed, and takes over all that belongs to it.
    Source: docs/contract/authorization-server.md 6.3, 11.
    """
    revision, artifact = review.revision, review.artifact
    assert revision is not None  # noqa: S101 (only complete reviews are issued)
    assert artifact is not None  # noqa: S101 (the same)
    writer.insert(
        ReviewArtifactRow(
            revision=revision,
            artifact=canonical(artifact),
            request_id=review.asked.facts.request_id,
            decided_at_ns=now_ns,
            channel=channel,
            signature=signature,
        )
    )
    client_id, replaced = review.asked.client.client_id, review.asked.replaced
    grants = tuple(
        grant_of(
            entry,
            review.terms,
            grant_id=new_id(GRANT, random_bytes),
            subject_id=review.asked.facts.subject_id,
            client_id=client_id,
            client_display=review.asked.display,
            now_ns=now_ns,
        )
        for entry in review.terms.entries
    )
    members = _members_by_source(replaced)
    succeeded: dict[str, str] = {}
    for grant, entry in zip(grants, review.terms.entries, strict=True):
        row = _grant_row(review, grant, entry.offer.declaration.connector_key, now_ns)
        subject = Subject(client_id, grant.grant_id)
        before = members.get(grant.source.id)
        if before is None:
            event, detail = "grant.created", {"access_mode": grant.access_mode}
        else:
            row, succeeded[before] = succeeding_grant(writer, row, before), grant.grant_id
            event, detail = "grant.changed", {"replaces": before}
        writer.insert(row)
        audit(writer, event, acting, now_ns, subject, **detail)
    package_id = _package(writer, review, grants, acting, random_bytes, now_ns)
    if replaced is not None:
        held_id = package_id or grants[0].grant_id
        ends_ns = review.terms.expires_at_ns
        hand_over(writer, replaced, held_id, succeeded, ends_ns, acting, now_ns)
    for held_id in review.terms.ends:
        end_access(writer, held_id, "replaced", acting, now_ns)
    writer.change(
        ClientRow,
        [ClientRow.first_approved_at_ns.to(now_ns)],
        ClientRow.client_id.equals(client_id),
        ClientRow.first_approved_at_ns.equals(None),
    )
    return GrantIds(grants, None if package_id else grants[0].grant_id, package_id)


def refused_redirect(row: RequestRow, refusal: OAuthRefusal) -> str | None:
    """Where a refused browser goes: back to the app with the error, `state` and `iss`."""
    if row.redirect_uri is None:
        return None
    return with_parameters(row.redirect_uri, refusal_parameters(refusal, row.state, row.origin))


def refusal_parameters(
    refusal: OAuthRefusal, state: str | None, issuer: str
) -> dict[str, str | None]:
    """The parameters of an error redirect; reason and pointer stand first in the description."""
    marks = [mark for mark in (refusal.reason, refusal.param) if mark]
    description = f"{' '.join(marks)}: {refusal.message}" if marks else refusal.message
    return {
        "error": refusal.code,
        "error_description": description,
        "state": state,
        "iss": issuer,
    }


def _members_by_source(replaced: Holding | None) -> dict[str, str]:
    """The living grants of what is changed, by the id of their source."""
    living = () if replaced is None else replaced.living_grants
    return {grant.source.id: grant.grant_id for grant in living}


def _grant_row(review: Review, grant: Grant, connector_key: str, now_ns: int) -> GrantRow:
    return GrantRow(
        grant_id=grant.grant_id,
        grant=render_grant(grant),
        client_id=grant.client_id,
        connector_key=connector_key,
        access_mode=grant.access_mode,
        issued_at_ns=now_ns,
        expires_at_ns=review.terms.expires_at_ns,
        revision=review.revision or "",
    )


def _package(
    writer: AuthorizationWriter,
    review: Review,
    grants: tuple[Grant, ...],
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> str | None:
    """The package of several grants; what was one stays one, also with one grant left."""
    client_id, replaced = review.asked.client.client_id, review.asked.replaced
    before = replaced if replaced is not None and replaced.kind == "mcp_package" else None
    if before is None and len(grants) == 1:
        return None
    package_id = new_id(PACKAGE, random_bytes)
    row = PackageRow(
        package_id=package_id,
        client_id=client_id,
        created_at_ns=now_ns,
        revision=review.revision or "",
    )
    if before is not None:
        lineage = before.lineage or before.id
        row = dataclasses.replace(row, replaces=before.id, lineage=lineage, name=before.name)
    writer.insert(row)
    for position, grant in enumerate(grants):
        writer.insert(
            PackageMemberRow(package_id=package_id, position=position, grant_id=grant.grant_id)
        )
    subject = Subject(client_id, package_id=package_id)
    event = "package.created" if before is None else "package.changed"
    detail = {} if before is None else {"replaces": before.id}
    audit(writer, event, acting, now_ns, subject, members=len(grants), **detail)
    return package_id


def _selecting(row: RequestRow) -> RequestRow:
    """A request for records; letting a device act as the owner is decided on its own page."""
    if row.flow == OWNER_DEVICE:
        raise NotFound("There is no such request. Start again on the device that asks.")
    return row


def _check(review: Review, row: RequestRow, revision: str) -> None:
    """Refuse to approve anything but the complete artifact that was shown last."""
    if review.missing:
        raise NotANarrowing("Some choices are still open. Make them, then allow this.")
    if review.trains and not review.choices.ai_training:
        raise AiTrainingConsentRequired(
            "To allow AI training, tick the box for AI training.", param="ai_training"
        )
    if not revision == review.revision == row.revision:
        raise ReviewChanged("Your choices differ from the preview. Please check them again.")


def _expired(row: RequestRow) -> RequestClosed:
    back = refused_redirect(row, AccessDenied("The request for access expired."))
    return RequestClosed("This request is too old. Start again from the app.", back_to_app=back)
