"""Device authorization (RFC 8628).  Source: docs/contract/authorization-server.md 8.1."""

from __future__ import annotations

from typing import ClassVar

import anyio.to_thread
from starlette.responses import Response

from pdpp_kernel.oauth_errors import BadRequest, InvalidTarget, UnauthorizedClient
from pdpp_kernel.wire_objects import Address, WireObject
from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.authorization_requests import (
    MCP_PATH,
    QUERY_PATH,
    SCOPE_OWNER,
    RequestedAccess,
    parse_wanted,
)
from personal_server.consent.client_registration import DEVICE_CODE, OWNER_PROFILE
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.pending_requests import Asking, Requesting
from personal_server.storage.authorization_rows import ClientRow
from personal_server.web.limits import RateLimits, network_of
from personal_server.web.replies import answer


class ShownDeviceCodes(WireObject):
    """The codes of a device.  Units: `expires_in`, `interval` seconds."""

    component: ClassVar = "DeviceCodes"

    device_code: str
    user_code: str
    verification_uri: Address
    verification_uri_complete: Address
    expires_in: int
    interval: int


class DeviceAuthorizing:
    """`POST /oauth/device_authorization`."""

    def __init__(
        self,
        clients: Clients,
        requesting: Requesting,
        owner: OwnerSignIn,
        configuration: Configuration,
        limits: RateLimits,
    ) -> None:
        self._clients = clients
        self._requesting = requesting
        self._owner = owner
        self._configuration = configuration
        self._limits = limits

    async def post(self, call: EndpointRequest) -> Response:
        """Give a device its codes."""
        self._limits.authorization.take(await self._clients.counted_as(call))
        caller = await self._clients.authenticate(call)
        access = self._wanted(call, caller.client)
        if access.scope == SCOPE_OWNER:
            await anyio.to_thread.run_sync(self._require_owner_near, call)
        asking = Asking(caller.client, call.origin, caller.auth_method)
        codes = await anyio.to_thread.run_sync(
            self._requesting.ask_for_device, asking, access, call.acting()
        )
        return answer(
            ShownDeviceCodes(
                device_code=codes.device_code,
                user_code=codes.user_code,
                verification_uri=f"{call.origin}/device",
                verification_uri_complete=f"{call.origin}/device?user_code={codes.user_code}",
                expires_in=codes.expires_in_seconds,
                interval=codes.interval_seconds,
            )
        )

    def _require_owner_near(self, call: EndpointRequest) -> None:
        """Whoever wants to act as the owner starts where the owner is.

        Otherwise anybody could start it anywhere and send the owner its address to approve.
        Raises: UnauthorizedClient.
        """
        if call.origin.startswith("http:"):
            return  # a loopback origin is reached from this machine only
        near = {network_of(session.address or "") for session in self._owner.sessions()}
        if call.network not in near:
            raise UnauthorizedClient(
                "First sign in as the owner in a browser on the same network, then start again."
            )

    def _wanted(self, call: EndpointRequest, client: ClientRow) -> RequestedAccess:
        owner = SCOPE_OWNER in call.parameters.get("scope", "").split()
        if DEVICE_CODE not in client.grant_types or (
            owner and OWNER_PROFILE not in client.grant_types
        ):
            raise UnauthorizedClient("This app may not use the device flow.")
        default = call.origin + QUERY_PATH if owner else call.origin
        access = parse_wanted(
            call.parameters,
            call.resources,
            call.origin,
            self._configuration.origins,
            default=default,
        )
        if owner and access.details is not None:
            raise BadRequest(
                "A request for an owner token cannot contain authorization_details.",
                param="authorization_details",
            )
        if owner and access.resource.endswith(MCP_PATH):
            raise InvalidTarget(
                "An owner token cannot be used for this resource.", param="resource"
            )
        return access
