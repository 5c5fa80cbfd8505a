"""Bodies of requests that are refused before anybody reads them.

A server that closes a connection on which something still arrives makes the system throw its answer
away: a proxy between, which sends head and body apart, then knows a head and never its text.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from starlette.types import Receive

MOST_BYTES = 65_536
MOST_SECONDS = 1.0


async def let_arrive(headers: Mapping[str, str], receive: Receive) -> None:
    """Take a short body, for a moment; a long one is cut off."""
    length = headers.get("content-length", "")
    if not length.isdecimal() or not 0 < int(length) <= MOST_BYTES:
        return
    with anyio.move_on_after(MOST_SECONDS):
        more = True
        while more:
            message = await receive()
            more = message["type"] == "http.request" and message.get("more_body", False)
