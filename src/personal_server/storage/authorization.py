"""The rows of the authorization store: one frozen class per table, its fields the columns.

Rule: the store adds the subject to every key and condition; rows do not carry it.  Times are UTC
nanoseconds, hashes 32 bytes; columns marked `JSON` hold JSON values.
Source: docs/contract/authorization-server.md 18.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar

JsonObject = dict[str, object]


JSON = {"json": True}
"""Metadata of a column whose value is stored as JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row knows its table, its key after the subject, and its unique columns."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    unique: ClassVar[tuple[str, ...]] = ()
    indexed: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow(Row):
    """The owner's password; the table has at most one row a subject."""

    table, key = "owner", ()
    password_hash: str | None = None
    created_at_ns: int
    password_changed_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLinkRow(Row):
    """A sign-in link, good once."""

    table, key = "owner_links", ("link_hash",)
    link_hash: bytes
    expires_at_ns: int
    used_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSessionRow(Row):
    """A signed-in browser."""

    table, key = "owner_sessions", ("session_hash",)
    session_hash: bytes
    csrf: str
    created_at_ns: int
    last_seen_at_ns: int
    signed_in_at_ns: int
    address: str | None = None
    user_agent: str | None = None
    ended_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow(Row):
    """A client: who asks, never what it may do.

    `display` holds name, uri, logo_uri, policy_uri, tos_uri as registered.
    """

    table, key, unique = "clients", ("client_id",), ("client_ref",)
    client_id: str
    client_ref: str
    registration: str
    name: str
    display: JsonObject = field(metadata=JSON, default_factory=dict[str, object])
    redirect_uris: tuple[str, ...] = field(metadata=JSON, default=())
    grant_types: tuple[str, ...] = field(metadata=JSON, default=())
    auth_method: str = "none"
    registered_at_ns: int
    first_approved_at_ns: int | None = None
    last_used_at_ns: int | None = None
    blocked_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDocumentRow(Row):
    """A fetched document or key set."""

    table, key = "client_documents", ("url",)
    url: str
    body: bytes
    digest: str
    fetched_at_ns: int
    fresh_until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionIdRow(Row):
    """A client assertion that was used."""

    table, key = "assertion_ids", ("jti_hash",)
    jti_hash: bytes
    expires_at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionClientRow(Row):
    """A resource server that runs apart."""

    table, key = "introspection_clients", ("caller_id",)
    caller_id: str
    secret_hash: bytes
    name: str
    created_at_ns: int
    ended_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow(Row):
    """An authorization request, from arrival to redemption.

    `details` is the selection as sent, or the picker's once opened; `origin` is where it was
    made; `revision`, `shown` (the artifact) and `facts` are of the review that was shown last.
    """

    table, key = "auth_requests", ("request_id",)
    unique = ("request_uri_hash", "device_code_hash", "user_code_hash")
    request_id: str
    flow: str
    client_id: str
    origin: str
    resource: str
    scope: str
    redirect_uri: str | None = None
    state: str | None = None
    code_challenge: str | None = None
    details: list[JsonObject] | None = field(metadata=JSON, default=None)
    picker: bool = False
    display: JsonObject | None = field(metadata=JSON, default=None)
    request_uri_hash: bytes | None = None
    device_code_hash: bytes | None = None
    user_code_hash: bytes | None = None
    status: str = "pending"
    revision: str | None = None
    shown: JsonObject | None = field(metadata=JSON, default=None)
    facts: str | None = None
    created_at_ns: int
    opened_at_ns: int | None = None
    decided_at_ns: int | None = None
    expires_at_ns: int
    collect_until_ns: int | None = None
    interval_seconds: int = 5
    last_poll_at_ns: int | None = None
    wrong_tries: int = 0
    address: str | None = None
    user_agent: str | None = None
    auth_method: str = "none"
    grant_id: str | None = None
    package_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewArtifactRow(Row):
    """What the owner decided on, byte for byte."""

    table, key = "review_artifacts", ("revision",)
    revision: str
    artifact: bytes
    request_id: str
    decided_at_ns: int
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRow(Row):
    """An authorization code."""

    table, key, indexed = "auth_codes", ("code_hash",), ("request_id",)
    code_hash: bytes
    request_id: str
    client_id: str
    redirect_uri: str
    code_challenge: str
    resource: str
    scope: str
    origin: str
    expires_at_ns: int
    status: str = "issued"
    grant_id: str | None = None
    package_id: str | None = None
    redeemed_at_ns: int | None = None
    family_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow(Row):
    """A grant's bytes and, beside them, its state."""

    table, key, indexed = "grants", ("grant_id",), ("client_id", "revision")
    grant_id: str
    grant: bytes
    client_id: str
    connector_key: str
    access_mode: str
    issued_at_ns: int
    expires_at_ns: int | None = None
    consumed_at_ns: int | None = None
    revoked_at_ns: int | None = None
    reason: str | None = None
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRow(Row):
    """Grants approved in one decision."""

    table, key, indexed = "grant_packages", ("package_id",), ("client_id",)
    package_id: str
    client_id: str
    created_at_ns: int
    revoked_at_ns: int | None = None
    reason: str | None = None
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageMemberRow(Row):
    """The place of a grant in its package."""

    table, key, unique = "grant_package_members", ("package_id", "position"), ("grant_id",)
    package_id: str
    position: int
    grant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRow(Row):
    """All tokens of one redemption; `auth_floor` is how its client must prove itself."""

    table, key, indexed = "token_families", ("family_id",), ("grant_id", "package_id", "client_id")
    family_id: str
    kind: str
    client_id: str
    grant_id: str | None = None
    package_id: str | None = None
    origin: str
    resource: str
    scope: str
    auth_floor: str = "none"
    generation: int = 1
    last_used_at_ns: int
    idle_end_ns: int
    absolute_end_ns: int | None = None
    revoked_at_ns: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTokenRow(Row):
    """A refresh token; superseded ones stay to be recognised."""

    table, key, indexed = "refresh_tokens", ("token_hash",), ("family_id",)
    token_hash: bytes
    family_id: str
    generation: int
    superseded_at_ns: int | None = None
    overlap_used_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow(Row):
    """An access token: exactly one of grant, package, owner stands behind it."""

    table, key = "tokens", ("token_hash",)
    indexed = ("family_id", "grant_id", "package_id")
    token_hash: bytes
    kind: str
    client_id: str
    grant_id: str | None = None
    package_id: str | None = None
    family_id: str | None = None
    origin: str
    resource: str
    scope: str
    issued_at_ns: int
    expires_at_ns: int
    revoked_at_ns: int | None = None
    reason: str | None = None
    last_used_at_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow(Row):
    """One thing that happened.  `event_id` 0 lets the store number it."""

    table, key, indexed = "audit_events", ("event_id",), ("grant_id", "package_id")
    event_id: int = 0
    event: str
    at_ns: int
    actor: str
    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    request_id: str | None = None
    address: str | None = None
    detail: JsonObject = field(metadata=JSON, default_factory=dict[str, object])


