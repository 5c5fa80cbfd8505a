"""What the program did while the tests ran: errors, error redirects, pages, and audit events.

Rule: the applications are the program's own; they are only listened to.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from personal_server.granting import audit

App = Callable[[Any, Scope, Receive, Send], Awaitable[None]]


@dataclass
class Answer:
    """An answer; `body` is empty unless it is an error or a page."""

    method: str
    path: str
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    body: bytes = b""

    @property
    def location(self) -> str:
        """Where it sends the browser."""
        return self.headers.get(b"location", b"").decode("latin-1")

    @property
    def counts(self) -> bool:
        """Whether it is an error or a page."""
        page = self.headers.get(b"content-type", b"").startswith(b"text/html")
        return page or self.status >= 400

    @property
    def place(self) -> str:
        """Where it was given."""
        return f"{self.method} {self.path}"


Listener = Callable[[Answer], None]
LISTENERS: list[Listener] = []
EVENTS: set[str] = set()
"""The events that the program wrote into an audit trail."""


def overheard(app: App) -> App:
    """The same application; whoever listens hears its answers."""

    async def answering(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(self, scope, receive, send)
            return
        answer, parts = Answer(scope["method"], scope["path"]), bytearray()

        async def hearing(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = int(message["status"])
                answer.headers = {n.lower(): v for n, v in message.get("headers", ())}
            elif message["type"] == "http.response.body" and answer.counts:
                parts.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                _tell(answer, bytes(parts))
            await send(message)

        await app(self, scope, receive, hearing)

    return answering


def _tell(answer: Answer, body: bytes) -> None:
    packed = answer.headers.get(b"content-encoding") == b"gzip"
    answer.body = gzip.decompress(body) if packed and body else body
    for listen in LISTENERS:
        listen(answer)


def noted(audit: Callable[..., None]) -> Callable[..., None]:
    """The same function; the events that it writes are remembered."""

    def noting(writer: Any, event: str, *arguments: Any, **detail: object) -> None:
        audit(writer, event, *arguments, **detail)
        EVENTS.add(event)

    return noting


def kept(event_of: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; the event that it makes for the trail, if any, is remembered."""

    def keeping(*arguments: Any) -> Any:
        row = event_of(*arguments)
        if row is not None:
            EVENTS.add(row.event)
        return row

    return keeping


def observe_applications() -> None:
    """Listen to the trail and to every application; called once, before any is made."""
    audit.audit = noted(audit.audit)
    from personal_server.feeds import feed_trouble  # noqa: PLC0415

    feed_trouble.trouble_event = kept(feed_trouble.trouble_event)
    from personal_server.authorization_server import endpoints as authorization  # noqa: PLC0415
    from personal_server.console import application as console  # noqa: PLC0415
    from personal_server.hosted_mcp.http import HostedApp  # noqa: PLC0415
    from personal_server.resource_server.application import ResourceServer  # noqa: PLC0415
    from personal_server.web.application import Application  # noqa: PLC0415 (once secrets are observed)

    kinds: tuple[Any, ...] = (
        Application,
        authorization.AuthorizationApplication,
        console.ConsoleApplication,
        HostedApp,
        ResourceServer,
    )
    for application in kinds:
        application.__call__ = overheard(application.__call__)
