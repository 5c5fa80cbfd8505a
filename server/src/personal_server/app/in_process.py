"""The way to `/v1` inside this process, for the hosted adapter and the owner's commands.

Rule: a call enters behind the outermost application, so what that settles is settled here from the
request itself, and what admission found out about the token is handed on; no header or shortcut
skips a check of `/v1`.
Source: docs/contract/mcp-adapter.md 3.2, 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from starlette.types import ASGIApp, Receive, Scope, Send

VERSION = version("pdpp-personal-server")
LOCAL_OWNER = "local-owner"
"""No token: it names the owner to an application that nobody else can call."""


class InProcessTransport:
    """An inner application, told the origin that its in-process caller wrote into `Host`.

    Shapes: `token_states` is what is known of bearers already, by token.
    """

    def __init__(self, inner: ASGIApp, token_states: Mapping[str, object] | None = None) -> None:
        self._inner = inner
        self._token_states = token_states or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        host = next(value for name, value in scope["headers"] if name == b"host")
        origin = f"{scope['scheme']}://{host.decode('latin-1')}"
        state = {"origin": origin, "token_states": self._token_states}
        await self._inner({**scope, "state": state}, receive, send)
