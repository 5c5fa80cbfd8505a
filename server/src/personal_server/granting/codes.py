"""From a code to tokens: authorization codes and device codes, each once.

Rule: one transaction decides who redeems; the loser gets nothing, and a second use of a redeemed
code ends everything that came of the first.
Source: docs/contract/authorization-server.md 9.1, 9.3; RFC 6749 10.5.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pdpp_kernel.oauth_errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrantCode,
    InvalidTarget,
    OAuthRefusal,
    SlowDown,
)
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.credentials import RandomBytes, base64url, secret_hash
from personal_server.consent.selections import CONTINUOUS, SINGLE_USE
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.pending_requests import OWNER_DEVICE
from personal_server.granting.revocations import end_decided, end_family
from personal_server.granting.tokens import Entitlement, Issued, details_of, held_rows, mint
from personal_server.granting.transitions import revoke, transition
from personal_server.storage.authorization_rows import (
    ClientRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)

SLOW_DOWN_SECONDS = 5


class Redemption(Unprinted, frozen=True):
    """A client with a code.  `auth_method` is how the client proved itself just now.

    `resource` is the canonical one asked for, `None` if the client named none; `jkt` the key that
    it proved to hold.
    """

    client_id: str
    code: str
    auth_method: str
    resource: str | None = None
    redirect_uri: str | None = None
    verifier: str = ""
    jkt: str | None = None


class Redeeming:
    """Turns codes into tokens."""

    def __init__(
        self, store: AuthorizationStore, clock: Callable[[], int], random_bytes: RandomBytes
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes

    def redeem_code(self, redemption: Redemption, acting: Acting) -> Issued:
        """The tokens of an authorization code.  Raises: InvalidGrantCode, InvalidTarget."""
        now_ns = self._clock()
        with self._store.write() as writer:
            answer = self._redeem_code(writer, redemption, acting, now_ns)
        if isinstance(answer, OAuthRefusal):
            raise answer
        return answer

    def redeem_device_code(self, redemption: Redemption, acting: Acting) -> Issued:
        """The tokens of a device code, at the first poll after the decision.

        Raises: InvalidGrantCode, AuthorizationPending, SlowDown, AccessDenied, ExpiredToken.
        """
        now_ns = self._clock()
        with self._store.write() as writer:
            answer = self._redeem_device(writer, redemption, acting, now_ns)
        if isinstance(answer, OAuthRefusal):
            raise answer
        return answer

    def _redeem_code(
        self, writer: AuthorizationWriter, redemption: Redemption, acting: Acting, now_ns: int
    ) -> Issued | OAuthRefusal:
        code_hash = secret_hash(redemption.code)
        row = writer.get(CodeRow, CodeRow.code_hash.equals(code_hash))
        refused = InvalidGrantCode("The code cannot be redeemed. Authorize again.")
        if row is None:
            return refused
        if row.status == "redeemed":
            _end_replayed(writer, row, acting, now_ns)
            return refused
        if row.status != "issued" or row.expires_at_ns <= now_ns:
            return refused
        if not _fits(row, redemption):
            transition(
                writer, CodeRow, "issued", "burned", now_ns, CodeRow.code_hash.equals(code_hash)
            )
            end_decided(writer, row, "not_collected", acting, now_ns)
            audit(writer, "code.burned", acting, now_ns, Subject(row.client_id))
            return refused
        if redemption.resource not in (None, row.resource):
            return InvalidTarget("The code was issued for another resource.", param="resource")
        rows = held_rows(writer, row.grant_id, row.package_id, now_ns)
        if not rows:
            return refused
        issued = self._issue(writer, _entitlement(row, rows, redemption), rows, acting, now_ns)
        if issued is None:
            return refused
        to = [CodeRow.redeemed_at_ns.to(now_ns), CodeRow.family_id.to(issued.family_id)]
        transition(
            writer,
            CodeRow,
            "issued",
            "redeemed",
            now_ns,
            CodeRow.code_hash.equals(code_hash),
            columns=to,
        )
        _redeem_request(writer, row.request_id, now_ns)
        audit(writer, "code.redeemed", acting, now_ns, _subject(issued, row.client_id))
        return issued

    def _redeem_device(
        self, writer: AuthorizationWriter, redemption: Redemption, acting: Acting, now_ns: int
    ) -> Issued | OAuthRefusal:
        row = writer.get(
            RequestRow, RequestRow.device_code_hash.equals(secret_hash(redemption.code))
        )
        refused = InvalidGrantCode("The device code cannot be redeemed. Start again.")
        if row is None or row.client_id != redemption.client_id or row.status == "redeemed":
            return refused
        waiting = _waiting(writer, row, now_ns)
        if waiting is not None:
            return waiting
        if redemption.resource not in (None, row.resource):
            return InvalidTarget("The code was issued for another resource.", param="resource")
        owner = row.flow == OWNER_DEVICE
        rows = () if owner else held_rows(writer, row.grant_id, row.package_id, now_ns)
        if not owner and not rows:
            return refused
        entitled = _entitlement(row, rows, redemption, owner=owner)
        issued = self._issue(writer, entitled, rows, acting, now_ns)
        if issued is None:
            return refused
        _redeem_request(writer, row.request_id, now_ns)
        event = "owner_token.issued" if owner else "device.collected"
        audit(writer, event, acting, now_ns, _subject(issued, row.client_id))
        return issued

    def _issue(
        self,
        writer: AuthorizationWriter,
        entitled: Entitlement,
        rows: Sequence[GrantRow],
        acting: Acting,
        now_ns: int,
    ) -> Issued | None:
        grant_ids = tuple(row.grant_id for row in rows)
        if not consume(writer, grant_ids, entitled.access_mode, acting, now_ns):
            return None
        issued = mint(writer, entitled, self._random_bytes, now_ns)
        writer.change(
            ClientRow,
            [ClientRow.last_used_at_ns.to(now_ns)],
            ClientRow.client_id.equals(entitled.client_id),
        )
        audit(writer, "token.issued", acting, now_ns, _subject(issued, entitled.client_id))
        return replace(issued, grant_ids=grant_ids, details=details_of(rows))


def consume(
    writer: AuthorizationWriter,
    grant_ids: Sequence[str],
    access_mode: str,
    acting: Acting,
    now_ns: int,
) -> bool:
    """Use up single-use grants; whether they were still unused.  Others are left alone."""
    if access_mode != SINGLE_USE:
        return True
    for grant_id in grant_ids:
        to = [GrantRow.consumed_at_ns.to(now_ns)]
        if not writer.change(
            GrantRow, to, GrantRow.grant_id.equals(grant_id), GrantRow.consumed_at_ns.equals(None)
        ):
            return False
        audit(writer, "grant.consumed", acting, now_ns, Subject(grant_id=grant_id))
    return True


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636 4.2)."""
    return base64url(hashlib.sha256(verifier.encode("ascii", "replace")).digest())


