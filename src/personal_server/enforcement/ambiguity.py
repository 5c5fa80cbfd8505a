"""Ambiguity: which connections a caller may choose from, said from the authority alone.

Rule: no store is asked and no connection is probed; at most 12 are named.
Source: RS contract 4.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.envelope import MAX_NAMED_CONNECTIONS, render_unavailable
from personal_server.errors import AmbiguousConnection, AmbiguousSchemaDetail

HINT = "GET /v1/schema?view=compact lists every connection."


def ambiguous(
    authority: ReadAuthority, candidates: Iterable[ReadableSource], stream: str | None
) -> AmbiguousConnection:
    """Several of the candidates' connections could answer."""
    return AmbiguousConnection(
        *_message(candidates := tuple(candidates)),
        param="connection_id",
        **_members(authority, candidates, stream),
    )


def ambiguous_schema(
    authority: ReadAuthority, candidates: Iterable[ReadableSource], stream: str
) -> AmbiguousSchemaDetail:
    """Full schema detail over several connections."""
    return AmbiguousSchemaDetail(
        *_message(candidates := tuple(candidates)),
        param="connection_id",
        **_members(authority, candidates, stream),
    )


def connection_count(sources: Iterable[ReadableSource]) -> int:
    """How many connections the sources lie on."""
    return len({source.connection_id for source in sources})


def _message(candidates: Sequence[ReadableSource]) -> tuple[str]:
    count = connection_count(candidates)
    return (f"{count} connections could answer; pass connection_id to name one.",)


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
    members: dict[str, object] = {
        "connection_id": chosen.connection_id,
        "connector_key": chosen.connector_key,
        "grant_id": chosen.grant_id,
        "display_name": chosen.display_name,
        "has_stream": None if stream is None else chosen.stream == stream,
    }
    return {name: value for name, value in members.items() if value is not None}


def _entry_order(entry: dict[str, object]) -> tuple[bool, str, str, str]:
    return (
        entry.get("has_stream") is False,
        str(entry["connector_key"]),
        str(entry.get("display_name", "")),
        str(entry["connection_id"]),
    )
