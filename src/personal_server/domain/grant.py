"""The grant: the immutable consent artifact, and its stream grants.

Rule: stored bytes that do not parse as this shape are never repaired; an empty list is a
construction error and therefore denies.  The *state* of a grant lives beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import cast

from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.domain.values import DAY_NANOSECONDS, day_number, instant_ns
from personal_server.errors import GrantInvalid

GRANT_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class StreamGrant:
    """One stream of a grant: on which connections, which fields, when, which records."""

    name: str
    instance_ids: tuple[str, ...]
    fields: tuple[str, ...]
    time_constraint: TimeConstraint | None = None
    resources: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Empty means nothing, never everything: such a stream grant cannot exist."""
        if not self.name or not self.instance_ids or not self.fields or self.resources == ():
            raise GrantInvalid("A stream grant names a stream, connections and fields.")


@dataclass(frozen=True, slots=True)
class Grant:
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
            raise GrantInvalid("A grant names streams and an access mode.")


# How a grant stands when a token is resolved: readable, or why not.
ACTIVE = "active"
ENDED_REASONS = ("grant_revoked", "grant_expired", "grant_invalid")


@dataclass(frozen=True, slots=True)
class MemberGrant:
    """A grant as the token resolver hands it on (docs/contract/authorization-server.md 11.3).

    `grant` is `None` when the stored form cannot be read; then `status` is `grant_invalid`.
    """

    grant_id: str
    grant: Grant | None
    connector_key: str | None
    status: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a token has become when the authorization server is done with it.

    Source: docs/contract/authorization-server.md 11.3.  `grants`: one; several for a package; none
    for the owner.
    """

    kind: str
    subject_id: str
    client_id: str
    token_reference: str
    resource: str
    expires_at_ns: int
    grants: tuple[MemberGrant, ...] = ()
    package_id: str | None = None


# Stored grant bytes to `Grant` and back.
#
# Rule: bytes that are not exactly the shape of a grant are never repaired; the grant is then
# unusable (`grant_invalid`) and can only be ended.


Json = Mapping[str, object]

FIRST_NS = (date.min.toordinal() - date(1970, 1, 1).toordinal()) * DAY_NANOSECONDS
END_NS = (date.max.toordinal() + 1 - date(1970, 1, 1).toordinal()) * DAY_NANOSECONDS

_GRANT_REQUIRED = frozenset(
    {"version", "grant_id", "issued_at", "subject", "client", "source", "source_declaration"}
    | {"purpose_code", "access_mode", "streams", "expires_at"}
)
_GRANT_OPTIONAL = frozenset({"purpose_description", "selection_preset", "retention"})
_NONE: frozenset[str] = frozenset()


def bound_ns(text: str) -> int | None:
    """Nanoseconds of a time bound: RFC 3339 with offset, or a day meaning midnight UTC.

    `None` if it is neither, or lies outside the years 1 to 9999.
    Source: docs/contract/authorization-server.md 4.1.
    """
    day = day_number(text)
    bound = instant_ns(text) if day is None else day * DAY_NANOSECONDS
    return bound if bound is not None and FIRST_NS <= bound < END_NS else None


@lru_cache(maxsize=1_024)
def parse_grant(stored: bytes) -> Grant:
    """The grant that these bytes are; the same bytes are always the same grant.

    Source: docs/contract/authorization-server.md 11.1.
    Raises: GrantInvalid.
    """
    try:
        parsed: object = json.loads(stored, object_pairs_hook=_members_once)
    except ValueError as error:
        raise GrantInvalid("The stored grant is not JSON.") from error
    raw = _object(parsed, _GRANT_REQUIRED, _GRANT_OPTIONAL)
    if raw["version"] != GRANT_VERSION:
        raise GrantInvalid("The stored grant has another version.")
    source = _object(raw["source"], {"kind", "id"})
    client = _object(raw["client"], {"client_id"}, {"client_display"})
    return Grant(
        grant_id=_text(raw["grant_id"]),
        issued_at=_instant(raw["issued_at"]),
        subject_id=_text(_object(raw["subject"], {"id"})["id"]),
        client_id=_text(client["client_id"]),
        client_display=_json_object_or_none(client.get("client_display")),
        source=SourceId(kind=_text(source["kind"]), id=_text(source["id"])),
        declaration_version=_text(_object(raw["source_declaration"], {"version"})["version"]),
        purpose_code=_text(raw["purpose_code"]),
        purpose_description=_text_or_none(raw.get("purpose_description")),
        access_mode=_text(raw["access_mode"]),
        streams=_streams(raw["streams"]),
        expires_at=None if raw["expires_at"] is None else _instant(raw["expires_at"]),
        selection_preset=_text_or_none(raw.get("selection_preset")),
        retention=_json_object_or_none(raw.get("retention")),
    )


def render_grant(grant: Grant) -> bytes:
    """The bytes under which a grant is stored."""
    client: dict[str, object] = {"client_id": grant.client_id}
    if grant.client_display is not None:
        client["client_display"] = grant.client_display
    members: dict[str, object] = {
        "version": GRANT_VERSION,
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
    return members


def _streams(value: object) -> tuple[StreamGrant, ...]:
    streams = tuple(_stream(item) for item in _array(value))
    if len({stream.name for stream in streams}) != len(streams):
        raise GrantInvalid("The stored grant names a stream twice.")
    return streams


def _stream(value: object) -> StreamGrant:
    raw = _object(value, {"name", "instance_ids", "fields"}, {"time_constraint", "resources"})
    return StreamGrant(
        name=_text(raw["name"]),
        instance_ids=_texts(raw["instance_ids"]),
        fields=_texts(raw["fields"]),
        time_constraint=_time_constraint(raw["time_constraint"])
        if "time_constraint" in raw
        else None,
        resources=_texts(raw["resources"]) if "resources" in raw else None,
    )


def _time_constraint(value: object) -> TimeConstraint:
    raw = _object(value, {"field"}, {"since", "until"})
    since, until = _text_or_none(raw.get("since")), _text_or_none(raw.get("until"))
    return TimeConstraint(
        field=_text(raw["field"]),
        since=since,
        until=until,
        since_ns=_bound(since),
        until_ns=_bound(until),
    )


def _bound(text: str | None) -> int | None:
    if text is None:
        return None
    bound = bound_ns(text)
    if bound is None:
        raise GrantInvalid("A time bound of the stored grant cannot be read.")
    return bound


def _members_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise GrantInvalid("The stored grant has a member twice.")
    return members


def _object(
    value: object,
    required: frozenset[str] | set[str],
    optional: frozenset[str] | set[str] = frozenset(),
) -> Json:
    if not isinstance(value, dict):
        raise GrantInvalid("The stored grant has a member of a wrong type.")
    raw = cast("dict[str, object]", value)
    if not {*required} <= raw.keys() <= {*required, *optional}:
        raise GrantInvalid("The stored grant lacks a member or has an unknown one.")
    return raw


def _array(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise GrantInvalid("The stored grant has a member of a wrong type.")
    return cast("list[object]", value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise GrantInvalid("The stored grant has a member of a wrong type.")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    texts = tuple(_text(item) for item in _array(value))
    if not texts or len(set(texts)) != len(texts):
        raise GrantInvalid("A list of the stored grant is empty or repeats itself.")
    return texts


def _instant(value: object) -> str:
    text = _text(value)
    if instant_ns(text) is None:
        raise GrantInvalid("A time of the stored grant cannot be read.")
    return text


def _json_object_or_none(value: object) -> dict[str, object] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise GrantInvalid("The stored grant has a member of a wrong type.")
    return cast("dict[str, object]", value)
