"""Requests of an application in this process, without an HTTP library between.

That library takes 130 µs for each, a tenth of a tool call that reads one record.
Source: docs/contract/mcp-adapter.md 3.2, 3.3.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

import anyio
import msgspec

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class InnerAnswer(msgspec.Struct, frozen=True):
    """A whole answer, or a failure.  Shapes: `headers` by names in lower case, the last of two."""

    status_code: int = 500
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    parts: Sequence[bytes] = ()

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        """The body, as it was sent."""
        for part in self.parts:
            yield part

    async def aclose(self) -> None:
        """Nothing is open."""


class InnerApplication(msgspec.Struct, frozen=True):
    """A `Sender` to an application; what fails inside it is an answer of 500, and says nothing.

    Shapes: `state` is what else the application is told of each request, beside its origin; none
            from the network can bring any.
    """

    app: Callable[[Message, Receive, Send], Awaitable[None]]
    state: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    encoding: str = "identity"

    async def get(self, target: str, headers: Mapping[str, str]) -> InnerAnswer:
        """The answer to one request.  Shapes: `target` is an absolute URL, encoded."""
        scheme, _, rest = target.partition("://")
        host, _, path = rest.partition("/")
        path, _, query = f"/{path}".partition("?")
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": scheme,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", host.encode()), *sent],
            "client": ("in-process", 0),  # no address: no rule of the server trusts one
            "state": {**self.state, "origin": f"{scheme}://{host}"},
        }
        taken = _Taken(anyio.Event())
        try:
            await self.app(scope, taken.receive, taken.send)
        except Exception:  # noqa: BLE001 - what went wrong stands in the log of the application
            return InnerAnswer()
        finally:
            is_whole = taken.ended.is_set()
            taken.ended.set()
        return InnerAnswer(taken.status, taken.headers, taken.parts) if is_whole else InnerAnswer()


class _Taken:
    """The two ends of one request, as its application sees them."""

    def __init__(self, ended: anyio.Event) -> None:
        self.ended = ended
        self.is_asked = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    async def receive(self) -> Message:
        """The request, which has no body; then, when all is over, that nobody listens."""
        if not self.is_asked:
            self.is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """A part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            pairs = message.get("headers", ())
            self.headers = {n.decode("latin-1").lower(): v.decode("latin-1") for n, v in pairs}
        elif message["type"] == "http.response.body":
            self.parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.ended.set()
