"""The answers of an ASGI application that may not hold a secret: errors, and pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from tests.secrecy.watch import Watch

App = Callable[[Any, Scope, Receive, Send], Awaitable[None]]
# the page that asks for a user code and the page of a sign-in link show what they are about
SHOWN_ON = ("/device", "/owner/enter")


@dataclass
class _Answer:
    """What was said so far of an answer that counts."""

    watch: Watch
    place: str
    counts: bool = False
    body: bytearray = field(default_factory=bytearray)

    def hear(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = {name.lower(): value for name, value in message.get("headers", ())}
            page = headers.get(b"content-type", b"").startswith(b"text/html")
            self.counts = page or message["status"] >= 400
            location = headers.get(b"location", b"")
            if b"error=" in location:
                self.watch.hear(location, f"redirect of {self.place}")
        elif message["type"] == "http.response.body" and self.counts:
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                self.watch.hear(bytes(self.body), f"answer of {self.place}")


def overheard(app: App, watch: Watch) -> App:
    """The same application; its errors, error redirects and pages are heard."""

    async def answering(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(SHOWN_ON):
            await app(self, scope, receive, send)
            return
        answer = _Answer(watch, f"{scope['method']} {scope['path']}")

        async def hearing(message: Message) -> None:
            answer.hear(message)
            await send(message)

        await app(self, scope, receive, hearing)

    return answering
