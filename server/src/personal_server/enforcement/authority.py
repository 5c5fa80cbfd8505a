"""From a resolved token to its read authority.

Rule: the current declaration may narrow what a grant names and never widens it; whatever cannot
be read is named with a reason, never silently dropped.
Source: docs/contract/resource-server.md 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from pdpp_kernel import persons
from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Stream
from pdpp_kernel.operators import Operator
from pdpp_kernel.source_declaration import SourceDeclaration
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
from personal_server.domain.grant import (
    ACTIVE,
    ContentLimit,
    Grant,
    MemberGrant,
    Resolved,
    StreamGrant,
)
from personal_server.enforcement.own_names import granted_part

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


class _Built(msgspec.Struct, frozen=True):
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


class _NamedStream(msgspec.Struct, frozen=True):
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
        compared = (limit.field, declared.kind, operator)
        found.append(Condition(*compared, first, tuple(further), declared.is_caseless))
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
