"""What every answer of this server carries, whichever part gives it.

Source: RS contract 1.3; AS contract 0, 12.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PDPP_VERSION = "2026-04-06"
CROSS_ORIGIN_REQUEST_HEADERS = (
    "Authorization, Content-Type, Accept, PDPP-Version, Request-Id, MCP-Protocol-Version,"
    " Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"
)
CROSS_ORIGIN_RESPONSE_HEADERS = (
    "WWW-Authenticate, Link, Retry-After, Request-Id, X-Request-Id, PDPP-Version,"
    " MCP-Protocol-Version"
)
"""What a page of another origin may send to discovery, OAuth and `/mcp`, and what it may see."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


def echoed_request_id(headers: Mapping[str, str]) -> str | None:
    """The caller's request id, if it may be echoed.  Shapes: headers by lower-case name."""
    sent = headers.get("request-id") or headers.get("x-request-id") or ""
    return sent if _REQUEST_ID.match(sent) else None