def _entitlement(
    row: CodeRow | RequestRow,
    rows: Sequence[GrantRow],
    redemption: Redemption,
    *,
    owner: bool = False,
) -> Entitlement:
    """What a decided request stands for: its active grants, or the owner."""
    first = None if owner else rows[0]
    return Entitlement(
        kind="owner" if owner else "mcp_package" if row.package_id else "client",
        client_id=row.client_id,
        origin=row.origin,
        resource=row.resource,
        scope=row.scope,
        access_mode=CONTINUOUS if first is None else first.access_mode,
        grant_id=row.grant_id,
        package_id=row.package_id,
        expires_at_ns=None if first is None else first.expires_at_ns,
        auth_floor=redemption.auth_method,
        jkt=redemption.jkt,
    )


def _fits(row: CodeRow, redemption: Redemption) -> bool:
    return (
        row.client_id == redemption.client_id
        and redemption.redirect_uri in (None, row.redirect_uri)
        and row.jkt in (None, redemption.jkt)
        and hmac.compare_digest(challenge_of(redemption.verifier), row.code_challenge)
    )


def _end_replayed(writer: AuthorizationWriter, row: CodeRow, acting: Acting, now_ns: int) -> None:
    family = None
    if row.family_id is not None:
        family = writer.get(FamilyRow, FamilyRow.family_id.equals(row.family_id))
    if family is not None:
        end_family(writer, family, "code_replay", acting, now_ns)
    else:
        condition = (
            TokenRow.package_id.equals(row.package_id)
            if row.package_id
            else TokenRow.grant_id.equals(row.grant_id)
        )
        revoke(writer, TokenRow, "code_replay", now_ns, condition)
        end_decided(writer, row, "code_replay", acting, now_ns)
    audit(writer, "code.replayed", acting, now_ns, Subject(row.client_id))


def _waiting(writer: AuthorizationWriter, row: RequestRow, now_ns: int) -> OAuthRefusal | None:
    """Why a poll gets no tokens yet, or never."""
    if row.status == "denied":
        return AccessDenied("The owner denied the request.")
    if row.status == "expired" or _closed(row, now_ns):
        return ExpiredToken("The device code is too old. Start again.")
    if row.status == "approved":
        return None
    early = row.last_poll_at_ns is not None and (
        now_ns < row.last_poll_at_ns + row.interval_seconds * NANOSECONDS
    )
    interval = row.interval_seconds + (SLOW_DOWN_SECONDS if early else 0)
    to = [RequestRow.last_poll_at_ns.to(now_ns), RequestRow.interval_seconds.to(interval)]
    writer.change(RequestRow, to, RequestRow.request_id.equals(row.request_id))
    if early:
        return SlowDown(f"Do not poll more often than every {interval} seconds.", interval=interval)
    return AuthorizationPending("The owner has not decided yet.")


def _closed(row: RequestRow, now_ns: int) -> bool:
    until = row.expires_at_ns if row.status == "pending" else row.collect_until_ns
    return until is None or until <= now_ns


def _redeem_request(writer: AuthorizationWriter, request_id: str, now_ns: int) -> None:
    transition(
        writer, RequestRow, "approved", "redeemed", now_ns, RequestRow.request_id.equals(request_id)
    )


def _subject(issued: Issued, client_id: str) -> Subject:
    return Subject(client_id, issued.grant_id, issued.package_id)
