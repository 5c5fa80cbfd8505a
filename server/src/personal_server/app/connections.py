"""Connections: how many at once, and how long one may keep the server waiting.

Rule: whoever holds a connection without using it, or has the server wait, gives way to whoever
comes; a caller who is slow to send or to take is cut off.  Nobody can use up the descriptors of
the process.
Source: docs/contract/resource-server.md 1.9.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pdpp_kernel.system.process_resources import UNLIMITED
from pdpp_kernel.values import NANOSECONDS
from personal_server.web.health import Fault

RESERVED_DESCRIPTORS = 400
"""For the database, files and what is accepted in one turn of the loop."""
FEWEST_CONNECTIONS = 16
LEAST_BODY_BYTES = 16 * 1024
"""What a caller sends of a body, at least, in the time of `stalled_seconds`."""
TOLD_NS = 60 * NANOSECONDS

_log = logging.getLogger(__name__)


def connections_within(most: int, descriptors: int) -> int:
    """How many connections there may be with so many descriptors."""
    if descriptors == UNLIMITED:
        return most
    return max(FEWEST_CONNECTIONS, min(most, descriptors - RESERVED_DESCRIPTORS))


class Connections(msgspec.Struct):
    """The bound of one server, and who holds a connection.

    Units: `stalled_seconds` is how long a caller may take to send a request's head, and to send or
        to take the next part of a body.
    """

    most: int
    stalled_seconds: float
    clock: Callable[[], int] = time.time_ns
    monotonic: Callable[[], float] = time.monotonic
    open: dict[CallerProtocol, None] = msgspec.field(default_factory=dict["CallerProtocol", None])
    _full_since_ns: int = 0
    _full_at_ns: int = 0

    def admit(self, caller: CallerProtocol) -> bool:
        """Whether there is room for one more; who uses a connection least makes it."""
        if len(self.open) >= self.most:
            self._note_full()
            least = self._least_used()
            if least is None:
                return False
            del self.open[least]
            least.transport.abort()
        self.open[caller] = None
        return True

    def _least_used(self) -> CallerProtocol | None:
        """Who has been without a request longest, else who has kept the server waiting longest."""
        idle = next((idle_one for idle_one in self.open if not idle_one.has_request), None)
        if idle is not None:
            return idle
        slow = (slow_one for slow_one in self.open if slow_one.is_awaited)
        return min(slow, key=lambda slow_one: slow_one.moved_at, default=None)

    def release(self, caller: CallerProtocol) -> None:
        """Count one open connection less."""
        self.open.pop(caller, None)

    def end_stalled(self) -> None:
        """Cut off whoever kept the server waiting too long.  Called every second."""
        before = self.monotonic() - self.stalled_seconds
        for caller in list(self.open):
            caller.end_if_stalled(before)

    def faults(self) -> Iterator[Fault]:
        """That there were too many, for a minute after the last of them."""
        if self.clock() - self._full_at_ns < TOLD_NS:
            yield Fault(
                "connections",
                "too_many_connections",
                self._full_since_ns,
                (
                    "Find out who connects. Behind a proxy, limit connections there. "
                    "The limit here is PDPP_MAX_CONNECTIONS."
                ),
            )

    def _note_full(self) -> None:
        now_ns = self.clock()
        if now_ns - self._full_at_ns >= TOLD_NS:
            self._full_since_ns = now_ns
            _log.warning("%d connections are open, which is the limit", self.most)
        self._full_at_ns = now_ns


class CallerProtocol(H11Protocol):
    """One connection.

    h11 and not httptools, whose driver in uvicorn takes a request head of any length.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._held = connections
        self.moved_at = connections.monotonic()
        self._body_bytes = 0

    @property
    def has_request(self) -> bool:
        """Whether a request was understood and is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] (uvicorn says it is never None)

    @property
    def is_awaited(self) -> bool:
        """Whether the server waits for the caller: to send more of a body, or to take an answer."""
        if self.flow.write_paused:
            return True
        return self.has_request and self.cycle.more_body and not self.flow.read_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller connects, and is told when there is no room."""
        super().connection_made(transport)
        if not self._held.admit(self):
            transport.write(_refusal(b"503 Service Unavailable", *_BUSY))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, whoever ended it."""
        self._held.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head counts from its first byte; a body by what comes of it."""
        if self.has_request:
            self._body_bytes += len(data)
            if self._body_bytes >= LEAST_BODY_BYTES:
                self._move()
        elif not self._has_half_a_head:
            self._move()
        had_request = self.has_request
        super().data_received(data)
        if self.has_request and not had_request:
            self._move()

    def on_response_complete(self) -> None:
        """The next request may come."""
        self._move()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The caller does not take what is sent, for now."""
        self._move()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It takes it again."""
        self._move()
        super().resume_writing()

    def end_if_stalled(self, before: float) -> None:
        """End the connection if what the server waits for did not come since `before`."""
        if self.moved_at > before:
            return
        if self.transport.is_closing() or self.flow.write_paused:
            self.transport.abort()
        elif self.has_request:
            if self.is_awaited:
                self.transport.close()
        elif self._has_half_a_head:
            self.transport.write(_refusal(b"408 Request Timeout", *_LATE))
            self.transport.close()
        elif self.cycle is None:  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.close()

    @property
    def _has_half_a_head(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def _move(self) -> None:
        self.moved_at = self._held.monotonic()
        self._body_bytes = 0


_BUSY = ("storage_unavailable", "The server has too many connections. Try again.")
_LATE = ("invalid_request", "The request did not arrive in time. Send the request again.")


def _refusal(status: bytes, code: str, message: str) -> bytes:
    """An answer to a caller whose request was not read."""
    kind = "api_error" if status.startswith(b"5") else "invalid_request_error"
    body = orjson.dumps({"error": {"type": kind, "code": code, "message": message}})
    return (
        b"HTTP/1.1 %s\r\nContent-Type: application/json; charset=utf-8\r\nConnection: close\r\n"
        b"Retry-After: 1\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n%s"
        % (status, len(body), body)
    )
