"""Token revocation (RFC 7009).  Source: docs/contract/authorization-server.md 10.2."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread
from starlette.responses import Response

from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.granting.revocations import disconnect
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.replies import answer


class Revoking:
    """`POST /oauth/revoke`."""

    def __init__(
        self, clients: Clients, store: AuthorizationStore, clock: Callable[[], int]
    ) -> None:
        self._clients = clients
        self._store = store
        self._clock = clock

    async def post(self, call: EndpointRequest) -> Response:
        """End the client's own token; the answer is the same for every token."""
        token = call.needed("token")
        caller = await self._clients.authenticate(call, stale=True)
        await anyio.to_thread.run_sync(
            disconnect,
            self._store,
            token,
            caller.client.client_id,
            call.acting(),
            self._clock(),
        )
        return answer(None)
