"""The grant: the immutable consent artifact, and its stream grants.

Rule: stored bytes that do not parse as this shape are never repaired; an empty list is a
construction error and therefore denies.  The *state* of a grant lives beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import GrantInvalid
from pdpp_kernel.values import DAY_NANOSECONDS, MAX_INTEGER, day_number, instant_ns
from personal_server.domain.authority import ReadingBudget, SourceId, TimeConstraint

GRANT_VERSION = "0.1.0"
# That of a grant limited by content, so that who does not know such limits cannot pass over them.
LIMITED_VERSION = "0.2.0"
MOST_LIMITS, MOST_VALUES, VALUE_CHARS = 8, 1_000, 200
FIRST_NS = (date.min.toordinal() - date(1970, 1, 1).toordinal()) * DAY_NANOSECONDS
END_NS = (date.max.toordinal() + 1 - date(1970, 1, 1).toordinal()) * DAY_NANOSECONDS
# How a grant stands that can be read.
ACTIVE = "active"
Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Annotated[list[Text], msgspec.Meta(min_length=1)]


# A value by which a grant is limited, as JSON has it.
LimitValue = str | int | bool


class ContentLimit(msgspec.Struct, frozen=True):
    """Only records whose field has one of these values."""

    field: str
    values: tuple[LimitValue, ...]

    def __post_init__(self) -> None:
        """Without values nothing would be granted; what no column compares cannot be asked for."""
        distinct = {(type(value), value) for value in self.values}
        if not self.field or not 0 < len(self.values) <= MOST_VALUES:
            raise GrantInvalid("A content limit must have a field and values, and not too many.")
        if len(distinct) != len(self.values) or not all(map(is_limit_value, self.values)):
            raise GrantInvalid("The values of a content limit must be short and all different.")


def value_text(value: LimitValue) -> str:
    """A value as a form posts it and a command line names it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_limit_value(value: LimitValue) -> bool:
    """Whether a grant may be limited to that value: not longer than what an index compares."""
    if isinstance(value, str):
        return len(value) <= VALUE_CHARS
    return -MAX_INTEGER <= value <= MAX_INTEGER


class StreamGrant(msgspec.Struct, frozen=True):
    """One stream of a grant: on which connections, which fields, when, which records.

    Shapes: `only`: at most one limit a field; a record satisfies all of them.
    """

    name: str
    instance_ids: tuple[str, ...]
    fields: tuple[str, ...]
    time_constraint: TimeConstraint | None = None
    resources: tuple[str, ...] | None = None
    only: tuple[ContentLimit, ...] = ()

    def __post_init__(self) -> None:
        """Empty means nothing, never everything: such a stream grant cannot exist."""
        fields = {limit.field for limit in self.only}
        if len(fields) != len(self.only) or len(fields) > MOST_LIMITS:
            raise GrantInvalid("A stream grant can limit each field only once.")
        if not self.name or not self.instance_ids or not self.fields or self.resources == ():
            raise GrantInvalid("A stream grant must name a stream, connections and fields.")


class Grant(msgspec.Struct, frozen=True):
    """The artifact of core §7.  `expires_at` is RFC 3339 UTC or `None` for no end.

    Shapes: `client_display`, `retention`: JSON objects as agreed; `streams` is non-empty.
    """

    grant_id: str
    issued_at: str
    subject_id: str
    client_id: str
    source: SourceId
    declaration_version: str
    purpose_code: str
    access_mode: str
    streams: tuple[StreamGrant, ...]
    expires_at: str | None
    client_display: dict[str, object] | None = None
    purpose_description: str | None = None
    selection_preset: str | None = None
    retention: dict[str, object] | None = None

    def __post_init__(self) -> None:
        """A grant without streams grants nothing and is malformed."""
        if not self.streams or self.access_mode not in ("single_use", "continuous"):
            raise GrantInvalid("A grant must name streams and an access mode.")


class MemberGrant(msgspec.Struct, frozen=True):
    """A grant as the token resolver hands it on (docs/contract/authorization-server.md 11.3).

    `grant` is `None` when the stored form cannot be read; then `status` is `grant_invalid`.
    """

    grant_id: str
    grant: Grant | None
    connector_key: str | None
    status: str


