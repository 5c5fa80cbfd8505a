"""From a resolved token to its read authority, and which of its sources a request means.

Rule: the current declaration may narrow what a grant names and never widens it; whatever cannot
be read is named with a reason, never silently dropped.
Source: docs/contract/resource-server.md 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from pdpp_kernel import persons
from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import SourceDeclaration, Stream
from pdpp_kernel.errors import (
    AmbiguousConnection,
    AmbiguousSchemaDetail,
    ConnectionNotFound,
    GrantExpired,
    GrantInvalid,
    GrantPaused,
    GrantRevoked,
    GrantStreamNotAllowed,
    NotFound,
    PersonalServerError,
)
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import comparable
from personal_server.domain.authority import (
    Access,
    ReadableSource,
    ReadAuthority,
    SourceId,
    TokenKind,
    Unavailable,
)
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.envelope import (
    MAX_NAMED_CONNECTIONS,
    AvailableConnection,
    render_unavailable,
)
from personal_server.domain.grant import (
    ACTIVE,
    ContentLimit,
    Grant,
    MemberGrant,
    Resolved,
    StreamGrant,
)
from personal_server.enforcement.fields import granted_here
from personal_server.enforcement.own_names import granted_part
from personal_server.enforcement.queries import Selectors

_TIMES = frozenset({"date", "date-time"})

Connections = Mapping[str, Connection]
Declarations = Mapping[str, SourceDeclaration]


def read_authority(
    resolved: Resolved, connections: Iterable[Connection], declarations: Declarations
) -> ReadAuthority:
    """The readable sources that a token stands for now.

    Shapes: `connections` are those of the token's subject that are not deleted; `declarations`
        are the current ones by connector key.
    """
    by_id = {connection.connection_id: connection for connection in connections}
    kind = TokenKind(resolved.kind)
    if kind is TokenKind.OWNER:
        return _owner_authority(resolved, by_id, declarations)
    if kind is TokenKind.COLLECTOR:
        return ReadAuthority(
            kind=kind,
            subject_id=resolved.subject_id,
            sources=(),
            client_id=resolved.client_id,
            collects_for=resolved.connection_id,
        )
    built = _Built({}, {})
    for member in resolved.grants:
        _add_member(built, member, by_id, declarations)
    grants = [member.grant for member in resolved.grants if member.grant is not None]
    return ReadAuthority(
        kind=kind,
        subject_id=resolved.subject_id,
        client_id=resolved.client_id,
        package_id=resolved.package_id,
        grant_ids=tuple(member.grant_id for member in resolved.grants),
        sources=built.sources(),
        unavailable=tuple(sorted(built.unavailable, key=_unavailable_order)),
        granted_streams=frozenset(gs.name for grant in grants for gs in grant.streams),
        access=_access(grants),
        budget=resolved.budget,
        lineage=resolved.lineage,
    )


@dataclass(frozen=True, slots=True)
class _Built:
    """What the member grants came to so far: per (connection, stream) the latest issued wins."""

    readable: dict[tuple[str, str], tuple[tuple[str, str], ReadableSource]]
    unavailable: dict[Unavailable, None]

    def add(self, issued: tuple[str, str], source: ReadableSource) -> None:
        """Field lists are never united: a later grant replaces an earlier one."""
        present = self.readable.get(source.order)
        if present is None or present[0] < issued:
            self.readable[source.order] = (issued, source)

    def sources(self) -> tuple[ReadableSource, ...]:
        """In source order."""
        return _with_persons(self.readable[order][1] for order in sorted(self.readable))


def _owner_authority(
    resolved: Resolved, connections: Connections, declarations: Declarations
) -> ReadAuthority:
    found = [
        _source(None, connection, declaration, stream, tuple(stream.properties))
        for connection in connections.values()
        if (declaration := declarations.get(connection.connector_key)) is not None
        for stream in declaration.streams.values()
    ]
    return ReadAuthority(
        kind=TokenKind.OWNER,
        subject_id=resolved.subject_id,
        client_id=resolved.client_id,
        sources=_with_persons(sorted(found, key=lambda source: source.order)),
        granted_streams=frozenset(source.stream for source in found),
    )


def _with_persons(sources: Iterable[ReadableSource]) -> tuple[ReadableSource, ...]:
    """Persons are made of what the same authority reads, and of nothing else.

    Source: docs/contract/resource-server.md 22.3.
    """
    readable = tuple(sources)
    if not any(_is_of_persons(source) for source in readable):
        return readable
    telling = tuple(source for source in readable if not _is_of_persons(source) and _tells(source))
    return tuple(
        replace(source, made_of=telling) if _is_of_persons(source) else source
        for source in readable
    )


def _is_of_persons(source: ReadableSource) -> bool:
    return source.connector_key == persons.CONNECTOR_KEY


def _tells(source: ReadableSource) -> bool:
    return any(each.field in source.fields for each in source.declared.person_fields)


def _add_member(
    built: _Built, member: MemberGrant, connections: Connections, declarations: Declarations
) -> None:
    grant = member.grant
    if grant is None:
        entry = Unavailable("", "grant_invalid", member.connector_key, member.grant_id)
        built.unavailable[entry] = None
        return
    for named, connection_id in _named(grant):
        connection = connections.get(connection_id)
        found = _readable(member, grant, named, connection, declarations)
        if isinstance(found, ReadableSource):
            built.add((grant.issued_at, grant.grant_id), found)
            continue
        if found == "source_mismatch":
            connection = None  # what it is called belongs to a source that was not granted
        entry = Unavailable(
            connection_id=connection_id,
            reason=found,
            connector_key=connection.connector_key if connection else member.connector_key,
            grant_id=grant.grant_id,
            stream=named.stream.name if found == "stream_not_declared" else None,
            display_name=connection.display_name if connection else None,
        )
        built.unavailable[entry] = None


@dataclass(frozen=True, slots=True)
class _NamedStream:
    """A stream grant with its lists as sets, made once for all its connections."""

    stream: StreamGrant
    fields: frozenset[str]
    resources: frozenset[str] | None


def _named(grant: Grant) -> Iterator[tuple[_NamedStream, str]]:
    for stream in grant.streams:
        resources = None if stream.resources is None else frozenset(stream.resources)
        named = _NamedStream(stream, frozenset(stream.fields), resources)
        for connection_id in stream.instance_ids:
            yield named, connection_id


def _readable(
    member: MemberGrant,
    grant: Grant,
    named: _NamedStream,
    connection: Connection | None,
    declarations: Declarations,
) -> ReadableSource | str:
    """The readable source of one stream grant on one connection, or why there is none."""
    if member.status != ACTIVE:
        return member.status
    if connection is None:
        return "connection_deleted"
    if connection.status is ConnectionStatus.REVOKED:
        return "connection_revoked"
    if connection.source_id != grant.source.id:
        return "source_mismatch"
    declaration = declarations.get(connection.connector_key)
    stream = declaration.streams.get(named.stream.name) if declaration is not None else None
    if declaration is None or stream is None:
        return "stream_not_declared"
    fields = tuple(name for name in stream.properties if name in named.fields)
    if not fields:
        return "stream_not_declared"
    only = content_conditions(named.stream.only, stream)
    if only is None or not _is_well_formed(named.stream, stream, fields):
        return "grant_invalid"
    found = _source(named, connection, declaration, stream, fields, grant.grant_id, only)
    return granted_part(found) if declaration.is_of_own_file else found


def _is_well_formed(named: StreamGrant, stream: Stream, fields: tuple[str, ...]) -> bool:
    """The key is granted (records show it), and the constraint bounds a declared time."""
    if not set(stream.primary_key) <= set(fields):
        return False
    if named.time_constraint is None:
        return True
    bounded = stream.properties.get(named.time_constraint.field)
    return bounded is not None and bounded.kind is not None and bounded.kind.value in _TIMES


def content_conditions(
    limits: Sequence[ContentLimit], stream: Stream
) -> tuple[Condition, ...] | None:
    """What every record of a stream satisfies under these limits.

    Source: docs/contract/resource-server.md 4.8.
    Returns: `None` where one cannot be held to: its field, or a value of it, is none any more.
    """
    found: list[Condition] = []
    for limit in limits:
        declared = stream.properties.get(limit.field)
        if declared is None or declared.kind is None or limit.field not in stream.limiting:
            return None
        values = tuple(comparable(value, declared.kind) for value in limit.values)
        if None in values:
            return None
        first, *further = (value for value in values if value is not None)
        operator = Operator.IN if further else Operator.EQ
        place = (limit.field, declared.kind, operator)
        found.append(Condition(*place, first, tuple(further), declared.is_caseless))
    return tuple(found)


def _source(
    named: _NamedStream | None,
    connection: Connection,
    declaration: SourceDeclaration,
    stream: Stream,
    fields: tuple[str, ...],
    grant_id: str | None = None,
    only: tuple[Condition, ...] = (),
) -> ReadableSource:
    return ReadableSource(
        grant_id=grant_id,
        source=SourceId(declaration.source_kind, declaration.source_id),
        connector_key=declaration.connector_key,
        connection_id=connection.connection_id,
        display_name=connection.display_name,
        declared=stream,
        fields=fields,
        time_constraint=None if named is None else named.stream.time_constraint,
        resources=None if named is None else named.resources,
        declaration_version=declaration.version,
        source_name=declaration.display_name,
        maximum_staleness_seconds=declaration.maximum_staleness_seconds,
        sibling_streams=frozenset(declaration.streams),
        only=only,
    )


def _access(grants: list[Grant]) -> Access | None:
    """The terms shown to the client; the members of a package share mode and end."""
    if not grants:
        return None
    grant = grants[0]
    return Access(
        expires_at=grant.expires_at,
        access_mode=grant.access_mode,
        purpose_code=grant.purpose_code,
        purpose_description=grant.purpose_description,
    )


def _unavailable_order(entry: Unavailable) -> tuple[str, str, str]:
    return (entry.connection_id, entry.stream or "", entry.grant_id or "")


# Which of the authority's sources a request is about, and when that is ambiguous.
#
# Rule: the authority alone decides, no store is asked and no connection is probed; nothing outside
# it can be told apart from nothing at all, and at most 12 connections are named.
# Source: docs/contract/resource-server.md 4.5, 4.6, 4.7.

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
    several = len(holders) > 1
    message = f"{len(holders)} connections" if several else "One connection"
    message += f" could answer; pass connection_id to name {'one' if several else 'it'}"
    if may_cross:
        message += ", or across (connections) to take all that hold the stream"
    members = _members(authority, candidates, stream)
    if not several:
        members["recovery"] = {"connection_id": holders[0]}
    elif may_cross:
        members["recovery"] = {"across": "connections"}
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
    narrowed = _of_connection(authority, candidates, selectors)
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
        return stream_not_granted(authority, stream, "stream")
    entries = [e for e in authority.unavailable if _could_hold(e, selectors, stream)]
    return ConnectionNotFound(
        "The stream is granted, but no readable connection holds it here.",
        param="connection_id",
        **(render_unavailable(entries) if entries else {}),
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
