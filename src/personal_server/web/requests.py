"""The request as a route sees it: authorized, parsed, dated.

Rule: a `Request` that exists has passed steps 1 to 8 of docs/contract/resource-server.md 1.5;
routes do the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import quote

from personal_server.domain.authority import ReadAuthority
from personal_server.web.parameters import Parameters

DEFAULT_ORIGIN = "http://127.0.0.1:7662"


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a route.

    Shapes: `route_name` is method and pattern; `path` holds the decoded variable segments;
        `raw_path` and `raw_query` are as received; `body` is the whole body, `spool` a file of it
        for spooled routes; `headers` have lower-case names; `snapshot` is the state of the store
        that the caller of a read was identified in, and that the read is answered from.
    Units: `now_ns` UTC nanoseconds.
    """

    route_name: str
    authority: ReadAuthority
    parameters: Parameters
    path: Mapping[str, str]
    raw_path: str
    raw_query: str
    origin: str
    request_id: str
    now_ns: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    spool: BinaryIO | None = None
    method: str = "GET"
    snapshot: object = None

    @property
    def self_link(self) -> str:
        """Path and query as received.  Source: docs/contract/resource-server.md 2.2."""
        return f"{self.raw_path}?{self.raw_query}" if self.raw_query else self.raw_path

    def next_link(self, cursor: str) -> str:
        """The same with `cursor` set and `changes_since` removed.

        Source: docs/contract/resource-server.md 2.2.
        """
        kept = [
            piece
            for piece in self.raw_query.split("&")
            if piece and piece.partition("=")[0] not in ("cursor", "changes_since")
        ]
        query = "&".join([*kept, f"cursor={quote(cursor, safe='')}"])
        return f"{self.raw_path}?{query}"


def prefers_html(accept: str) -> bool:
    """Whether HTML is asked for before JSON."""
    return _quality(accept, "text/html") > max(
        _quality(accept, "application/json"), _quality(accept, "*/*")
    )


def _quality(accept: str, media_type: str) -> float:
    for part in accept.split(","):
        name, _, parameters = part.partition(";")
        if name.strip().lower() == media_type:
            quality = parameters.strip().removeprefix("q=")
            try:
                return float(quality) if quality else 1.0
            except ValueError:
                return 1.0
    return 0.0


PDPP_VERSION = "2026-04-06"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


def echoed_request_id(headers: Mapping[str, str]) -> str | None:
    """The caller's request id, if it may be echoed.  Shapes: headers by lower-case name."""
    sent = headers.get("request-id") or headers.get("x-request-id") or ""
    return sent if _REQUEST_ID.match(sent) else None
