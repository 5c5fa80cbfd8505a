"""Token introspection (RFC 7662), for a resource server that runs apart.

Source: docs/contract/authorization-server.md 10.5.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import anyio.to_thread
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import AuthenticationRequired
from pdpp_kernel.values import NANOSECONDS
from pdpp_kernel.wire_objects import Address, AnyObject, Instant, WireObject
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.authorization_server.grants import NamedSource, unavailable_members
from personal_server.consent import lifecycle
from personal_server.consent.credentials import secret_hash
from personal_server.consent.terms import render_details
from personal_server.domain.envelope import UnavailableConnections
from personal_server.domain.grant import ACTIVE, Grant
from personal_server.granting.audit import audit
from personal_server.reading.tokens import JudgedToken, TokenUses, judge
from personal_server.storage.authorization_rows import IntrospectionClientRow
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.error_responses import json_error
from personal_server.web.limits import RateLimits
from personal_server.web.replies import answer

REALM = 'Basic realm="introspection"'


class NamedDeclaration(WireObject):
    """The revision of a source declaration that a grant was approved with."""

    version: str


class ArtifactMembers(WireObject):
    """What a grant says of itself."""

    grant_id: str
    issued_at: Instant
    source: NamedSource
    source_declaration: NamedDeclaration


class IntrospectedGrant(ArtifactMembers):
    """The one grant of a token."""

    context_kind: Literal["oauth_rar_0_1"]
    client_id: str
    subject_id: str


class IntrospectedMember(ArtifactMembers):
    """One grant of a package."""

    expires_at: Instant | None
    connector_key: str | None
    authorization_details: Sequence[AnyObject]


class IntrospectedPackage(WireObject):
    """The package of a token, with the grants that can be read now."""

    package_id: str
    client_id: str
    subject_id: str
    grants: Sequence[IntrospectedMember]
    unavailable_connections: UnavailableConnections | None = None
    unavailable_connection_count: int | None = None


class Confirmation(WireObject):
    """The key that a token is bound to, by its thumbprint (RFC 9449 6)."""

    jkt: str


class Introspection(WireObject):
    """What a token stands for; of one that is not active nothing but a reason is said.

    Units: `exp`, `iat` seconds.
    """

    component: ClassVar = "Introspection"

    active: bool
    inactive_reason: str | None = None
    token_type: Literal["Bearer", "DPoP"] | None = None
    cnf: Confirmation | None = None
    pdpp_token_kind: str | None = None
    scope: str | None = None
    exp: int | None = None
    iat: int | None = None
    iss: Address | None = None
    aud: Address | None = None
    client_id: str | None = None
    sub: str | None = None
    subject_id: str | None = None
    connection_id: str | None = None
    grant_id: str | None = None
    grant_package_id: str | None = None
    authorization_details: Sequence[AnyObject] | None = None
    pdpp: IntrospectedGrant | None = None
    package: IntrospectedPackage | None = None
    unavailable_connections: UnavailableConnections | None = None
    unavailable_connection_count: int | None = None


class Introspecting:
    """`POST /introspect`."""

    def __init__(
        self,
        store: AuthorizationStore,
        catalogs: Catalogs,
        uses: TokenUses,
        limits: RateLimits,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._catalogs = catalogs
        self._uses = uses
        self._limits = limits
        self._clock = clock

    async def post(self, call: EndpointRequest) -> Response:
        """What a token stands for, or that it is not active."""
        caller_id = await anyio.to_thread.run_sync(self._caller, call)
        if caller_id is None:
            refused = AuthenticationRequired(
                "Only a registered resource server may look up tokens, with its id and secret."
            )
            response = json_error(refused, call.request_id)
            response.headers["WWW-Authenticate"] = REALM
            return response
        self._limits.introspection.take(caller_id)
        token = call.needed("token")
        return answer(await anyio.to_thread.run_sync(self._introspect, token))

    def _caller(self, call: EndpointRequest) -> str | None:
        name, secret = _basic(call.request.headers.get("authorization", ""))
        with self._store.read() as reader:
            row = reader.get(
                IntrospectionClientRow,
                IntrospectionClientRow.caller_id.equals(name),
                IntrospectionClientRow.ended_at_ns.equals(None),
            )
        stored_hash = b"" if row is None else row.secret_hash
        if hmac.compare_digest(stored_hash, secret_hash(secret)):
            return name
        if row is not None and self._may_note_denial(name):
            with self._store.write() as writer:
                acting = call.acting("introspection_client")
                audit(writer, "introspection.denied", acting, self._clock())
        return None

    def _may_note_denial(self, name: str) -> bool:
        """Only so often: what anybody may send does not fill the trail."""
        may = self._limits.introspection_denials.left(name) > 0
        self._limits.introspection_denials.spend(name)
        return may

    def _introspect(self, token: str) -> Introspection:
        now_ns = self._clock()
        with self._store.read() as reader:
            judged = judge(reader, token, now_ns)
        if judged is None or judged.standing == lifecycle.DISCONNECTED:
            return Introspection(active=False)
        if judged.standing != lifecycle.ACTIVE:
            return Introspection(active=False, inactive_reason=judged.standing)
        if not judged.usable:
            return Introspection(active=False)
        self._uses.note(judged.row, now_ns)
        return self._active(judged)

    def _active(self, judged: JudgedToken) -> Introspection:
        row, subject_id = judged.row, self._store.subject_id
        introspection = Introspection(
            active=True,
            token_type="Bearer" if row.jkt is None else "DPoP",
            cnf=None if row.jkt is None else Confirmation(jkt=row.jkt),
            pdpp_token_kind=row.kind,
            scope=row.scope,
            exp=row.expires_at_ns // NANOSECONDS,
            iat=row.issued_at_ns // NANOSECONDS,
            iss=row.origin,
            aud=row.resource,
            client_id=row.client_id,
        )
        if row.kind == "owner":
            return replace(introspection, subject_id=subject_id)
        if row.connection_id is not None:
            return replace(introspection, subject_id=subject_id, connection_id=row.connection_id)
        unavailable = unavailable_members(subject_id, judged, self._catalogs)
        if row.package_id is not None:
            package = IntrospectedPackage(
                package_id=row.package_id,
                client_id=row.client_id,
                subject_id=subject_id,
                grants=_members(judged),
                **unavailable,
            )
            return replace(
                introspection, sub=subject_id, grant_package_id=row.package_id, package=package
            )
        grant = judged.grants[0].grant
        if grant is None:
            return Introspection(active=False, inactive_reason=lifecycle.INVALID)
        context = IntrospectedGrant(
            context_kind="oauth_rar_0_1",
            client_id=row.client_id,
            subject_id=subject_id,
            **_of_grant(grant),
        )
        return replace(
            introspection,
            sub=subject_id,
            grant_id=row.grant_id,
            authorization_details=[render_details(grant)],
            pdpp=context,
            **unavailable,
        )


def _members(judged: JudgedToken) -> list[IntrospectedMember]:
    return [
        IntrospectedMember(
            expires_at=member.grant.expires_at,
            connector_key=member.connector_key,
            authorization_details=[render_details(member.grant)],
            **_of_grant(member.grant),
        )
        for member in judged.grants
        if member.status == ACTIVE and member.grant is not None
    ]


def _of_grant(grant: Grant) -> dict[str, Any]:
    return {
        "grant_id": grant.grant_id,
        "issued_at": grant.issued_at,
        "source": NamedSource(kind=grant.source.kind, id=grant.source.id),
        "source_declaration": NamedDeclaration(version=grant.declaration_version),
    }


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return name, secret
