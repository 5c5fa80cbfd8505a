"""The read authority: what a token stands for.

Rule: every read is a function of the authority, the request and the store; an empty allow-list
means deny, so a readable source without fields cannot be constructed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import msgspec

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import GrantInvalid


class TokenKind(StrEnum):
    """The kinds of bearer token.  `client` and `mcp_package` are *client-class*.

    A `collector` writes to one connection and reads nothing.
    """

    CLIENT = "client"
    PACKAGE = "mcp_package"
    OWNER = "owner"
    COLLECTOR = "collector"


class SourceId(msgspec.Struct, frozen=True):
    """The identity that grants name: kind and absolute URI, stable for ever."""

    kind: str
    id: str


class TimeConstraint(msgspec.Struct, frozen=True):
    """Frozen time bound on the consent-time field: since inclusive, until exclusive, UTC ns.

    `since` and `until` keep the text of the grant for display.
    """

    field: str
    since_ns: int | None = None
    until_ns: int | None = None
    since: str | None = None
    until: str | None = None

    def __post_init__(self) -> None:
        """A constraint without a bound, or with an empty window, is malformed."""
        if self.since_ns is None and self.until_ns is None:
            raise GrantInvalid("The time range has neither a start nor an end.")
        if None not in (self.since_ns, self.until_ns) and self.since_ns >= self.until_ns:  # type: ignore[operator]
            raise GrantInvalid("The time constraint does not end after its start.")

    def holds(self, instant_ns: int | None) -> bool:
        """Whether a record with this consent-time instant is inside the window."""
        if instant_ns is None:
            return False
        after = self.since_ns is None or self.since_ns <= instant_ns
        return after and (self.until_ns is None or instant_ns < self.until_ns)


@dataclass(frozen=True, slots=True)
class ReadableSource:
    """One (grant, connection, stream) of a read authority.

    Shapes: `fields` is a non-empty tuple in schema order; `resources` is `None` (no restriction)
        or a non-empty set of canonical keys; `only` is what every record satisfies (`eq` or `in`);
        `declared` is the current declaration of the stream;
        `made_of` is `None`, or the sources whose visible records this one is computed from (it has
        none of its own); `source_name`, `maximum_staleness_seconds` and `sibling_streams` (all
        stream names) are what the source declares of itself.  Made of these: `stream` is the name
        of the stream, `order` that in which sources stand, `cursor_field` the field that orders the
        stream, if its value may be known.
    """

    grant_id: str | None
    source: SourceId
    connector_key: str
    connection_id: str
    display_name: str | None
    declared: Stream
    fields: tuple[str, ...]
    time_constraint: TimeConstraint | None = None
    resources: frozenset[str] | None = None
    declaration_version: str = ""
    source_name: str = ""
    maximum_staleness_seconds: int | None = None
    sibling_streams: frozenset[str] = frozenset()
    made_of: tuple[ReadableSource, ...] | None = None
    only: tuple[Condition, ...] = ()
    stream: str = field(init=False, repr=False)
    order: tuple[str, str] = field(init=False, repr=False)
    cursor_field: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """An empty allow-list means deny: such a source does not exist."""
        if not self.fields or (self.resources is not None and not self.resources):
            raise GrantInvalid("A readable source must have fields and resources.")
        name, cursor = self.declared.name, self.declared.cursor_field
        object.__setattr__(self, "stream", name)
        object.__setattr__(self, "order", (self.connection_id, name))
        object.__setattr__(self, "cursor_field", cursor if cursor in self.fields else None)


class Unavailable(msgspec.Struct, frozen=True):
    """A granted connection that cannot be read now, and why."""

    connection_id: str
    reason: str
    connector_key: str | None = None
    grant_id: str | None = None
    stream: str | None = None
    display_name: str | None = None

    @property
    def next_step(self) -> Literal["reapprove", "choose_another"]:
        """Ask again for grant reasons, otherwise choose another source."""
        return "reapprove" if self.reason.startswith("grant_") else "choose_another"


class Access(msgspec.Struct, frozen=True):
    """The terms that a client is told about its own access (schema `bearer`)."""

    expires_at: str | None
    access_mode: str
    purpose_code: str
    purpose_description: str | None = None


class ReadingBudget(msgspec.Struct, frozen=True):
    """What the owner lets a grant or package read on a UTC day; `None` is no bound."""

    requests: int | None = None
    records: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReadAuthority:
    """The readable sources a token stands for, and the ones it cannot read now.

    Shapes: `sources` sorted by `order`, at most one per (connection, stream); `granted_streams`
        are all stream names the grants name, readable or not; `collects_for` is the connection
        that a collector writes to; `lineage` is the first grant or package of those that this one
        succeeds.  Made of these: `holder` is whose reading is counted and remembered: the grant,
        the package or the owner, never the token; `cursor_holder` is what cursors are bound to,
        which a successor shares, so that it can tell an outlived cursor from a foreign one;
        `held_id` is the grant or package that it follows from, empty for others.
    """

    kind: TokenKind
    subject_id: str
    sources: tuple[ReadableSource, ...]
    client_id: str | None = None
    package_id: str | None = None
    grant_ids: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    granted_streams: frozenset[str] = field(default_factory=frozenset[str])
    access: Access | None = None
    collects_for: str | None = None
    budget: ReadingBudget | None = None
    lineage: str | None = None
    holder: str = field(init=False, repr=False)
    cursor_holder: str = field(init=False, repr=False)
    held_id: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out what follows from the others."""
        match self.kind:
            case TokenKind.CLIENT:
                # none yet, where a review shows what nothing was granted of
                holder = f"grant:{next(iter(self.grant_ids), '')}"
            case TokenKind.PACKAGE:
                holder = f"package:{self.package_id}"
            case TokenKind.OWNER:
                holder = f"owner:{self.subject_id}"
            case TokenKind.COLLECTOR:
                holder = f"collector:{self.collects_for}"
        object.__setattr__(self, "holder", holder)
        object.__setattr__(self, "held_id", self.package_id or next(iter(self.grant_ids), ""))
        kind, _, held_id = holder.partition(":")
        object.__setattr__(self, "cursor_holder", f"{kind}:{self.lineage or held_id}")
