"""Dynamic client registration (RFC 7591).  Source: docs/contract/authorization-server.md 3.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import anyio.to_thread
import orjson
from starlette.responses import Response

from pdpp_kernel.oauth_errors import InvalidClientMetadata
from pdpp_kernel.values import NANOSECONDS
from pdpp_kernel.wire_objects import Address, WireObject
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.client_registration import register
from personal_server.consent.credentials import RandomBytes
from personal_server.granting.clients import register_client
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.limits import RateLimits
from personal_server.web.replies import answer


class RegisteredClient(WireObject):
    """A client as it was registered, with what it said of itself as far as that is kept."""

    component: ClassVar = "RegisteredClient"

    client_id: str
    client_id_issued_at: int
    token_endpoint_auth_method: Literal["none"]
    client_name: str
    redirect_uris: Sequence[str]
    grant_types: Sequence[str]
    response_types: Sequence[str]
    application_type: str
    scope: str
    contacts: Sequence[str] | None = None
    software_id: str | None = None
    software_version: str | None = None
    client_uri: Address | None = None
    logo_uri: Address | None = None
    policy_uri: Address | None = None
    tos_uri: Address | None = None
    dpop_bound_access_tokens: bool | None = None


class Registering:
    """`POST /oauth/register`."""

    def __init__(
        self,
        store: AuthorizationStore,
        configuration: Configuration,
        limits: RateLimits,
        clock: Callable[[], int],
        random_bytes: RandomBytes,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._limits = limits
        self._clock = clock
        self._random_bytes = random_bytes

    async def post(self, call: EndpointRequest) -> Response:
        """Register a public client."""
        self._limits.registration.take(call.counted_network)
        self._limits.registration_all.take("pages" if call.is_of_page else "all")
        try:
            metadata: object = orjson.loads(call.body)
        except orjson.JSONDecodeError:
            raise InvalidClientMetadata("The request body is not JSON.") from None
        registration = register(metadata, self._configuration.redirect_schemes)
        now_ns = self._clock()

        def write() -> str:
            acting = call.acting()
            return register_client(self._store, registration, acting, self._random_bytes, now_ns)

        client_id = await anyio.to_thread.run_sync(write)
        registered = RegisteredClient(
            client_id=client_id,
            client_id_issued_at=now_ns // NANOSECONDS,
            client_name=registration.name,
            redirect_uris=registration.redirect_uris,
            grant_types=registration.grant_types,
            response_types=["code"] if registration.redirect_uris else [],
            application_type=registration.application_type,
            token_endpoint_auth_method="none",  # noqa: S106 (a public client has no secret)
            scope=registration.scope,
            **registration.echoed,
        )
        return answer(registered, 201)
