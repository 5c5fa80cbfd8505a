"""Dynamic client registration (RFC 7591).  Source: docs/contract/authorization-server.md 3.2."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread
import orjson
from starlette.responses import Response

from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.client_registration import register
from personal_server.consent.credentials import RandomBytes
from personal_server.domain.values import NANOSECONDS
from personal_server.errors import InvalidClientMetadata
from personal_server.granting.clients import register_client
from personal_server.storage.authorization import AuthorizationStore
from personal_server.web.limits import RateLimits
from personal_server.web.responses import answer


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
        self._limits.registration.take(call.address)
        self._limits.registration_all.take("all")
        try:
            metadata: object = orjson.loads(call.body)
        except orjson.JSONDecodeError:
            raise InvalidClientMetadata("The body is not JSON.") from None
        registration = register(metadata, self._configuration.redirect_schemes)
        now_ns = self._clock()

        def write() -> str:
            acting = call.acting()
            return register_client(self._store, registration, acting, self._random_bytes, now_ns)

        client_id = await anyio.to_thread.run_sync(write)
        body: dict[str, object] = {
            "client_id": client_id,
            "client_id_issued_at": now_ns // NANOSECONDS,
            "client_name": registration.name,
            "redirect_uris": list(registration.redirect_uris),
            "grant_types": list(registration.grant_types),
            "response_types": ["code"] if registration.redirect_uris else [],
            "application_type": registration.application_type,
            "token_endpoint_auth_method": "none",
            "scope": registration.scope,
            **registration.echoed,
        }
        return answer(body, 201)
