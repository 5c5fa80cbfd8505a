"""Which of the authority's sources a request is about.

Rule: the authority alone decides, no store is asked and no connection is probed; nothing outside
it can be told apart from nothing at all.
Source: docs/contract/resource-server.md 4.5, 4.6, 4.7.
"""

from __future__ import annotations

from pdpp_kernel.errors import (
    ConnectionNotFound,
    GrantExpired,
    GrantInvalid,
    GrantPaused,
    GrantRevoked,
    GrantStreamNotAllowed,
    NotFound,
    PersonalServerError,
)
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind, Unavailable
from personal_server.domain.envelope import render_unavailable
from personal_server.enforcement.ambiguity import ambiguous, connection_count
from personal_server.enforcement.fields import granted_here
from personal_server.enforcement.queries import Selectors

Sources = tuple[ReadableSource, ...]

_GRANT_REASONS: dict[str, type[PersonalServerError]] = {
    "grant_revoked": GrantRevoked,
    "grant_expired": GrantExpired,
    "grant_paused": GrantPaused,
    "grant_invalid": GrantInvalid,
}


def select_stream(
    authority: ReadAuthority, selectors: Selectors, stream: str, *, may_cross: bool = False
) -> Sources:
    """The sources of a source-required read of one stream; may_cross as in `ambiguous`.

    Shapes: not empty, of one source.
    Raises: ConnectionNotFound, GrantStreamNotAllowed, NotFound, AmbiguousConnection, or the
        reason why the named connection cannot be read.
    """
    candidates = _of_connector(authority, selectors)
    narrowed = _of_connection(authority, candidates, selectors, stream)
    found = tuple(source for source in narrowed if source.stream == stream)
    if not found:
        raise _no_such_stream(authority, selectors, stream)
    if (
        _is_open_choice(authority, candidates, selectors)
        or len({source.source.id for source in found}) > 1
    ):
        raise ambiguous(authority, candidates, stream, may_cross=may_cross)
    return found


def select_everywhere(authority: ReadAuthority, selectors: Selectors, stream: str) -> Sources:
    """The sources of a read of one stream over all its connections, whatever source they are of.

    Shapes: not empty.
    Raises: ConnectionNotFound, GrantStreamNotAllowed, NotFound.
    """
    selected = select_any(authority, selectors)
    found = tuple(source for source in selected if source.stream == stream)
    if not found:
        raise _no_such_stream(authority, selectors, stream)
    return found


def select_blob_sources(authority: ReadAuthority, selectors: Selectors) -> Sources:
    """The sources of a blob read: source-required, without a stream."""
    candidates = _of_connector(authority, selectors)
    narrowed = _of_connection(authority, candidates, selectors)
    if _is_open_choice(authority, candidates, selectors):
        raise ambiguous(authority, candidates, None)
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
        raise ConnectionNotFound(
            "This access includes no connection of that source.", param="connector_id"
        )
    return found


def _of_connection(
    authority: ReadAuthority, sources: Sources, selectors: Selectors, stream: str | None = None
) -> Sources:
    wanted = selectors.connection_id
    if wanted is None:
        return sources
    found = tuple(source for source in sources if source.connection_id == wanted)
    if not found:
        raise _unreadable(authority, wanted, stream)
    return found


def _unreadable(
    authority: ReadAuthority, connection_id: str, stream: str | None
) -> PersonalServerError:
    entries = [entry for entry in authority.unavailable if entry.connection_id == connection_id]
    for entry in entries:
        if entry.reason in _GRANT_REASONS:
            return _GRANT_REASONS[entry.reason](
                "The access to this account ended. Ask the owner to approve it again.",
                param="connection_id",
                **render_unavailable(entries),
            )
    meant = _labelled(authority, connection_id)
    streams = {source.stream for source in authority.sources if source.connection_id == meant}
    if stream is not None and streams and stream not in streams:
        return _no_such_stream(authority, Selectors(connection_id=meant), stream)
    if meant is not None:
        return ConnectionNotFound(
            "That is the label of a connection; 'connection_id' takes its id.",
            param="connection_id",
            recovery={"connection_id": meant},
        )
    return ConnectionNotFound(
        "This access includes no connection with that id; the schema lists all connections.",
        param="connection_id",
        **(render_unavailable(entries) if entries else {}),
    )


def _labelled(authority: ReadAuthority, label: str) -> str | None:
    """The one readable connection that is called so: by its label, else by its connector key."""
    sought = label.strip().casefold()
    for names in (
        {s.connection_id: s.display_name or "" for s in authority.sources},
        {s.connection_id: s.connector_key for s in authority.sources},
    ):
        found = [each for each, name in names.items() if name.strip().casefold() == sought]
        if sought and len(found) == 1:
            return found[0]
    return None


def _no_such_stream(
    authority: ReadAuthority, selectors: Selectors, stream: str
) -> PersonalServerError:
    if authority.kind is TokenKind.OWNER:
        return NotFound("No connection of this access has that stream.")
    if stream not in authority.granted_streams:
        return stream_not_granted(authority, stream, "stream")
    entries = [e for e in authority.unavailable if _could_hold(e, selectors, stream)]
    unavailable = render_unavailable(entries) if entries else {}
    if any(source.stream == stream for source in authority.sources):
        return ConnectionNotFound(
            "That connection does not share this stream; the schema lists those that do.",
            param="connection_id",
            **unavailable,
        )
    return ConnectionNotFound(
        "This access includes the stream, but no readable connection has records of that kind.",
        param="connection_id",
        **unavailable,
    )


def stream_not_granted(authority: ReadAuthority, name: str, param: str) -> GrantStreamNotAllowed:
    """The one refusal of a stream outside the grant, whether it exists or not."""
    names = sorted({source.stream for source in authority.sources})
    return GrantStreamNotAllowed(
        "The stream is not part of this grant.", param=param, **granted_here(name, names)
    )


def _could_hold(entry: Unavailable, selectors: Selectors, stream: str) -> bool:
    named = selectors.connection_id
    return entry.stream in (None, stream) and named in (None, entry.connection_id)


def _is_open_choice(authority: ReadAuthority, candidates: Sources, selectors: Selectors) -> bool:
    """Whether a package read left open which connection; it names it, whatever else was granted.

    Source: docs/decisions.md C6.
    """
    return (
        authority.kind is TokenKind.PACKAGE
        and selectors.connection_id is None
        and connection_count(candidates) > 1
    )
