"""What stands around the data of an answer: pages, counts, unavailable connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.wire_objects import ConnectionId, Count, WireObject, Word
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import Unavailable
from personal_server.domain.disclosure import Disclosed

MAX_NAMED_CONNECTIONS = 12


class Uncounted(WireObject, tag_field="kind", tag="none"):
    """`meta.count` of what was not counted."""


class Counted(WireObject, kw_only=False):
    """`meta.count` of a counted list."""

    kind: Literal["exact", "estimated"]
    value: Count


UNCOUNTED = Uncounted()


class AvailableConnection(WireObject, kw_only=True):
    """A connection that an ambiguous read could name."""

    component: ClassVar = "AvailableConnection"

    connection_id: ConnectionId
    connector_key: Word
    grant_id: str | None = None
    display_name: str | None = None
    has_stream: bool | None = None


class UnavailableConnection(WireObject, kw_only=True):
    """A granted connection that cannot be read now, why, and what to do about it."""

    component: ClassVar = "UnavailableConnection"

    connection_id: str | None = None
    connector_key: str | None = None
    grant_id: str | None = None
    stream: str | None = None
    display_name: str | None = None
    reason: str
    next_step: Literal["reapprove", "choose_another"]


class ReadResult(msgspec.Struct, frozen=True):
    """What an operation hands to the surface: rendered data and what is said about it.

    Shapes: `data` is a list of wire items for lists, the members of a single object otherwise;
        `count` is `None` when it was not asked for; `meta` holds further members of `meta`;
        `disclosed` names the sources it came from; before `leaves_at` the answer does not leave.
    Units: `leaves_at` seconds of the clock that measures how long something takes.
    """

    data: object
    next_cursor: str | None = None
    next_changes_since: str | None = None
    count: Counted | None = None
    warnings: Sequence[Warning] = ()
    meta: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    disclosed: Sequence[Disclosed] = ()
    leaves_at: float | None = None


UnavailableConnections = Annotated[
    list[UnavailableConnection], msgspec.Meta(max_length=MAX_NAMED_CONNECTIONS)
]


def name_unavailable(entries: Iterable[Unavailable]) -> dict[str, Any]:
    """`unavailable_connections`, at most 12 of them, and their number when there are more.

    Source: docs/contract/resource-server.md 4.7.
    """
    missing = [_unavailable(entry) for entry in entries]
    members: dict[str, object] = {"unavailable_connections": missing[:MAX_NAMED_CONNECTIONS]}
    if len(missing) > MAX_NAMED_CONNECTIONS:
        members["unavailable_connection_count"] = len(missing)
    return members


def render_unavailable(entries: Iterable[Unavailable]) -> dict[str, object]:
    """The same in plain values, as errors hold them: a command shows them as well."""
    return msgspec.to_builtins(name_unavailable(entries))


def _unavailable(entry: Unavailable) -> UnavailableConnection:
    return UnavailableConnection(
        connection_id=entry.connection_id or None,
        connector_key=entry.connector_key,
        grant_id=entry.grant_id,
        stream=entry.stream,
        display_name=entry.display_name,
        reason=entry.reason,
        next_step=entry.next_step,
    )
