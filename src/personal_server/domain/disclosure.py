"""What a read gave away: per source, which fields and how many records, never what they said.

Rule: an entry holds names, counts and times only; no query text, filter value, key or content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from personal_server.domain.authority import ReadableSource

Outcome = Literal["served", "denied"]
Channel = Literal["mcp", "rest"]
TokenName = Literal["client", "mcp_package", "owner", "collector"]

SERVED: Outcome = "served"
DENIED: Outcome = "denied"


@dataclass(frozen=True, slots=True)
class Disclosed:
    """One source that contributed to an answer.

    Shapes: `fields` are the names disclosed (or used, for counts and aggregates, whose
        `record_count` is 0).
    Source: docs/contract/resource-server.md 14.3.
    """

    source: ReadableSource
    fields: tuple[str, ...]
    record_count: int


@dataclass(frozen=True, slots=True)
class DisclosureEntry:
    """One line of the disclosure log.  `at_ns` is UTC; `size_bytes` the bytes sent for it."""

    disclosure_id: str
    subject_id: str
    at_ns: int
    request_id: str
    outcome: Outcome
    token_kind: TokenName
    channel: Channel
    route: str
    error_code: str | None = None
    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    tool: str | None = None
    connector_key: str | None = None
    connection_id: str | None = None
    stream: str | None = None
    fields: tuple[str, ...] = ()
    record_count: int = 0
    size_bytes: int = 0
