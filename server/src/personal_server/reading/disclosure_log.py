"""Disclosing: what an answer gave away becomes entries of the disclosure log.

Rule: an entry exists for every source that contributed and for every refusal after the token was
judged; its line never holds query texts, filter values, keys or contents.  What a client asked and
the keys it got lie beside the line (`AskedDetail`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from pdpp_kernel.errors import PersonalServerError
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.disclosure import (
    DENIED,
    SERVED,
    AskedDetail,
    Disclosed,
    DisclosureEntry,
    Outcome,
)

_TOOL = re.compile(r"[a-z_]{1,64}\Z")

SALT_BYTES = 32


class DisclosureLog(Protocol):
    """Where entries go; durable within a second."""

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        """Take entries to be written."""
        ...

    def check(self) -> None:
        """Raise StorageUnavailable once the log could not be written for 10 s."""
        ...


class ServedCall(msgspec.Struct, frozen=True):
    """The facts of a request that an entry names.

    Shapes: `tool` is the `PDPP-Tool` header as sent, `asked` path and query as sent.
    """

    authority: ReadAuthority
    route: str
    request_id: str
    at_ns: int
    tool: str | None = None
    stream: str | None = None
    asked: str = ""


class EntrySecrets(msgspec.Struct, frozen=True):
    """What entries need of chance: their ids, and the salt of what lies beside each."""

    random_bytes: Callable[[int], bytes]

    def new_id(self) -> str:
        """The id of an entry."""
        return f"dis_{self.random_bytes(12).hex()}"

    def detail(self, call: ServedCall, keys: tuple[str, ...] = ()) -> AskedDetail | None:
        """What lies beside an entry; nothing where the owner reads."""
        if call.authority.kind is TokenKind.OWNER:
            return None
        return AskedDetail(self.random_bytes(SALT_BYTES), call.asked, keys)


def served_entries(
    call: ServedCall, disclosed: Sequence[Disclosed], size_bytes: int, secrets: EntrySecrets
) -> list[DisclosureEntry]:
    """One entry per source that contributed; the bytes sent are shared out by records.

    What disclosed no field, a search that found nothing, names no connection and no stream.

    Source: docs/contract/resource-server.md 14.3.
    """
    sizes = shared_out(size_bytes, [part.record_count for part in disclosed])
    return [
        _entry(
            call,
            secrets.new_id(),
            SERVED,
            grant_id=part.source.grant_id,
            connector_key=part.source.connector_key if part.fields else None,
            connection_id=part.source.connection_id if part.fields else None,
            stream=part.source.stream if part.fields else None,
            fields=part.fields,
            record_count=part.record_count,
            size_bytes=size,
            detail=secrets.detail(call, part.keys),
        )
        for part, size in zip(disclosed, sizes, strict=True)
    ]


def denied_entry(
    call: ServedCall, error: PersonalServerError, secrets: EntrySecrets
) -> DisclosureEntry:
    """The entry of a refusal.  A stream is named only if the grants name it."""
    authority = call.authority
    named = call.stream if call.stream in authority.granted_streams else None
    return _entry(
        call,
        secrets.new_id(),
        DENIED,
        error_code=error.code,
        grant_id=authority.grant_ids[0] if len(authority.grant_ids) == 1 else None,
        stream=named,
        detail=secrets.detail(call),
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


def _entry(
    call: ServedCall, disclosure_id: str, outcome: Outcome, **members: object
) -> DisclosureEntry:
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
