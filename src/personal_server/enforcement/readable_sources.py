"""Selecting sources: which of the authority's sources a request is about.

Rule: the authority alone decides; nothing outside it can be told apart from nothing at all.
Source: docs/contract/resource-server.md 4.5, 4.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind, Unavailable
from personal_server.domain.envelope import (
    MAX_NAMED_CONNECTIONS,
    AvailableConnection,
    render_unavailable,
)
from personal_server.enforcement.queries import Selectors
from personal_server.errors import (
    AmbiguousConnection,
    AmbiguousSchemaDetail,
    ConnectionNotFound,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    GrantStreamNotAllowed,
    NotFound,
    PersonalServerError,
)

# Ambiguity: which connections a caller may choose from, said from the authority alone.
#
# Rule: no store is asked and no connection is probed; at most 12 are named.
# Source: docs/contract/resource-server.md 4.6.


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


Sources = tuple[ReadableSource, ...]

_GRANT_REASONS: dict[str, type[PersonalServerError]] = {
    "grant_revoked": GrantRevoked,
    "grant_expired": GrantExpired,
    "grant_invalid": GrantInvalid,
}


def select_stream(authority: ReadAuthority, selectors: Selectors, stream: str) -> Sources:
    """The sources of a source-required read of one stream.

    Shapes: not empty, of one source.
    Raises: ConnectionNotFound, GrantStreamNotAllowed, NotFound, AmbiguousConnection, or the
        reason why the named connection cannot be read.
    """
    candidates = _of_connector(authority, selectors)
    narrowed = _of_connection(authority, candidates, selectors)
    found = tuple(source for source in narrowed if source.stream == stream)
    if not found:
        raise _no_such_stream(authority, selectors, stream)
    _refuse_open_choice(authority, candidates, selectors, stream)
    if len({source.source.id for source in found}) > 1:
        raise ambiguous(authority, candidates, stream)
    return found


def select_blob_sources(authority: ReadAuthority, selectors: Selectors) -> Sources:
    """The sources of a blob read: source-required, without a stream."""
    candidates = _of_connector(authority, selectors)
    narrowed = _of_connection(authority, candidates, selectors)
    _refuse_open_choice(authority, candidates, selectors, None)
    return narrowed


def select_any(authority: ReadAuthority, selectors: Selectors) -> Sources:
    """The sources of a read that is never ambiguous; without selectors perhaps none."""
    return _of_connection(authority, _of_connector(authority, selectors), selectors)


def _of_connector(authority: ReadAuthority, selectors: Selectors) -> Sources:
    wanted = selectors.connector_id
    if wanted is None:
        return authority.sources
    found = tuple(s for s in authority.sources if wanted in (s.connector_key, s.source.id))
    if not found:
        raise ConnectionNotFound("No readable connection of that source.", param="connector_id")
    return found


def _of_connection(authority: ReadAuthority, sources: Sources, selectors: Selectors) -> Sources:
    wanted = selectors.connection_id
    if wanted is None:
        return sources
    found = tuple(source for source in sources if source.connection_id == wanted)
    if not found:
        raise _unreadable(authority, wanted)
    return found


def _unreadable(authority: ReadAuthority, connection_id: str) -> PersonalServerError:
    entries = [entry for entry in authority.unavailable if entry.connection_id == connection_id]
    for entry in entries:
        if entry.reason in _GRANT_REASONS:
            return _GRANT_REASONS[entry.reason](
                "The access to this connection ended; ask the owner to approve it again.",
                param="connection_id",
                **render_unavailable(entries),
            )
    return ConnectionNotFound(
        "No readable connection with that id; GET /v1/schema?view=compact lists them.",
        param="connection_id",
        **(render_unavailable(entries) if entries else {}),
    )


def _no_such_stream(
    authority: ReadAuthority, selectors: Selectors, stream: str
) -> PersonalServerError:
    if authority.kind is TokenKind.OWNER:
        return NotFound("No connection here has that stream.")
    if stream not in authority.granted_streams:
        return GrantStreamNotAllowed("The stream is not part of this grant.", param="stream")
    entries = [e for e in authority.unavailable if _could_hold(e, selectors, stream)]
    return ConnectionNotFound(
        "The stream is granted, but no readable connection holds it here.",
        param="connection_id",
        **(render_unavailable(entries) if entries else {}),
    )


def _could_hold(entry: Unavailable, selectors: Selectors, stream: str) -> bool:
    named = selectors.connection_id
    return entry.stream in (None, stream) and named in (None, entry.connection_id)


def _refuse_open_choice(
    authority: ReadAuthority, candidates: Sources, selectors: Selectors, stream: str | None
) -> None:
    """A package read names its connection, whatever else was granted.

    Source: docs/decisions.md C6.
    """
    if (
        authority.kind is TokenKind.PACKAGE
        and selectors.connection_id is None
        and connection_count(candidates) > 1
    ):
        raise ambiguous(authority, candidates, stream)
