"""The adapter as a process: standard input and output carry MCP and nothing else.

Source: docs/contract/mcp-adapter.md 2.1; docs/decisions.md C18. Until the kind of a credential is
known no record is read; an owner's ends the process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, cast

import anyio
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from pdpp_kernel.failures import new_request_id
from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.first_answers import ServerIdentity, StandardStreams
from pdpp_mcp_server.listeners import SUBSCRIPTION, Listening, OfferedSubscriptions, Subscribing
from pdpp_mcp_server.metrics import Counts, telling
from pdpp_mcp_server.reads import get_schema
from pdpp_mcp_server.rs_client.json_values import as_object, as_text
from pdpp_mcp_server.rs_client.port import Path, Query, RsPort, RsResponse
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.server_metadata import ServerMetadata
from pdpp_mcp_server.tool_runs import ClientRequest

OpenPort = Callable[[str, str], RsPort]
"""(tool, request id) → port."""


@dataclass(slots=True)
class KindCheck:
    """Whether the credential's kind is known yet, and what to do when it is an owner's."""

    known: bool
    refuse_owner: Callable[[], None]
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def settle(self, port: RsPort) -> RsResponse | None:
        """Read the schema once; its response when that failed, so that the read fails alike."""
        async with self.lock:
            if self.known:
                return None
            response = await get_schema(port)
            if not response.ok:
                return response
            bearer = as_object(as_object(response.body).get("bearer"))
            if as_text(bearer.get("token_kind")) == "owner":
                self.refuse_owner()
                await anyio.sleep_forever()
            self.known = True
            return None


@dataclass(frozen=True, slots=True)
class CheckedPort:
    """A port that reads nothing before the kind of its credential is known."""

    port: RsPort
    check: KindCheck

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        """Read one path.

        Raises: RsTimeout, RsUnreachable, RsInvalidResponse.
        """
        if not self.check.known:
            refused = await self.check.settle(self.port)
            if refused is not None:
                return refused
        return await self.port.get(path, query, max_bytes=max_bytes)


POLL_SECONDS = 5.0
DOCUMENTS_EVERY = 6
"""Of so many looks one is at what the access covers, the others only at feeds."""


@dataclass(slots=True)
class PollPace:
    """When one listener looks: this adapter hears of no write, so it asks."""

    seconds: float = POLL_SECONDS
    looks: int = 0

    async def wait(self) -> bool:
        """As the protocol has it."""
        await anyio.sleep(self.seconds)
        self.looks += 1
        return self.looks % DOCUMENTS_EVERY == 0


async def poll_pace() -> PollPace:
    """A pace for one listener more."""
    return PollPace()


async def serve_stdio(
    streams: StandardStreams,
    open_port: OpenPort,
    *,
    provider_url: str,
    identity: ServerIdentity,
    kind_known: bool,
    refuse_owner: Callable[[], None],
    settings: AdapterOptions | None = None,
    result_chars: int | None = None,
) -> None:
    """Serve until the input ends; refuse_owner ends the process."""
    check = KindCheck(kind_known, refuse_owner)
    metadata = ServerMetadata(CheckedPort(open_port("metadata", new_request_id()), check))

    def callers(request: Any) -> ClientRequest:
        del request
        request_id = new_request_id()
        return ClientRequest(
            open_port=lambda tool: CheckedPort(open_port(tool, request_id), check),
            provider_url=provider_url,
            request_id=request_id,
            server_capabilities=metadata.capabilities,
            result_chars=result_chars,
        )

    async def open_again() -> RsPort:
        return callers(None).open_port(SUBSCRIPTION)

    counts = Counts()
    streams.hand_over()
    lines, answers = (
        anyio.wrap_file(cast("IO[str]", stream)) for stream in (streams.lines, streams.answers)
    )
    async with (
        stdio_server(lines, answers) as (incoming, outgoing),
        telling(counts),
        anyio.create_task_group() as tasks,
    ):
        server = build_server(
            callers,
            name=identity.name,
            version=identity.version,
            settings=settings,
            counts=counts,
            subscriptions=OfferedSubscriptions(
                Listening(lambda _: (None, open_again), poll_pace),
                Subscribing(tasks, open_again, poll_pace),
            ),
        )
        told = NotificationOptions(resources_changed=True)
        await server.run(incoming, outgoing, server.create_initialization_options(told))
        tasks.cancel_scope.cancel()
