"""Disclosing: what an answer gave away becomes entries of the disclosure log.

Rule: an entry exists for every source that contributed and for every refusal after the token was
judged; it never holds query texts, filter values, keys or contents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.disclosure import DENIED, SERVED, Disclosed, DisclosureEntry
from personal_server.errors import PersonalServerError

_TOOL = re.compile(r"[a-z_]{1,64}\Z")

EntryId = Callable[[], str]


class DisclosureLog(Protocol):
    """Where entries go; durable within a second."""

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        """Take entries to be written."""
        ...

    def check(self) -> None:
        """Raise StorageUnavailable once the log could not be written for 10 s."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """The facts of a request that an entry names.  `tool` is the `PDPP-Tool` header as sent."""

    authority: ReadAuthority
    route: str
    request_id: str
    at_ns: int
    tool: str | None = None
    stream: str | None = None


def served_entries(
    call: Call, disclosed: Sequence[Disclosed], size_bytes: int, new_id: EntryId
) -> list[DisclosureEntry]:
    """One entry per source that contributed; the bytes sent are shared out by records.

    Source: RS contract 14.3.
    """
    sizes = shared_out(size_bytes, [part.record_count for part in disclosed])
    return [
        _entry(
            call,
            new_id(),
            SERVED,
            grant_id=part.source.grant_id,
            connector_key=part.source.connector_key,
            connection_id=part.source.connection_id,
            stream=part.source.stream,
            fields=part.fields,
            record_count=part.record_count,
            size_bytes=size,
        )
        for part, size in zip(disclosed, sizes, strict=True)
    ]


def denied_entry(call: Call, error: PersonalServerError, new_id: EntryId) -> DisclosureEntry:
    """The entry of a refusal.  A stream is named only if the grants name it."""
    authority = call.authority
    named = call.stream if call.stream in authority.granted_streams else None
    return _entry(
        call,
        new_id(),
        DENIED,
        error_code=error.code,
        grant_id=authority.grant_ids[0] if len(authority.grant_ids) == 1 else None,
        stream=named,
    )


def shared_out(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts by weight, without a rest; equal parts if all weights are 0."""
    shares = list(weights) if any(weights) else [1] * len(weights)
    parts: list[int] = []
    given, seen, whole = 0, 0, sum(shares)
    for share in shares:
        seen += share
        parts.append(total * seen // whole - given)
        given += parts[-1]
    return parts


def _entry(call: Call, disclosure_id: str, outcome: str, **members: object) -> DisclosureEntry:
    authority = call.authority
    tool = call.tool if call.tool and _TOOL.match(call.tool) else None
    return DisclosureEntry(
        disclosure_id=disclosure_id,
        subject_id=authority.subject_id,
        at_ns=call.at_ns,
        request_id=call.request_id,
        outcome=outcome,
        token_kind=authority.kind.value,
        channel="mcp" if tool else "rest",
        route=call.route,
        client_id=authority.client_id,
        package_id=authority.package_id,
        tool=tool,
        **members,  # type: ignore[arg-type]
    )