class Resolved(msgspec.Struct, frozen=True):
    """What a token has become when the authorization server is done with it.

    Source: docs/contract/authorization-server.md 11.3.  `grants`: one; several for a package; none
    for the owner and for a collector, which has a `connection_id`.  `result_chars`: how long the
    owner lets a tool result be, where that was said.  `lineage`: the first of those that the grant
    or package succeeds, where it succeeds one.
    """

    kind: str
    subject_id: str
    client_id: str
    token_reference: str
    resource: str
    expires_at_ns: int
    grants: tuple[MemberGrant, ...] = ()
    package_id: str | None = None
    connection_id: str | None = None
    budget: ReadingBudget | None = None
    result_chars: int | None = None
    lineage: str | None = None


@lru_cache(maxsize=1_024)
def parse_grant(stored: bytes) -> Grant:
    """The grant that these bytes are; the same bytes are always the same grant.

    Source: docs/contract/authorization-server.md 11.1.
    Raises: GrantInvalid.
    """
    try:
        parsed: object = json.loads(stored, object_pairs_hook=_members_once)
        raw = msgspec.convert(parsed, _StoredGrant)
    except ValueError as error:  # msgspec's ValidationError is one too
        raise GrantInvalid("The stored grant cannot be read.") from error
    streams = _streams(raw.streams)
    if raw.version != _version(streams):
        raise GrantInvalid("The stored grant has an unknown version.")
    return Grant(
        grant_id=raw.grant_id,
        issued_at=_instant(raw.issued_at),
        subject_id=raw.subject.id,
        client_id=raw.client.client_id,
        client_display=raw.client.client_display,
        source=SourceId(kind=raw.source.kind, id=raw.source.id),
        declaration_version=raw.source_declaration.version,
        purpose_code=raw.purpose_code,
        purpose_description=raw.purpose_description,
        access_mode=raw.access_mode,
        streams=streams,
        expires_at=None if raw.expires_at is None else _instant(raw.expires_at),
        selection_preset=raw.selection_preset,
        retention=raw.retention,
    )


def render_grant(grant: Grant) -> bytes:
    """The bytes under which a grant is stored."""
    client: dict[str, object] = {"client_id": grant.client_id}
    if grant.client_display is not None:
        client["client_display"] = grant.client_display
    members: dict[str, object] = {
        "version": _version(grant.streams),
        "grant_id": grant.grant_id,
        "issued_at": grant.issued_at,
        "subject": {"id": grant.subject_id},
        "client": client,
        "source": {"kind": grant.source.kind, "id": grant.source.id},
        "source_declaration": {"version": grant.declaration_version},
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode,
        "streams": [render_stream_grant(stream) for stream in grant.streams],
        "expires_at": grant.expires_at,
    }
    optional = {
        "purpose_description": grant.purpose_description,
        "selection_preset": grant.selection_preset,
        "retention": grant.retention,
    }
    members.update({name: value for name, value in optional.items() if value is not None})
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def render_stream_grant(stream: StreamGrant) -> dict[str, object]:
    """A stream grant as artifacts, grants and token answers show it."""
    members: dict[str, object] = {
        "name": stream.name,
        "instance_ids": list(stream.instance_ids),
        "fields": list(stream.fields),
    }
    if stream.time_constraint is not None:
        bound = stream.time_constraint
        texts = {"field": bound.field, "since": bound.since, "until": bound.until}
        members["time_constraint"] = {k: v for k, v in texts.items() if v is not None}
    if stream.resources is not None:
        members["resources"] = list(stream.resources)
    if stream.only:
        members["only"] = {limit.field: list(limit.values) for limit in stream.only}
    return members


def told_stream_grant(stream: StreamGrant) -> dict[str, object]:
    """A stream grant as its client is told of it: limits by what it was not granted are not named.

    Source: docs/contract/resource-server.md 4.8.
    """
    limits = tuple(limit for limit in stream.only if limit.field in stream.fields)
    members = render_stream_grant(replace(stream, only=limits))
    if len(limits) < len(stream.only):
        members["further_limits"] = True
    return members


def _version(streams: Sequence[StreamGrant]) -> str:
    return LIMITED_VERSION if any(stream.only for stream in streams) else GRANT_VERSION


