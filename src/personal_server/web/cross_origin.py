"""Public documents that any browser may read: discovery and the icon.

Rule: this is decided by the path alone, so that an unknown document is as readable as a known one:
a client in a browser must see the 404, not a network error.
Source: docs/contract/authorization-server.md 12.4.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

EXPOSED = (
    "Request-Id, X-Request-Id, ETag, Retry-After, WWW-Authenticate, RateLimit-Limit, "
    "RateLimit-Remaining, RateLimit-Reset"
)
ALLOWED_HEADERS = (
    "Authorization, Content-Type, If-None-Match, If-Range, PDPP-Tool, "
    "PDPP-Version, Range, Request-Id, X-Request-Id"
)


CORS_HEADERS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", EXPOSED))


# What every answer of this server carries, whichever part gives it.
#
# Source: docs/contract/resource-server.md 1.3; docs/contract/authorization-server.md 0, 12.4.


CROSS_ORIGIN_REQUEST_HEADERS = (
    "Authorization, Content-Type, Accept, PDPP-Version, Request-Id, MCP-Protocol-Version,"
    " Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"
)
CROSS_ORIGIN_RESPONSE_HEADERS = (
    "WWW-Authenticate, Link, Retry-After, Request-Id, X-Request-Id, PDPP-Version,"
    " MCP-Protocol-Version"
)
"""What a page of another origin may send to discovery, OAuth and `/mcp`, and what it may see."""


RESPONSE_HEADERS = f"{EXPOSED}, Link, PDPP-Version, MCP-Protocol-Version"
_READABLE = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": RESPONSE_HEADERS,
}
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": CROSS_ORIGIN_REQUEST_HEADERS,
    "Access-Control-Max-Age": "600",
}


def is_public_document(path: str) -> bool:
    """Whether a path is one of discovery or the icon."""
    return path.startswith("/.well-known/") or path == "/icon.svg"


def readable_anywhere(send: Send) -> Send:
    """Let browsers hand the answer to whichever page asked."""

    async def readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_READABLE)
        await send(message)

    return readable


async def answer_preflight(send: Send) -> None:
    """Answer a browser that asks before it calls."""
    headers = [(name.lower().encode(), value.encode()) for name, value in _PREFLIGHT.items()]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": CROSS_ORIGIN_RESPONSE_HEADERS,
}
PREFLIGHT = {
    "Access-Control-Allow-Headers": CROSS_ORIGIN_REQUEST_HEADERS,
    "Access-Control-Max-Age": "600",
}
