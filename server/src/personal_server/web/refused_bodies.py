"""Bodies of requests that are refused before anybody reads them.

A server that closes a connection on which something still arrives makes the system throw its answer
away: a proxy between, which sends head and body apart, then knows a head and never its text.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from starlette.types import Receive

DRAIN_SECONDS = 20.0
SHORT_BYTES, SHORT_SECONDS = 65_536, 1.0


async def drain(receive: Receive, seconds: float = DRAIN_SECONDS) -> None:
    """Let a body that nobody takes run out, for a while: who sends it reads the answer after it."""
    with anyio.move_on_after(seconds):
        more = True
        while more:
            message = await receive()
            more = message["type"] == "http.request" and message.get("more_body", False)


async def let_arrive(headers: Mapping[str, str], receive: Receive) -> None:
    """Take a short body, for a moment; a long one is cut off."""
    length = headers.get("content-length", "")
    if length.isdecimal() and 0 < int(length) <= SHORT_BYTES:
        await drain(receive, SHORT_SECONDS)