def bound_ns(text: str) -> int | None:
    """Nanoseconds of a time bound: RFC 3339 with offset, or a day meaning midnight UTC.

    `None` if it is neither, or lies outside the years 1 to 9999.
    Source: docs/contract/authorization-server.md 4.1.
    """
    day = day_number(text)
    bound = instant_ns(text) if day is None else day * DAY_NANOSECONDS
    return bound if bound is not None and FIRST_NS <= bound < END_NS else None


# The stored form of a grant, member by member.  What is not exactly this shape is never repaired;
# the grant is then unusable (`grant_invalid`) and can only be ended.
class _NamedMembers(msgspec.Struct, forbid_unknown_fields=True):
    id: Text


class _StoredClient(msgspec.Struct, forbid_unknown_fields=True):
    client_id: Text
    client_display: dict[str, object] | None = None


class _StoredSource(msgspec.Struct, forbid_unknown_fields=True):
    kind: Text
    id: Text


class _StoredVersion(msgspec.Struct, forbid_unknown_fields=True):
    version: Text


class _StoredTime(msgspec.Struct, forbid_unknown_fields=True):
    field: Text
    since: Text | None = None
    until: Text | None = None


_StoredLimits = Annotated[
    dict[Text, Annotated[list[str | int | bool], msgspec.Meta(min_length=1)]],
    msgspec.Meta(min_length=1),
]


class _StoredStream(msgspec.Struct, forbid_unknown_fields=True):
    name: Text
    instance_ids: Texts
    fields: Texts
    time_constraint: _StoredTime | msgspec.UnsetType = msgspec.UNSET
    resources: Texts | msgspec.UnsetType = msgspec.UNSET
    only: _StoredLimits | msgspec.UnsetType = msgspec.UNSET


class _StoredGrant(msgspec.Struct, forbid_unknown_fields=True):
    version: Text
    grant_id: Text
    issued_at: Text
    subject: _NamedMembers
    client: _StoredClient
    source: _StoredSource
    source_declaration: _StoredVersion
    purpose_code: Text
    access_mode: Text
    streams: list[_StoredStream]
    expires_at: Text | None
    purpose_description: Text | None = None
    selection_preset: Text | None = None
    retention: dict[str, object] | None = None


def _members_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise GrantInvalid("The stored grant contains a member twice.")
    return members


def _streams(stored: Sequence[_StoredStream]) -> tuple[StreamGrant, ...]:
    streams = tuple(_stream(stream) for stream in stored)
    if len({stream.name for stream in streams}) != len(streams):
        raise GrantInvalid("The stored grant names a stream twice.")
    return streams


def _stream(stored: _StoredStream) -> StreamGrant:
    constraint, resources = stored.time_constraint, stored.resources
    return StreamGrant(
        name=stored.name,
        instance_ids=_distinct(stored.instance_ids),
        fields=_distinct(stored.fields),
        time_constraint=None if constraint is msgspec.UNSET else _time_constraint(constraint),
        resources=None if resources is msgspec.UNSET else _distinct(resources),
        only=() if stored.only is msgspec.UNSET else _limits(stored.only),
    )


def _limits(stored: Mapping[str, list[LimitValue]]) -> tuple[ContentLimit, ...]:
    return tuple(ContentLimit(field, tuple(values)) for field, values in stored.items())


def _time_constraint(stored: _StoredTime) -> TimeConstraint:
    return TimeConstraint(
        field=stored.field,
        since=stored.since,
        until=stored.until,
        since_ns=_bound(stored.since),
        until_ns=_bound(stored.until),
    )


def _bound(text: str | None) -> int | None:
    if text is None:
        return None
    bound = bound_ns(text)
    if bound is None:
        raise GrantInvalid("A time limit of the stored grant cannot be read.")
    return bound


def _distinct(texts: list[str]) -> tuple[str, ...]:
    if len(set(texts)) != len(texts):
        raise GrantInvalid("A list in the stored grant contains an item twice.")
    return tuple(texts)


def _instant(text: str) -> str:
    if instant_ns(text) is None:
        raise GrantInvalid("A time in the stored grant cannot be read.")
    return text
