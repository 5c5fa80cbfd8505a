"""What stands around the data of an answer: warnings, pages, unavailable connections.

Rule: these are values; the surface that answers renders them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from personal_server.domain.authority import Unavailable
from personal_server.domain.disclosure import Disclosed

MAX_NAMED_CONNECTIONS = 12


@dataclass(frozen=True, slots=True)
class Warning:
    """One entry of `meta.warnings`; `detail` is a tuple of (name, value).

    Source: docs/contract/resource-server.md 2.3.
    """

    code: str
    message: str
    param: str | None = None
    field: str | None = None
    connection_id: str | None = None
    detail: tuple[tuple[str, object], ...] = ()

    def render(self) -> dict[str, object]:
        """The wire form: members that do not apply are left out."""
        members: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "param": self.param,
            "field": self.field,
            "connection_id": self.connection_id,
            "detail": dict(self.detail) or None,
        }
        return {name: value for name, value in members.items() if value is not None}


def skipped(connection_id: str, stream: str, reason: str) -> Warning:
    """The warning for a selected source that cannot take part."""
    return Warning(
        "source_skipped_not_applicable",
        "A selected connection cannot take part in this read.",
        connection_id=connection_id,
        detail=(("stream", stream), ("reason", reason)),
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation hands to the surface: rendered data and what is said about it.

    Shapes: `data` is a list of wire items for lists, the members of a single object otherwise;
        `count` is `None` when it was not asked for; `meta` holds further members of `meta`;
        `disclosed` names the sources it came from.
    """

    data: object
    next_cursor: str | None = None
    next_changes_since: str | None = None
    count: Mapping[str, object] | None = None
    warnings: Sequence[Warning] = ()
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    disclosed: Sequence[Disclosed] = ()


def render_unavailable(entries: Iterable[Unavailable]) -> dict[str, object]:
    """`unavailable_connections`, at most 12 of them, and their number when there are more.

    Source: docs/contract/resource-server.md 4.7.
    """
    rendered = [_render_entry(entry) for entry in entries]
    members: dict[str, object] = {"unavailable_connections": rendered[:MAX_NAMED_CONNECTIONS]}
    if len(rendered) > MAX_NAMED_CONNECTIONS:
        members["unavailable_connection_count"] = len(rendered)
    return members


def _render_entry(entry: Unavailable) -> dict[str, object]:
    members: dict[str, object] = {
        "connection_id": entry.connection_id or None,
        "connector_key": entry.connector_key,
        "grant_id": entry.grant_id,
        "stream": entry.stream,
        "display_name": entry.display_name,
        "reason": entry.reason,
        "next_step": entry.next_step,
    }
    return {name: value for name, value in members.items() if value is not None}
