"""What a token stands for, and ending it.

Source: docs/contract/authorization-server.md 10.3, 10.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import anyio.to_thread
from starlette.responses import Response

from pdpp_kernel.errors import (
    AuthenticationRequired,
    InvalidToken,
    NotFound,
    NotPermitted,
)
from pdpp_kernel.values import instant_text
from pdpp_kernel.wire_objects import Address, AnyObject, Instant, WireObject
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent import lifecycle
from personal_server.domain.envelope import UnavailableConnections, name_unavailable
from personal_server.domain.grant import MemberGrant, told_stream_grant
from personal_server.domain.possession import PresentedToken
from personal_server.enforcement.authority import read_authority
from personal_server.granting.audit import Acting
from personal_server.granting.consent_receipts import ConsentReceipt, ConsentReceipts
from personal_server.granting.holdings import current_id
from personal_server.granting.revocations import Ended, end_grant, end_package
from personal_server.reading.proofs import Proofs
from personal_server.reading.tokens import JudgedToken, TokenUses, judge, resolved
from personal_server.storage.authorization_rows import ClientRow
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)
from personal_server.web.replies import answer
from personal_server.web.requests import IncomingRequest

OwnerSession = Callable[[IncomingRequest], bool]
"""Whether a request comes from a signed-in owner and passes the cross-site checks.

