"""The process as an HTTP server: how it listens, and how it stops.

Rule: SIGTERM, SIGHUP and SIGINT are one orderly stop. Requests in flight end or are ended within
seconds, then everything that is open is closed by whoever opened it; a signal that comes meanwhile
changes nothing.
Source: docs/contract/resource-server.md 1.8, 1.9.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Literal, cast

import msgspec
import uvicorn
from msgspec.structs import replace
from starlette.types import ASGIApp

from personal_server.app.connections import CallerProtocol, Connections
from personal_server.app.signals import STOPPING
from personal_server.app.supervisor import BEAT

LARGEST_HEAD_BYTES = 64 * 1024
CLOSING_SECONDS = 5
IDLE_SECONDS = 75
ACCEPTED_AT_ONCE = 128
TICK_SECONDS = 1.0
TICKS_A_BEAT = 5
FEW_CONNECTIONS = 16


class SecondListener(msgspec.Struct, frozen=True):
    """Where something else is answered, and by whom."""

    app: ASGIApp
    listener: socket.socket


class HttpServer(uvicorn.Server):
    """A server that returns after a signal, or at the end of the `line` to its supervisor.

    Of several processes none takes more than one caller at a time, so that others get theirs.
    uvicorn would raise the signal once more, and so keep everybody else from closing what they
    opened.  `at_stop` ends what would last; `at_signal` is called as soon as it is told to stop.
    """

    def __init__(
        self,
        app: ASGIApp,
        connections: Connections,
        second: SecondListener | None = None,
        line: socket.socket | None = None,
        at_stop: Callable[[], None] = lambda: None,
        at_signal: Callable[[], None] = lambda: None,
    ) -> None:
        self._at_signal = at_signal
        self._ticks = 0
        self._line = line
        self._at_stop = at_stop
        self._connections = connections
        self._second = second
        self._few = replace(connections, most=FEW_CONNECTIONS, open={})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        super().__init__(
            _config(app, connections, lifespan="on", at_once=1 if line else ACCEPTED_AT_ONCE)
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; who comes to the second listener takes nobody's place at the first."""
        await super().startup(sockets)
        if self._line is not None:
            for listener in sockets or ():
                listener.listen(ACCEPTED_AT_ONCE)  # as many may wait, however few are taken at once
            asyncio.get_running_loop().add_reader(self._line, self._end_of_line)
        if self._second is not None:
            config = _config(self._second.app, self._few, lifespan="off", at_once=ACCEPTED_AT_ONCE)
            config.load()
            protocol = partial(
                CallerProtocol, config, self.server_state, dict[str, Any](), connections=self._few
            )
            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_server(protocol, sock=self._second.listener))

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Let signals stop the server, from now until the end of the process."""
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` starts us
                signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: whoever sleeps until the next tick is woken."""
        super().handle_exit(sig, frame)
        self._at_signal()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    def _end_of_line(self) -> None:
        """Nothing is ever said: nobody supervises any more."""
        if self._line is not None:
            asyncio.get_running_loop().remove_reader(self._line)
        self.should_exit = True
        self._at_signal()
        self._stopping.set()

    async def main_loop(self) -> None:
        """Tick until a signal; uvicorn's own loop wakes ten times as often, busy or not."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), TICK_SECONDS)
        self._loop = None  # nobody is woken in a loop that may be closed by then
        self._at_stop()

    async def on_tick(self, counter: int) -> bool:
        """What a second brings: the date of answers, and an end to whoever keeps us waiting."""
        self._connections.end_stalled()
        self._few.end_stalled()
        self._beat()
        return await super().on_tick(counter)

    def _beat(self) -> None:
        """Say to whoever supervises that this loop goes round."""
        self._ticks += 1
        if self._line is not None and self._ticks % TICKS_A_BEAT == 0:
            with suppress(OSError):  # whoever is stopped, or gone, hears nothing
                self._line.send(BEAT, socket.MSG_DONTWAIT)

    def serve_on(self, listeners: Sequence[socket.socket]) -> None:
        """Serve until a signal."""
        self.run(sockets=list(listeners))


def _config(
    app: ASGIApp, connections: Connections, lifespan: Literal["on", "off"], at_once: int
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan=lifespan,
        http=cast("Any", partial(CallerProtocol, connections=connections)),
        ws="none",
        backlog=at_once,
        h11_max_incomplete_event_size=LARGEST_HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=CLOSING_SECONDS,
    )
