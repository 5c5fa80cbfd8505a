"""Which answers pages of other origins may read, and what they may send: said once for all.

Rule: discovery and the icon are readable by their path alone, so that an unknown document is as
readable as a known one: a client in a browser must see the 404, not a network error.  No answer
ever allows credentials.
Source: docs/contract/resource-server.md 1.4; docs/contract/authorization-server.md 12.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Send

REQUEST_HEADERS = (
    "Accept, Authorization, Content-Type, DPoP, If-None-Match, If-Range, Last-Event-ID,"
    " MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, PDPP-Tool, PDPP-Version, Range,"
    " Request-Id, X-Request-Id"
)
RESPONSE_HEADERS = (
    "DPoP-Nonce, ETag, Link, MCP-Protocol-Version, PDPP-Version, RateLimit-Limit,"
    " RateLimit-Remaining, RateLimit-Reset, Request-Id, Retry-After, WWW-Authenticate, X-Request-Id"
)
MAX_AGE_SECONDS = 600


def readable_by(origin: str) -> Mapping[str, str]:
    """The headers that let pages of an origin (`*`: of any) read an answer."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": RESPONSE_HEADERS,
    }


READABLE_ANYWHERE = readable_by("*")


def preflight(methods: Iterable[str]) -> Response:
    """The answer to a browser that asks before it calls; who may is said by `readable_by`."""
    headers = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": REQUEST_HEADERS,
        "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
    }
    return Response(None, 204, headers)


def is_public_document(path: str) -> bool:
    """Whether a path is one of discovery or the icon; the keys tell one server from another."""
    is_of_discovery = path.startswith("/.well-known/") and path != "/.well-known/jwks.json"
    return is_of_discovery or path == "/icon.svg"


def readable_anywhere(send: Send) -> Send:
    """Let browsers hand the answer to whichever page asked."""

    async def readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(READABLE_ANYWHERE)
        await send(message)

    return readable
