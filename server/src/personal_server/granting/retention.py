"""What time ends, and what is forgotten.

Sweeping ends requests, codes and idle families, and drops rows that nobody needs any more;
forgetting drops old changes, old disclosures and bytes that no record came to reference.
Rule: records, tombstones' keys, grants, packages and artifacts are never forgotten by age; a grant
that can never again have a token does not linger as active.
Source: docs/contract/authorization-server.md 11.1, 18 (sweep); docs/contract/resource-server.md 8,
12.2, 14.3.
"""

from __future__ import annotations

import msgspec

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.granting.audit import SERVER, Subject, audit
from personal_server.granting.clients import purge_clients
from personal_server.granting.reading_alarms import forget_reading
from personal_server.granting.revocations import end_decided, end_family
from personal_server.granting.tokens import FAMILY_IDLE_NS
from personal_server.granting.transitions import close_request, transition
from personal_server.storage.authorization_rows import (
    AssertionIdRow,
    ClientDocumentRow,
    CodeRow,
    EventRow,
    FamilyRow,
    GrantRow,
    OwnerLinkRow,
    OwnerSessionRow,
    RefreshTokenRow,
    RequestRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.storage.ports.whole_store import RecordStore

SWEEP_SECONDS = 600
FORGET_SECONDS = 3_600
KEPT_NS = DAY_NANOSECONDS
KEPT_TOKENS_NS = 30 * DAY_NANOSECONDS
SESSION_NS = 7 * DAY_NANOSECONDS
UNREFERENCED_BLOB_NS = DAY_NANOSECONDS


class Retention(msgspec.Struct, frozen=True):
    """For how long what is kept.  Units: days; 0 is for ever, of details not at all."""

    history_days: int = 180
    disclosure_days: int = 400
    audit_days: int = 1_095
    detail_days: int = 30


def sweep(store: AuthorizationStore, now_ns: int) -> None:
    """End what is over and forget what ended long ago."""
    with store.write() as writer:
        _expire_requests(writer, now_ns)
        _expire_codes(writer, now_ns)
        _expire_collections(writer, now_ns)
        _end_idle_families(writer, now_ns)
        _note_expired_grants(writer, now_ns)
        _forget(writer, now_ns)
        _forget_tokens(writer, now_ns)
        _forget_subscriptions(writer, now_ns)
        purge_clients(writer, now_ns)
        forget_reading(writer, now_ns)


def forget(
    records: RecordStore,
    disclosures: DisclosureStore,
    authorization: AuthorizationStore,
    retention: Retention,
    now_ns: int,
) -> None:
    """Forget what is over its time."""
    if retention.history_days:
        records.prune_history(now_ns - retention.history_days * DAY_NANOSECONDS)
    if retention.disclosure_days:
        disclosures.forget_disclosures(now_ns - retention.disclosure_days * DAY_NANOSECONDS)
    disclosures.forget_details(now_ns - retention.detail_days * DAY_NANOSECONDS)
    if retention.audit_days:
        authorization.forget_audit(now_ns - retention.audit_days * DAY_NANOSECONDS)
    records.sweep_blobs(now_ns - UNREFERENCED_BLOB_NS)


def _expire_requests(writer: AuthorizationWriter, now_ns: int) -> None:
    for row in writer.rows(
        RequestRow, RequestRow.status.equals("pending"), RequestRow.expires_at_ns.at_most(now_ns)
    ):
        if close_request(writer, "expired", now_ns, RequestRow.request_id.equals(row.request_id)):
            subject = Subject(row.client_id)
            audit(writer, "request.expired", SERVER, now_ns, subject, request=row.request_id)


def _expire_codes(writer: AuthorizationWriter, now_ns: int) -> None:
    for row in writer.rows(
        CodeRow, CodeRow.status.equals("issued"), CodeRow.expires_at_ns.at_most(now_ns)
    ):
        ended = transition(
            writer, CodeRow, "issued", "expired", now_ns, CodeRow.code_hash.equals(row.code_hash)
        )
        if ended:
            end_decided(writer, row, "not_collected", SERVER, now_ns)
            _expire_approved(writer, row.request_id, now_ns)


def _expire_collections(writer: AuthorizationWriter, now_ns: int) -> None:
    for row in writer.rows(
        RequestRow,
        RequestRow.status.equals("approved"),
        RequestRow.collect_until_ns.at_most(now_ns),
    ):
        if _expire_approved(writer, row.request_id, now_ns):
            end_decided(writer, row, "not_collected", SERVER, now_ns)


def _expire_approved(writer: AuthorizationWriter, request_id: str, now_ns: int) -> int:
    return transition(
        writer, RequestRow, "approved", "expired", now_ns, RequestRow.request_id.equals(request_id)
    )


def _end_idle_families(writer: AuthorizationWriter, now_ns: int) -> None:
    for family in writer.rows(
        FamilyRow, FamilyRow.revoked_at_ns.equals(None), FamilyRow.idle_end_ns.at_most(now_ns)
    ):
        end_family(writer, family, "idle", SERVER, now_ns)


def _note_expired_grants(writer: AuthorizationWriter, now_ns: int) -> None:
    """One event per grant that time ended, also while no server ran."""
    for row in writer.rows(
        GrantRow,
        GrantRow.revoked_at_ns.equals(None),
        GrantRow.expiry_noted_at_ns.equals(None),
        GrantRow.expires_at_ns.at_most(now_ns),
    ):
        noted = [GrantRow.expiry_noted_at_ns.to(now_ns)]
        writer.change(GrantRow, noted, GrantRow.grant_id.equals(row.grant_id))
        audit(writer, "grant.expired", SERVER, now_ns, Subject(row.client_id, row.grant_id))


def _forget(writer: AuthorizationWriter, now_ns: int) -> None:
    long_ago = now_ns - KEPT_NS
    for status in ("denied", "expired", "redeemed"):
        writer.delete(
            RequestRow, RequestRow.status.equals(status), RequestRow.expires_at_ns.at_most(long_ago)
        )
    for status in ("redeemed", "burned", "expired"):
        writer.delete(
            CodeRow, CodeRow.status.equals(status), CodeRow.expires_at_ns.at_most(long_ago)
        )
    writer.delete(OwnerLinkRow, OwnerLinkRow.expires_at_ns.at_most(long_ago))
    writer.delete(OwnerSessionRow, OwnerSessionRow.ended_at_ns.at_most(long_ago))
    writer.delete(
        OwnerSessionRow, OwnerSessionRow.created_at_ns.at_most(now_ns - SESSION_NS - KEPT_NS)
    )
    writer.delete(AssertionIdRow, AssertionIdRow.expires_at_ns.at_most(long_ago))
    # A client that comes again later is consented to anew.
    too_late = now_ns - FAMILY_IDLE_NS
    writer.delete(ClientDocumentRow, ClientDocumentRow.fresh_until_ns.at_most(too_late))


def _forget_tokens(writer: AuthorizationWriter, now_ns: int) -> None:
    long_ago = now_ns - KEPT_TOKENS_NS
    # What nobody used yet may still be collected with the token before it, until the family is
    # idle for too long.
    too_late = now_ns - FAMILY_IDLE_NS
    used = TokenRow.last_used_at_ns.above(0)
    writer.delete(TokenRow, TokenRow.expires_at_ns.at_most(long_ago), used)
    writer.delete(TokenRow, TokenRow.expires_at_ns.at_most(too_late))
    writer.delete(TokenRow, TokenRow.revoked_at_ns.at_most(long_ago))
    writer.delete(RefreshTokenRow, RefreshTokenRow.superseded_at_ns.at_most(too_late))
    for ended in (FamilyRow.revoked_at_ns, FamilyRow.absolute_end_ns):
        for family in writer.rows(FamilyRow, ended.at_most(long_ago)):
            writer.delete(RefreshTokenRow, RefreshTokenRow.family_id.equals(family.family_id))
        writer.delete(FamilyRow, ended.at_most(long_ago))


def _forget_subscriptions(writer: AuthorizationWriter, now_ns: int) -> None:
    """Those of an access that ended, with what became of their events."""
    for row in writer.rows(
        SubscriptionRow,
        SubscriptionRow.status.equals("disabled_revoked"),
        SubscriptionRow.updated_at_ns.at_most(now_ns - KEPT_TOKENS_NS),
    ):
        of_it = EventRow.subscription_id.equals(row.subscription_id)
        writer.delete(EventRow, of_it)
        writer.delete(SubscriptionRow, SubscriptionRow.subscription_id.equals(row.subscription_id))
