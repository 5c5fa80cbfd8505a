"""Ambiguity: the caller must name a connection, and which there are.

Rule: nothing outside the authority can be told apart from nothing at all, and at most 12
connections are named.
Source: docs/contract/resource-server.md 4.5, 4.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pdpp_kernel.errors import AmbiguousConnection, AmbiguousSchemaDetail
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.envelope import (
    MAX_NAMED_CONNECTIONS,
    AvailableConnection,
    render_unavailable,
)

HINT = "GET /v1/schema?view=compact lists every connection."


def ambiguous(
    authority: ReadAuthority,
    candidates: Iterable[ReadableSource],
    stream: str | None,
    *,
    may_cross: bool = False,
) -> AmbiguousConnection:
    """The caller must name one of the candidates' connections.

    Shapes: may_cross tells that the read takes `across`; then and where one connection alone
            holds the stream, `recovery` has what answers the same question.
    """
    candidates = tuple(candidates)
    holders = sorted({s.connection_id for s in candidates if stream in (None, s.stream)})
    members = _members(authority, candidates, stream)
    if len(holders) == 1:
        members["recovery"] = {"connection_id": holders[0]}
        # by its place: a label is stored text, which no message quotes (docs/decisions.md C37)
        message = "Only the first connection listed has this stream; pass its connection_id"
    else:
        message = f"{len(holders)} connections could answer; pass connection_id to name one"
        if may_cross:
            members["recovery"] = {"across": "connections"}
            message += ", or across (connections) to read all that have the stream"
    return AmbiguousConnection(f"{message}.", param="connection_id", **members)


def ambiguous_schema(
    authority: ReadAuthority, candidates: Iterable[ReadableSource], stream: str
) -> AmbiguousSchemaDetail:
    """Full schema detail over several connections."""
    return AmbiguousSchemaDetail(
        f"{connection_count(candidates := tuple(candidates))} connections could answer;"
        " pass connection_id to name one.",
        param="connection_id",
        **_members(authority, candidates, stream),
    )


def connection_count(sources: Iterable[ReadableSource]) -> int:
    """How many connections the sources lie on."""
    return len({source.connection_id for source in sources})


def _members(
    authority: ReadAuthority, candidates: Sequence[ReadableSource], stream: str | None
) -> dict[str, object]:
    entries = sorted(
        (_entry(sources, stream) for sources in _by_connection(candidates)), key=_entry_order
    )
    named = entries[:MAX_NAMED_CONNECTIONS]
    members: dict[str, object] = {
        "retry_with": "connection_id",
        "available_connections": named,
        "available_connection_count": len(entries),
        "available_connections_truncated": len(named) < len(entries),
    }
    if len(named) < len(entries):
        members["available_connections_omitted"] = len(entries) - len(named)
        members["discovery_hint"] = HINT
    if authority.unavailable:
        members |= render_unavailable(authority.unavailable)
    return members


def _by_connection(candidates: Sequence[ReadableSource]) -> list[list[ReadableSource]]:
    grouped: dict[str, list[ReadableSource]] = {}
    for source in candidates:
        grouped.setdefault(source.connection_id, []).append(source)
    return list(grouped.values())


def _entry(sources: list[ReadableSource], stream: str | None) -> dict[str, object]:
    chosen = next((s for s in sources if s.stream == stream), sources[0])
    return msgspec.to_builtins(
        AvailableConnection(
            connection_id=chosen.connection_id,
            connector_key=chosen.connector_key,
            grant_id=chosen.grant_id,
            display_name=chosen.display_name,
            has_stream=None if stream is None else chosen.stream == stream,
        )
    )


def _entry_order(entry: dict[str, object]) -> tuple[bool, str, str, str]:
    return (
        entry.get("has_stream") is False,
        str(entry["connector_key"]),
        str(entry.get("display_name", "")),
        str(entry["connection_id"]),
    )
