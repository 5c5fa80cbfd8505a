"""The real `/mcp` on a loopback port for suites that send no bearer: a door that adds one.

`python -m tests.requirements.conformance` prints the address and serves until it is ended.
"""

from __future__ import annotations

import socket
from typing import Any

import anyio
import uvicorn

from personal_server.settings import Settings
from tests.requirements.real import Real, outermost


class AddBearer:
    """Passes everything on, with the bearer of one grant where none was sent."""

    def __init__(self, app: Any, token: str) -> None:
        self.app = app
        self.bearer = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = {name for name, _ in scope["headers"]}
            if b"authorization" not in sent:
                scope = {**scope, "headers": [*scope["headers"], self.bearer]}
        await self.app(scope, receive, send)


async def serve() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app, hosted = outermost(await Real.seeded(), Settings(public_url=url))
    config = uvicorn.Config(AddBearer(app, "mine"), log_level="warning", lifespan="off", ws="none")
    async with hosted.run():
        print(f"{url}/mcp", flush=True)
        await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    anyio.run(serve)
