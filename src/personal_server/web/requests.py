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
        for spooled routes; `headers` have lower-case names.
    Units: `now_ns` UTC nanoseconds; `deadline_ns` on the same clock, `None` without one.
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
    deadline_ns: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    spool: BinaryIO | None = None
    method: str = "GET"

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


# What a weighted header (`Accept`, `Accept-Encoding`) prefers.  Source: RFC 9110 12.5.1, 12.5.3.

_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


def weights(header: str) -> Mapping[str, float]:
    """What a weighted header names, and how much each is wanted; a malformed weight is none."""
    found: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((p[2:].strip() for p in parameters if p.startswith("q=")), "1")
        if name:
            found[name] = max(found.get(name, 0.0), float(weight) if _WEIGHT.match(weight) else 0.0)
    return found


def prefers_html(accept: str) -> bool:
    """Whether HTML is wanted more than JSON."""
    wanted = weights(accept)
    return _rank(wanted, "text/html") > _rank(wanted, "application/json")


def prefers_json(accept: str) -> bool:
    """Whether JSON is wanted more than HTML."""
    wanted = weights(accept)
    return _rank(wanted, "application/json") > _rank(wanted, "text/html")


def _rank(wanted: Mapping[str, float], media_type: str) -> tuple[float, bool]:
    """How much a media type is wanted: its own name counts before a wildcard of equal weight."""
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        weight = wanted.get(name)
        if weight is not None:
            return (weight, weight > 0 and name == media_type)
    return (0.0, False)


PDPP_VERSION = "2026-04-06"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


def echoed_request_id(headers: Mapping[str, str]) -> str | None:
    """The caller's request id, if it may be echoed.  Shapes: headers by lower-case name."""
    sent = headers.get("request-id") or headers.get("x-request-id") or ""
    return sent if _REQUEST_ID.match(sent) else None