ROW_TYPES: tuple[type[Row], ...] = (
    OwnerRow,
    OwnerLinkRow,
    OwnerSessionRow,
    ClientRow,
    ClientDocumentRow,
    AssertionIdRow,
    IntrospectionClientRow,
    RequestRow,
    ReviewArtifactRow,
    CodeRow,
    GrantRow,
    PackageRow,
    PackageMemberRow,
    FamilyRow,
    RefreshTokenRow,
    TokenRow,
    AuditRow,
)


# The port to the authorization store: a transaction over typed rows.
#
# Rule: a decision and everything it writes are one `write` transaction; who won a race is told by
# the number that a conditional `change` returns, nothing is read first and decided later outside
# it.


R = TypeVar("R", bound=Row)

Condition = object
"""A plain value means equality (`None`: is null); `Before` and `NotNull` say otherwise."""


@dataclass(frozen=True, slots=True)
class Before:
    """The column is at most this value (null never is)."""

    value: int


@dataclass(frozen=True, slots=True)
class After:
    """The column is greater than this value (null never is)."""

    value: int


@dataclass(frozen=True, slots=True)
class NotNull:
    """The column has a value."""


class AuthorizationReader(Protocol):
    """One consistent view of the rows of one subject."""

    def get(self, table: type[R], **key: Condition) -> R | None:
        """The only row that meets the conditions, or `None`."""
        ...

    def rows(
        self,
        table: type[R],
        *,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        **where: Condition,
    ) -> list[R]:
        """The rows that meet the conditions, by `order` (else by key)."""
        ...

    def count(self, table: type[Row], **where: Condition) -> int:
        """How many rows meet the conditions."""
        ...


class AuthorizationWriter(AuthorizationReader, Protocol):
    """A transaction: all of it or nothing, alone while it lasts."""

    def insert(self, row: Row) -> None:
        """Add a row; a duplicate key is a defect and raises."""
        ...

    def change(self, table: type[Row], to: Mapping[str, object], **where: Condition) -> int:
        """Set columns of the rows that meet the conditions; how many there were."""
        ...

    def delete(self, table: type[Row], **where: Condition) -> int:
        """Remove the rows that meet the conditions; how many there were."""
        ...


class AuthorizationStore(Protocol):
    """Transactions over the rows of one subject."""

    @property
    def subject_id(self) -> str:
        """The owner of this deployment."""
        ...

    def read(self) -> AbstractContextManager[AuthorizationReader]:
        """A consistent view."""
        ...

    def write(self) -> AbstractContextManager[AuthorizationWriter]:
        """A transaction that ends with the block: committed, or undone by an exception."""
        ...
