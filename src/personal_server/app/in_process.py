"""The hosted adapter's way to `/v1`: the same application, in this process.

Rule: it enters behind the outermost application, so what that settles is settled here from the
request itself; there is no header or shortcut that skips a check of `/v1`.
Source: MCP adapter contract 3.2, 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from personal_server.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from personal_server.mcp_adapter.http import AdmissionUnavailable, Admitted, Refused
from personal_server.reading.tokens import TokenResolver

_REFUSALS: Mapping[type[PersonalServerError], Refused] = {
    InvalidToken: Refused("invalid_token"),
    GrantRevoked: Refused("grant_revoked"),
    GrantExpired: Refused("grant_expired"),
    GrantInvalid: Refused("grant_invalid"),
}


class BehindTheDoor:
    """An inner application, told the origin that its in-process caller wrote into `Host`."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        host = next(value for name, value in scope["headers"] if name == b"host")
        origin = f"{scope['scheme']}://{host.decode('latin-1')}"
        await self._inner({**scope, "state": {"origin": origin}}, receive, send)


class TokenAdmission:
    """Who may use `/mcp`, by the one resolver of tokens."""

    def __init__(self, resolver: TokenResolver, mcp_resources: frozenset[str]) -> None:
        self._resolver = resolver
        self._mcp_resources = mcp_resources

    async def judge(self, token: str) -> Admitted | Refused:
        """What a bearer stands for now.  Raises: AdmissionUnavailable."""
        try:
            found = await anyio.to_thread.run_sync(partial(self._resolver.resolve, token))
        except PersonalServerError as error:
            refusal = _REFUSALS.get(type(error))
            if refusal is None:
                raise AdmissionUnavailable from None
            return refusal
        return Admitted(
            kind=found.kind,
            client_id=found.client_id,
            grant_id=found.grants[0].grant_id if len(found.grants) == 1 else None,
            package_id=found.package_id,
            reaches_mcp=found.resource in self._mcp_resources,
        )
