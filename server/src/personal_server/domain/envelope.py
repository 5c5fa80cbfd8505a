"""What stands around the data of an answer: warnings, pages, unavailable connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.record import DamagedRow
from pdpp_kernel.wire_objects import AnyObject, ConnectionId, Count, WireObject, Word
from personal_server.domain.authority import Unavailable
from personal_server.domain.disclosure import Disclosed

MAX_NAMED_CONNECTIONS = 12
MAX_NAMED_RECORDS = 12


class Warning(WireObject, kw_only=False):
    """One entry of `meta.warnings`.  Source: docs/contract/resource-server.md 2.3."""

    component: ClassVar = "Warning"

    code: Literal[
        "limit_clamped",
        "deprecated_alias_used",
        "source_skipped_not_applicable",
        "source_unavailable",
        "partial_results",
        "budget_low",
        "damaged_record",
        "outside_time_constraint",
    ]
    message: str
    param: str | None = None
    field: str | None = None
    connection_id: str | None = None
    detail: AnyObject | None = None


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


def damage_warnings(damaged: Iterable[DamagedRow]) -> list[Warning]:
    """A warning for each stream with damaged records, which are left out; figures count them.

    Shapes: `detail` names at most `MAX_NAMED_RECORDS`, and only those whose id is sound.
    """
    by_stream: dict[tuple[str, str], list[DamagedRow]] = {}
    for each in damaged:
        by_stream.setdefault((each.connection_id, each.stream), []).append(each)
    return [
        Warning(
            "damaged_record",
            "Damaged records of this stream are left out; tell the owner: pdpp doctor --data.",
            connection_id=connection_id,
            detail={
                "stream": stream,
                "count": len(found),
                "record_ids": [each.key for each in found if each.key][:MAX_NAMED_RECORDS],
            },
        )
        for (connection_id, stream), found in sorted(by_stream.items())
    ]


def skipped(connection_id: str, stream: str, reason: str) -> Warning:
    """The warning for a selected source that cannot take part."""
    return Warning(
        "source_skipped_not_applicable",
        "A selected connection cannot take part in this read.",
        connection_id=connection_id,
        detail={"stream": stream, "reason": reason},
    )


@dataclass(frozen=True, slots=True)
class ReadResult:
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
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    disclosed: Sequence[Disclosed] = ()
    leaves_at: float | None = None


UnavailableConnections = Annotated[
    list[UnavailableConnection], msgspec.Meta(max_length=MAX_NAMED_CONNECTIONS)
]


def name_unavailable(entries: Iterable[Unavailable]) -> dict[str, Any]:
    """`unavailable_connections`, at most 12 of them, and their number when there are more.

    Source: docs/contract/resource-server.md 4.7.
    """
    named = [_unavailable(entry) for entry in entries]
    members: dict[str, object] = {"unavailable_connections": named[:MAX_NAMED_CONNECTIONS]}
    if len(named) > MAX_NAMED_CONNECTIONS:
        members["unavailable_connection_count"] = len(named)
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
