"""What a read gave away: per source, which fields and how many records, never what they said.

Rule: a line of the log holds names, counts and times only.  What was asked and which keys were
handed out lie beside it, for a shorter time; the line holds a salted commitment to them, so that
it proves them while they are kept and gives nothing away when they are gone.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import orjson

from personal_server.domain.authority import ReadableSource

Outcome = Literal["served", "denied"]
Channel = Literal["mcp", "rest"]
TokenName = Literal["client", "mcp_package", "owner", "collector"]

SERVED: Outcome = "served"
DENIED: Outcome = "denied"


class Disclosed(msgspec.Struct, frozen=True):
    """One source that contributed to an answer.

    Shapes: `fields` are the names disclosed (or used, for counts and aggregates, whose
        `record_count` is 0); `keys` are those of the records.
    Source: docs/contract/resource-server.md 14.3.
    """

    source: ReadableSource
    fields: tuple[str, ...]
    record_count: int
    keys: tuple[str, ...] = ()


class AskedDetail(msgspec.Struct, frozen=True):
    """What is kept beside a line: path and query as they were sent, and the keys handed out.

    Source: docs/decisions.md C36.
    """

    salt: bytes
    asked: str
    keys: tuple[str, ...] = ()

    @property
    def commitment(self) -> str:
        """What the line says of it: SHA-256 over the salt and both, in hex."""
        committed = orjson.dumps([self.asked, self.keys])
        return hashlib.sha256(self.salt + committed).hexdigest()

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What was asked, as names and what they say: the words, a filter, a record and so on.

        What an adapter says of the room it has is left out; several values are one, with commas.
        """
        parts = urlsplit(self.asked)
        record, blob = _RECORD.search(parts.path), _BLOB.search(parts.path)
        facts: dict[str, list[str]] = {}
        for name, match in (("record", record), ("file", blob)):
            if match is not None:
                facts[name] = [unquote(match[1])]
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name not in _ROOM:
                facts.setdefault(_asked_name(name), []).append(value)
        return [(name, ", ".join(values)) for name, values in facts.items()]


_RECORD = re.compile(r"/records/([^/]+)")
_BLOB = re.compile(r"/v1/blobs/([^/]+)")
_ROOM = frozenset({"page_chars", "member_chars"})
_NAMES = {"q": "words", "query": "words", "limit": "at most", "cursor": "further page"}


def _asked_name(parameter: str) -> str:
    """A parameter as a name: `filter[sent_at][gte]` is `sent_at gte`."""
    if parameter.startswith("filter["):
        return parameter.removeprefix("filter[").replace("][", " ").replace("]", "")
    return _NAMES.get(parameter, parameter)


class DisclosureEntry(msgspec.Struct, frozen=True):
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
