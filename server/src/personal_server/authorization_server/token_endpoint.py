"""The token endpoint (RFC 6749, 8628, 8707, 9449).

Source: docs/contract/authorization-server.md 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import anyio.to_thread
from starlette.responses import Response

from pdpp_kernel.errors import InvalidDpopProof, UseDpopNonce
from pdpp_kernel.oauth_errors import (
    AuthorizationPending,
    BadRequest,
    OAuthRefusal,
    SlowDown,
    UnauthorizedClient,
    UnsupportedGrantType,
)
from pdpp_kernel.wire_objects import Address, AnyObject, WireObject
from personal_server.authorization_server.client_authentication import AuthenticatedClient, Clients
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.authorization_requests import canonical_resource
from personal_server.consent.client_registration import (
    AUTHORIZATION_CODE,
    DEVICE_CODE,
    REFRESH_TOKEN,
)
from personal_server.granting.codes import Redeeming, Redemption
from personal_server.granting.tokens import Issued, Refresh, Rotating
from personal_server.reading.proofs import Proofs
from personal_server.web.limits import RateLimits
from personal_server.web.replies import answer


class IssuedTokens(WireObject):
    """Tokens and what they stand for.  Units: `expires_in` seconds."""

    component: ClassVar = "IssuedTokens"

    access_token: str
    token_type: Literal["Bearer", "DPoP"]
    expires_in: int
    scope: str
    resource: Address
    refresh_token: str | None = None
    grant_id: str | None = None
    grant_package_id: str | None = None
    grant_ids: Sequence[str] | None = None
    authorization_details: Sequence[AnyObject] | None = None


class TokenEndpoint:
    """`POST /oauth/token`."""

    def __init__(
        self,
        clients: Clients,
        redeeming: Redeeming,
        rotating: Rotating,
        proofs: Proofs,
        configuration: Configuration,
        limits: RateLimits,
    ) -> None:
        self._clients = clients
        self._redeeming = redeeming
        self._rotating = rotating
        self._proofs = proofs
        self._configuration = configuration
        self._limits = limits

    async def post(self, call: EndpointRequest) -> Response:
        """Give tokens for a code, a device code or a refresh token.

        What fails is limited, by client and address, and what succeeds is not: whoever shares an
        address with the owner's app cannot keep it from its tokens.
        """
        try:
            return answer(render_issued(await self._issue(call)))
        except (AuthorizationPending, SlowDown, UseDpopNonce):
            raise
        except (OAuthRefusal, InvalidDpopProof):
            self._limits.token_failures.take((call.parameters.get("client_id"), call.network))
            raise

    async def _issue(self, call: EndpointRequest) -> Issued:
        grant_type = call.needed("grant_type")
        flows = {
            AUTHORIZATION_CODE: self._from_code,
            REFRESH_TOKEN: self._from_refresh_token,
            DEVICE_CODE: self._from_device_code,
        }
        flow = flows.get(grant_type)
        if flow is None:
            raise UnsupportedGrantType(
                "The server does not support this grant type.", param="grant_type"
            )
        caller = await self._clients.authenticate(call, stale=grant_type == REFRESH_TOKEN)
        return await flow(call, caller, await self._key(call, caller))

    async def _key(self, call: EndpointRequest, caller: AuthenticatedClient) -> str | None:
        """The key that the tokens will be bound to.

        Raises: InvalidDpopProof, UseDpopNonce.
        """
        proof = call.request.proof
        if proof is not None:
            return await anyio.to_thread.run_sync(self._proofs.key_of, proof)
        if caller.client.dpop_bound:
            raise InvalidDpopProof(
                "This app accepts only tokens bound to its key: send a DPoP proof.",
                reason="missing",
            )
        return None

    async def _from_code(
        self, call: EndpointRequest, caller: AuthenticatedClient, jkt: str | None
    ) -> Issued:
        redemption = Redemption(
            client_id=caller.client.client_id,
            code=call.needed("code"),
            auth_method=caller.auth_method,
            resource=self._resource(call),
            redirect_uri=call.parameters.get("redirect_uri"),
            verifier=call.needed("code_verifier"),
            jkt=jkt,
        )
        return await anyio.to_thread.run_sync(
            self._redeeming.redeem_code, redemption, call.acting()
        )

    async def _from_refresh_token(
        self, call: EndpointRequest, caller: AuthenticatedClient, jkt: str | None
    ) -> Issued:
        if "authorization_details" in call.parameters:
            raise BadRequest(
                "A token refresh cannot change what was granted.", param="authorization_details"
            )
        refresh = Refresh(
            client_id=caller.client.client_id,
            refresh_token=call.needed("refresh_token"),
            auth_method=caller.auth_method,
            resource=self._resource(call),
            jkt=jkt,
        )
        return await anyio.to_thread.run_sync(self._rotating.rotate, refresh, call.acting())

    async def _from_device_code(
        self, call: EndpointRequest, caller: AuthenticatedClient, jkt: str | None
    ) -> Issued:
        if DEVICE_CODE not in caller.client.grant_types:
            raise UnauthorizedClient("This app may not use the device flow.")
        redemption = Redemption(
            client_id=caller.client.client_id,
            code=call.needed("device_code"),
            auth_method=caller.auth_method,
            resource=self._resource(call),
            jkt=jkt,
        )
        return await anyio.to_thread.run_sync(
            self._redeeming.redeem_device_code, redemption, call.acting()
        )

    def _resource(self, call: EndpointRequest) -> str | None:
        return canonical_resource(call.resources, call.origin, self._configuration.origins)


def render_issued(issued: Issued) -> IssuedTokens:
    """The body of a successful token response (RFC 6749, 5.1)."""
    return IssuedTokens(
        access_token=issued.access_token,
        token_type="Bearer" if issued.jkt is None else "DPoP",
        expires_in=issued.expires_in_seconds,
        scope=issued.scope,
        resource=issued.resource,
        refresh_token=issued.refresh_token,
        grant_package_id=issued.package_id,
        grant_ids=None if issued.package_id is None else issued.grant_ids,
        grant_id=issued.grant_id,
        authorization_details=None if issued.kind == "owner" else issued.details,
    )
