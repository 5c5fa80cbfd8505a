"""The library of the protocol on standard input and output, for what is no plain call.

It is imported when it is needed: most of the time that a start with it takes is its import.
"""

from collections.abc import Callable
from typing import IO, cast

import anyio
import msgspec
from anyio.abc import TaskGroup
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.first_answers import ServerIdentity, StandardStreams
from pdpp_mcp_server.listeners import SUBSCRIPTION, Listening, OfferedSubscriptions, Subscribing
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.rs_client.port import RsPort
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.tool_runs import ClientRequest

POLL_SECONDS = 5.0
DOCUMENTS_EVERY = 6
"""Of so many looks one is at what the access covers, the others only at feeds."""


class PollPace(msgspec.Struct):
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


class SdkSession(msgspec.Struct, frozen=True):
    """What the library serves one client with."""

    streams: StandardStreams
    caller: Callable[[], ClientRequest]
    identity: ServerIdentity
    settings: AdapterOptions
    counts: Counts

    async def serve(self, tasks: TaskGroup) -> None:
        """Serve until the input ends."""

        def callers(request: object) -> ClientRequest:
            del request
            return self.caller()

        async def open_again() -> RsPort:
            return self.caller().open_port(SUBSCRIPTION)

        self.streams.hand_over()
        lines, answers = (
            anyio.wrap_file(cast("IO[str]", stream))
            for stream in (self.streams.lines, self.streams.answers)
        )
        async with stdio_server(lines, answers) as (incoming, outgoing):
            server = build_server(
                callers,
                name=self.identity.name,
                version=self.identity.version,
                settings=self.settings,
                counts=self.counts,
                subscriptions=OfferedSubscriptions(
                    Listening(lambda _: (None, open_again), poll_pace),
                    Subscribing(tasks, open_again, poll_pace),
                ),
            )
            options = NotificationOptions(resources_changed=True)
            await server.run(incoming, outgoing, server.create_initialization_options(options))
