"""Token introspection (RFC 7662), for a resource server that runs apart.

Source: docs/contract/authorization-server.md 10.5.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

import anyio.to_thread
from starlette.responses import Response

from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.authorization_server.grants import unavailable_members
from personal_server.consent import lifecycle
from personal_server.consent.credentials import secret_hash
from personal_server.consent.terms import render_details
from personal_server.domain.grant import ACTIVE, Grant
from personal_server.domain.values import NANOSECONDS
from personal_server.errors import AuthenticationRequired
from personal_server.granting.audit import audit
from personal_server.reading.tokens import JudgedToken, TokenUses, judge
from personal_server.storage.authorization import AuthorizationStore, IntrospectionClientRow
from personal_server.storage.catalog import Catalogs
from personal_server.web.error_responses import json_error
from personal_server.web.limits import RateLimits
from personal_server.web.responses import answer

REALM = 'Basic realm="introspection"'


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
            refused = AuthenticationRequired("Introspection needs its own credentials.")
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
        known = b"" if row is None else row.secret_hash
        if hmac.compare_digest(known, secret_hash(secret)):
            return name
        with self._store.write() as writer:
            acting = call.acting("introspection_client")
            audit(writer, "introspection.denied", acting, self._clock())
        return None

    def _introspect(self, token: str) -> dict[str, object]:
        now_ns = self._clock()
        with self._store.read() as reader:
            judged = judge(reader, token, now_ns)
        if judged is None or judged.standing == lifecycle.DISCONNECTED:
            return {"active": False}
        if judged.standing != lifecycle.ACTIVE:
            return {"active": False, "inactive_reason": judged.standing}
        if not judged.usable:
            return {"active": False}
        self._uses.note(judged.row.token_hash, now_ns)
        return self._active(judged)

    def _active(self, judged: JudgedToken) -> dict[str, object]:
        row, subject_id = judged.row, self._store.subject_id
        body: dict[str, object] = {
            "active": True,
            "token_type": "Bearer",
            "pdpp_token_kind": row.kind,
            "scope": row.scope,
            "exp": row.expires_at_ns // NANOSECONDS,
            "iat": row.issued_at_ns // NANOSECONDS,
            "iss": row.origin,
            "aud": row.resource,
            "client_id": row.client_id,
        }
        if row.kind == "owner":
            return {**body, "subject_id": subject_id}
        body["sub"] = subject_id
        unavailable = unavailable_members(subject_id, judged, self._catalogs)
        if row.package_id is not None:
            return {
                **body,
                "grant_package_id": row.package_id,
                "package": {
                    "package_id": row.package_id,
                    "client_id": row.client_id,
                    "subject_id": subject_id,
                    "grants": _members(judged),
                    **unavailable,
                },
            }
        grant = judged.grants[0].grant
        if grant is None:
            return {"active": False, "inactive_reason": lifecycle.INVALID}
        context = {
            "context_kind": "oauth_rar_0_1",
            "client_id": row.client_id,
            "subject_id": subject_id,
            **_of_grant(grant),
        }
        return {
            **body,
            "grant_id": row.grant_id,
            "authorization_details": [render_details(grant)],
            "pdpp": context,
            **unavailable,
        }


def _members(judged: JudgedToken) -> list[dict[str, object]]:
    return [
        {
            **_of_grant(member.grant),
            "expires_at": member.grant.expires_at,
            "connector_key": member.connector_key,
            "authorization_details": [render_details(member.grant)],
        }
        for member in judged.grants
        if member.status == ACTIVE and member.grant is not None
    ]


def _of_grant(grant: Grant) -> dict[str, object]:
    return {
        "grant_id": grant.grant_id,
        "issued_at": grant.issued_at,
        "source": {"kind": grant.source.kind, "id": grant.source.id},
        "source_declaration": {"version": grant.declaration_version},
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
