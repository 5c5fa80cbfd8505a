"""The adapter as a process: standard input and output carry MCP and nothing else.

Source: docs/contract/mcp-adapter.md 2.1; docs/decisions.md C18. Until the kind of a credential is
known no record is read; an owner's ends the process.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import orjson
from anyio.abc import TaskGroup

from pdpp_kernel.failures import new_request_id
from pdpp_mcp_server.call_messages import PlainCall
from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.first_answers import (
    Cancelled,
    Heard,
    LibraryNeeded,
    ServerIdentity,
    StandardStreams,
)
from pdpp_mcp_server.metrics import Counts, telling
from pdpp_mcp_server.plain_calls import PlainCalls
from pdpp_mcp_server.reads import get_schema
from pdpp_mcp_server.rs_client.json_values import as_object, as_text
from pdpp_mcp_server.rs_client.port import Path, Query, RsPort, RsResponse
from pdpp_mcp_server.server_metadata import ServerMetadata
from pdpp_mcp_server.tool_runs import ClientRequest

OpenPort = Callable[[str, str], RsPort]
"""(tool, request id) → port."""


class KindCheck(msgspec.Struct):
    """Whether the credential's kind is known yet, and what to do when it is an owner's."""

    known: bool
    refuse_owner: Callable[[], None]
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

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


class CheckedPort(msgspec.Struct, frozen=True):
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


CLOSED = {"code": -32000, "message": "Connection closed"}
"""What the library answers to calls that are not done when the input ends."""


class StdioSession(msgspec.Struct):
    """One client: its plain calls are answered here, all else by the library, once it is needed."""

    streams: StandardStreams
    calls: PlainCalls
    caller: Callable[[], ClientRequest]
    identity: ServerIdentity
    tasks: TaskGroup
    in_flight: dict[object, anyio.CancelScope] = msgspec.field(
        default_factory=dict[object, anyio.CancelScope]
    )
    has_library: bool = False

    async def serve(self) -> None:
        """Serve until the input ends."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Heard] = asyncio.Queue()
        self.streams.listen(lambda heard: loop.call_soon_threadsafe(queue.put_nowait, heard))
        while (heard := await queue.get()) is not LibraryNeeded.NEVER or self.has_library:
            if isinstance(heard, PlainCall):
                # known before it runs: what cancels it may be the very next line
                self.in_flight[heard.message_id] = scope = anyio.CancelScope()
                self.tasks.start_soon(self._answer, heard, scope)
            elif isinstance(heard, Cancelled):
                self._cancel(heard.message_id)
            elif heard is LibraryNeeded.NOW and not self.has_library:
                self.has_library = True
                self.tasks.start_soon(self._serve_by_library)
        self._end()

    def _cancel(self, cancelled_id: object) -> None:
        for message_id in list(self.in_flight):
            if str(message_id) == str(cancelled_id):
                self.in_flight.pop(message_id).cancel()

    async def _answer(self, asked: PlainCall, scope: anyio.CancelScope) -> None:
        async def told(reads: float) -> None:
            params = {"progressToken": asked.progress_token, "progress": reads}
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            self.streams.send(orjson.dumps(message) + b"\n")

        hears = asked.progress_token is not None
        with scope:
            try:
                answer = await self.calls.answer(
                    asked, self.streams.client, self.caller(), told if hears else None
                )
            finally:
                if self.in_flight.get(asked.message_id) is scope:
                    del self.in_flight[asked.message_id]
            await anyio.lowlevel.checkpoint_if_cancelled()
            if answer is None:
                await anyio.to_thread.run_sync(self.streams.leave, asked)
            else:
                self.streams.send(answer + b"\n")

    async def _serve_by_library(self) -> None:
        # in a thread: what is called meanwhile is answered
        library = await anyio.to_thread.run_sync(import_module, SDK_MODULE)
        session = library.SdkSession(
            self.streams, self.caller, self.identity, self.calls.settings, self.calls.counts
        )
        await session.serve(self.tasks)
        self._end()

    def _end(self) -> None:
        for message_id in self.in_flight:
            message = {"jsonrpc": "2.0", "id": message_id, "error": CLOSED}
            self.streams.send(orjson.dumps(message) + b"\n")
        self.tasks.cancel_scope.cancel()


SDK_MODULE = "pdpp_mcp_server.sdk_stdio"


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

    def caller() -> ClientRequest:
        request_id = new_request_id()
        return ClientRequest(
            open_port=lambda tool: CheckedPort(open_port(tool, request_id), check),
            provider_url=provider_url,
            request_id=request_id,
            server_capabilities=metadata.capabilities,
            result_chars=result_chars,
        )

    calls = PlainCalls(settings or AdapterOptions(), Counts())
    async with telling(calls.counts), anyio.create_task_group() as tasks:
        await StdioSession(streams, calls, caller, identity, tasks).serve()
