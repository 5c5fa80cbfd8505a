"""What a read gave away: per source, which fields and how many records, never what they said.

Rule: a line of the log holds names, counts and times only.  What was asked and which keys were
handed out lie beside it, for a shorter time; the line holds a salted commitment to them, so that
it proves them while they are kept and gives nothing away when they are gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import orjson

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
        `record_count` is 0); `keys` are those of the records.
    Source: docs/contract/resource-server.md 14.3.
    """

    source: ReadableSource
    fields: tuple[str, ...]
    record_count: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedDetail:
    """What is kept beside a line: path and query as they were sent, and the keys handed out.

    Source: docs/decisions.md C36.
    """

    salt: bytes
    asked: str
    keys: tuple[str, ...] = ()

    @property
    def commitment(self) -> str:
        """What the line says of it: SHA-256 over the salt and both, in hex."""
        said = orjson.dumps([self.asked, self.keys])
        return hashlib.sha256(self.salt + said).hexdigest()


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
    detail: AskedDetail | None = None
