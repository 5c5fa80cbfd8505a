"""When the SDK of the protocol is there: from the first request on that needs it.

Importing it takes longer than all else of a start, and most of what clients ask is answered without
it.  It is imported in a thread: whoever asks meanwhile for something else is answered.
Source: docs/contract/mcp-adapter.md 2.2, 2.4.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from starlette.types import Receive, Scope, Send

from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.change_bell import Bell
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.rs_client.port import RsPort
from pdpp_mcp_server.tool_runs import ClientRequest
from personal_server.hosted_mcp.admission import Admission, HostedCredential

if TYPE_CHECKING:
    from pdpp_mcp_server.server_offer import ServerOffer

STATE_KEY = "mcp_credential"
OpenPort = Callable[[HostedCredential], RsPort]
CallerOf = Callable[[HostedCredential, str | None], ClientRequest]
"""(credential, user agent) → caller."""
SDK_MODULE = "personal_server.hosted_mcp.sdk_sessions"


class SessionsDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What the SDK's servers are built of, one for each origin.

    Shapes: without `bell` nobody can listen; without `offer` it is that of this adapter.
    """

    origins: Sequence[str]
    version: str
    open_port: OpenPort
    admission: Admission
    caller_of: CallerOf
    body_bytes: int
    settings: AdapterOptions | None = None
    offer: ServerOffer | None = None
    counts: Counts
    bell: Bell | None = None


class _Manager(Protocol):
    """The SDK's object for one origin."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def run(self) -> Any: ...


class LibrarySessions(msgspec.Struct):
    """Lets the SDK answer.

    Shapes: `serve` is run once, by the host, for as long as requests come.
    """

    declared: SessionsDeclaration
    _managers: Mapping[str, _Manager] = msgspec.field(default_factory=dict[str, _Manager])
    _listening: Any = None
    _lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    _made: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _entered: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def serve(self) -> None:
        """Hold the sessions, until cancelled: the task that enters a manager has to leave it."""
        await self._made.wait()
        async with AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            self._entered.set()
            await anyio.sleep_forever()

    async def handle(
        self, scope: Scope, receive: Receive, send: Send, credential: HostedCredential
    ) -> None:
        """Answer a request of an admitted caller."""
        if not self._entered.is_set():
            await self._make()
        inner = {**scope, "state": {**scope.get("state", {}), STATE_KEY: credential}}
        await self._managers[credential.origin].handle_request(inner, receive, send)

    def end_listeners(self) -> None:
        """Let nobody wait for more."""
        if self._listening is not None:
            self._listening.end()

    async def _make(self) -> None:
        # where an import fails, as without a free file descriptor, the next request tries again
        async with self._lock:
            if not self._made.is_set():
                sdk = await anyio.to_thread.run_sync(import_module, SDK_MODULE)
                self._listening = sdk.listening_of(self.declared)
                self._managers = await anyio.to_thread.run_sync(
                    sdk.session_managers, self.declared, self._listening
                )
                if gc.get_freeze_count():
                    gc.freeze()  # as all that is there since the start: it stays for good
                self._made.set()
        await self._entered.wait()