Raises what those checks raise.
"""

AccessStatus = Literal["active", "paused", "revoked", "expired", "invalid"]
_STATUS: Mapping[str, AccessStatus] = {
    lifecycle.ACTIVE: "active",
    lifecycle.REVOKED: "revoked",
    lifecycle.DISCONNECTED: "revoked",
    lifecycle.EXPIRED: "expired",
    lifecycle.PAUSED: "paused",
    lifecycle.INVALID: "invalid",
}


class NamedSource(WireObject):
    """Where data comes from, as grants name it."""

    kind: str
    id: str


class UnreadableGrant(WireObject):
    """One grant of a token, of which nothing more can be read."""

    grant_id: str
    status: AccessStatus
    streams: Sequence[AnyObject]


class CurrentGrant(UnreadableGrant):
    """One grant of a token, with its terms."""

    issued_at: Instant
    expires_at: Instant | None
    access_mode: str
    connector_key: str | None
    source: NamedSource
    purpose_code: str
    purpose_description: str | None
    retention: AnyObject | None


class ShownAccess(WireObject, kw_only=True, tag_field="object", tag="access"):
    """What a token stands for."""

    component: ClassVar = "Access"

    kind: Literal["client", "mcp_package"]
    client_id: str
    client_name: str
    status: AccessStatus
    resource: Address
    token_expires_at: Instant
    grant_package_id: str | None = None
    grant_id: str | None = None
    grants: Sequence[CurrentGrant | UnreadableGrant]
    receipt: str | None = None
    unavailable_connections: UnavailableConnections | None = None
    unavailable_connection_count: int | None = None


class EndedGrant(WireObject, tag_field="object", tag="grant_state"):
    """A grant that has ended."""

    component: ClassVar = "EndedGrant"

    grant_id: str
    status: Literal["revoked", "expired"]
    revoked_at: Instant | None


class EndedPackage(WireObject, tag_field="object", tag="grant_package_state"):
    """A package that has ended."""

    component: ClassVar = "EndedPackage"

    grant_package_id: str
    status: Literal["revoked", "expired"]
    revoked_at: Instant | None


ShownEnd = EndedGrant | EndedPackage


class Grants:
    """`GET /grants/current` and the two ways to end."""

    def __init__(
        self,
        store: AuthorizationStore,
        catalogs: Catalogs,
        uses: TokenUses,
        proofs: Proofs,
        receipts: ConsentReceipts,
        clock: Callable[[], int],
        owner_session: OwnerSession,
    ) -> None:
        self._store = store
        self._catalogs = catalogs
        self._uses = uses
        self._proofs = proofs
        self._receipts = receipts
        self._clock = clock
        self._owner_session = owner_session

    async def current(self, call: EndpointRequest) -> Response:
        """What the presented token stands for, also when a person or the agreed end closed it."""
        presented = call.request.presented
        if presented is None:
            raise AuthenticationRequired("This request needs a bearer token.")
        body = await anyio.to_thread.run_sync(self._current, presented)
        if body is None:
            raise InvalidToken("The access token is not valid.")
        return answer(body)

    async def end_grant(self, call: EndpointRequest) -> Response:
        """End one grant."""
        return await self._end(call, call.path["grant_id"], "grant")

    async def end_package(self, call: EndpointRequest) -> Response:
        """End one package."""
        return await self._end(call, call.path["package_id"], "package")

    async def _end(self, call: EndpointRequest, held_id: str, kind: str) -> Response:
        presented = call.request.presented
        if presented is None:
            if not await anyio.to_thread.run_sync(self._owner_session, call.request):
                raise AuthenticationRequired("This request needs a bearer token.")
            state = await anyio.to_thread.run_sync(
                self._end_as, held_id, kind, "owner", call.acting("owner")
            )
            return answer(state)
        judged = await anyio.to_thread.run_sync(self._judged, presented)
        if judged is None or not may_end(judged):
            raise InvalidToken("The access token is not valid.")
        owner = judged.row.kind == "owner"
        held_id = await anyio.to_thread.run_sync(self._current_id, held_id)
        own = judged.row.grant_id if kind == "grant" else judged.row.package_id
        if not owner and own != held_id:
            raise NotFound("There is no such grant or package.")
        reason, acting = "owner", call.acting("owner")
        if not owner:
            reason, acting = "client_disconnected", call.acting()
        return answer(await anyio.to_thread.run_sync(self._end_as, held_id, kind, reason, acting))

    def _end_as(self, held_id: str, kind: str, reason: str, acting: Acting) -> ShownEnd:
        now_ns = self._clock()
        with self._store.write() as writer:
            end = end_grant if kind == "grant" else end_package
            ended = end(writer, current_id(writer, held_id, now_ns), reason, acting, now_ns)
        if ended is None:
            raise NotFound("There is no such grant or package.")
        return _shown_ended(ended)

    def _current_id(self, held_id: str) -> str:
        with self._store.read() as reader:
            return current_id(reader, held_id, self._clock())

    def _judged(self, presented: PresentedToken) -> JudgedToken | None:
        with self._store.read() as reader:
            judged = judge(reader, presented.token, self._clock())
        if judged is not None:
            self._proofs.admit(presented, judged.row.jkt)
        return judged

    def _current(self, presented: PresentedToken) -> ShownAccess | None:
        now_ns, judged = self._clock(), self._judged(presented)
        with self._store.read() as reader:
            if judged is None or judged.standing == lifecycle.DISCONNECTED:
                return None
            if judged.standing == lifecycle.ACTIVE and not judged.usable:
                return None
            if not judged.grants:
                raise NotPermitted(
                    "This address answers apps with their tokens; as the owner, use "
                    "the owner pages."
                )
            name = _client_name(reader, judged.row.client_id)
            held_id = judged.row.package_id or judged.row.grant_id or ""
            receipt = self._receipts.of(reader, held_id, now_ns)
        self._uses.note(judged.row, now_ns)
        unavailable = unavailable_members(self._store.subject_id, judged, self._catalogs)
        return _access(judged, name, receipt, unavailable)


def may_end(judged: JudgedToken) -> bool:
    """Whether a token may end what it stands for: while it is good, or after that has ended."""
    return judged.usable or judged.standing not in lifecycle.LIVING


def unavailable_members(
    subject_id: str, judged: JudgedToken, catalogs: Catalogs
) -> Mapping[str, Any]:
    """`unavailable_connections` of a token, as the resource server tells them."""
    catalog = catalogs()
    declarations = {
        declaration.connector_key: declaration for declaration in catalog.declarations.values()
    }
    authority = read_authority(resolved(subject_id, judged), catalog.connections, declarations)
    return name_unavailable(authority.unavailable)


def _access(
    judged: JudgedToken,
    client_name: str,
    receipt: ConsentReceipt | None,
    unavailable: Mapping[str, Any],
) -> ShownAccess:
    row = judged.row
    return ShownAccess(
        kind=cast("Literal['client', 'mcp_package']", row.kind),  # the owner's were turned away
        client_id=row.client_id,
        client_name=client_name,
        status=_STATUS[judged.standing],
        resource=row.resource,
        token_expires_at=instant_text(row.expires_at_ns),
        grant_package_id=row.package_id,
        grant_id=row.grant_id if row.package_id is None else None,
        grants=[_shown_member(member) for member in judged.grants],
        receipt=receipt and receipt.signed,
        **unavailable,
    )


def _shown_member(member: MemberGrant) -> CurrentGrant | UnreadableGrant:
    status = _STATUS[member.status]
    grant = member.grant
    if grant is None:
        return UnreadableGrant(grant_id=member.grant_id, status=status, streams=[])
    return CurrentGrant(
        grant_id=member.grant_id,
        status=status,
        issued_at=grant.issued_at,
        expires_at=grant.expires_at,
        access_mode=grant.access_mode,
        connector_key=member.connector_key,
        source=NamedSource(kind=grant.source.kind, id=grant.source.id),
        purpose_code=grant.purpose_code,
        purpose_description=grant.purpose_description,
        retention=grant.retention,
        streams=[told_stream_grant(stream) for stream in grant.streams],
    )


def _client_name(reader: AuthorizationReader, client_id: str) -> str:
    row = reader.get(ClientRow, ClientRow.client_id.equals(client_id))
    return client_id if row is None else row.name or client_id


def _shown_ended(ended: Ended) -> ShownEnd:
    revoked_at = None if ended.revoked_at_ns is None else instant_text(ended.revoked_at_ns)
    status: Literal["revoked", "expired"] = "expired" if ended.expired else "revoked"
    if ended.kind == "grant":
        return EndedGrant(grant_id=ended.id, status=status, revoked_at=revoked_at)
    return EndedPackage(grant_package_id=ended.id, status=status, revoked_at=revoked_at)
