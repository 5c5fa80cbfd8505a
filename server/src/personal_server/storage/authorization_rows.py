"""The rows of the authorization store (`storage/ports/authorization_store`).

Units:  `*_ns` are UTC nanoseconds, hashes 32 bytes.
Source: docs/contract/authorization-server.md 18.
"""

from personal_server.storage.tables import Cell, StoredRow, column

JsonObject = dict[str, object]


class AuthorizationRow(StoredRow):
    """A row of one subject, who leads every key and condition."""

    by_subject = True


class OwnerRow(AuthorizationRow, table="owner"):
    """The owner's password; the table has at most one row a subject."""

    password_hash: Cell[str | None] = column(default=None)
    created_at_ns: Cell[int]
    password_changed_at_ns: Cell[int | None] = column(default=None)


class OwnerLinkRow(AuthorizationRow, table="owner_links"):
    """A sign-in link, good once."""

    link_hash: Cell[bytes] = column(key=True)
    expires_at_ns: Cell[int]
    used_at_ns: Cell[int | None] = column(default=None)


class OwnerSessionRow(AuthorizationRow, table="owner_sessions"):
    """A browser session in which the owner is signed in."""

    session_hash: Cell[bytes] = column(key=True)
    csrf: Cell[str]
    created_at_ns: Cell[int]
    last_seen_at_ns: Cell[int]
    signed_in_at_ns: Cell[int]
    address: Cell[str | None] = column(default=None)
    user_agent: Cell[str | None] = column(default=None)
    ended_at_ns: Cell[int | None] = column(default=None)


class PasskeyRow(AuthorizationRow, table="passkeys"):
    """A key of the owner's that stays in a device; `relying_party` is the name it works at."""

    credential_id: Cell[bytes] = column(key=True)
    public_key: Cell[bytes]
    sign_count: Cell[int]
    relying_party: Cell[str]
    name: Cell[str]
    created_at_ns: Cell[int]
    last_used_at_ns: Cell[int | None] = column(default=None)


class ClientRow(AuthorizationRow, table="clients"):
    """A client: who asks, never what it may do.

    `display` holds name, uri, logo_uri, policy_uri, tos_uri as registered; a `dpop_bound` one takes
    tokens that are bound to its key only; `published_on` is the day of its document, if that could
    not be fetched when it came last.
    """

    client_id: Cell[str] = column(key=True)
    client_ref: Cell[str] = column(unique=True)
    registration: Cell[str]
    name: Cell[str]
    display: Cell[JsonObject] = column(default_factory=dict[str, object])
    redirect_uris: Cell[tuple[str, ...]] = column(default=())
    grant_types: Cell[tuple[str, ...]] = column(default=())
    auth_method: Cell[str] = column(default="none")
    dpop_bound: Cell[bool] = column(default=False)
    published_on: Cell[str | None] = column(default=None)
    registered_at_ns: Cell[int]
    first_approved_at_ns: Cell[int | None] = column(default=None)
    last_used_at_ns: Cell[int | None] = column(default=None)
    blocked_at_ns: Cell[int | None] = column(default=None)


class ClientDocumentRow(AuthorizationRow, table="client_documents"):
    """A fetched document or key set."""

    url: Cell[str] = column(key=True)
    body: Cell[bytes]
    digest: Cell[str]
    fetched_at_ns: Cell[int]
    fresh_until_ns: Cell[int]


class AssertionIdRow(AuthorizationRow, table="assertion_ids"):
    """A client assertion that was used."""

    jti_hash: Cell[bytes] = column(key=True)
    expires_at_ns: Cell[int]


class IntrospectionClientRow(AuthorizationRow, table="introspection_clients"):
    """A resource server that runs apart."""

    caller_id: Cell[str] = column(key=True)
    secret_hash: Cell[bytes]
    name: Cell[str]
    created_at_ns: Cell[int]
    ended_at_ns: Cell[int | None] = column(default=None)


class RequestRow(AuthorizationRow, table="auth_requests"):
    """An authorization request, from arrival to redemption.

    `details` is the selection as sent, or the picker's once opened; `origin` is where it was
    made; `revision`, `shown` (the artifact) and `facts` are of the review that was shown last,
    `choices` what its owner chose for it, until it is decided;
    `jkt` is the key that its code is bound to; `replaces` is the grant or package that the owner
    changes, where it is no app that asks.
    """

    request_id: Cell[str] = column(key=True)
    flow: Cell[str]
    client_id: Cell[str]
    origin: Cell[str]
    resource: Cell[str]
    scope: Cell[str]
    redirect_uri: Cell[str | None] = column(default=None)
    state: Cell[str | None] = column(default=None)
    code_challenge: Cell[str | None] = column(default=None)
    jkt: Cell[str | None] = column(default=None)
    details: Cell[list[JsonObject] | None] = column(default=None)
    picker: Cell[bool] = column(default=False)
    display: Cell[JsonObject | None] = column(default=None)
    request_uri_hash: Cell[bytes | None] = column(default=None, unique=True)
    device_code_hash: Cell[bytes | None] = column(default=None, unique=True)
    user_code_hash: Cell[bytes | None] = column(default=None, unique=True)
    status: Cell[str] = column(default="pending")
    revision: Cell[str | None] = column(default=None)
    shown: Cell[JsonObject | None] = column(default=None)
    facts: Cell[str | None] = column(default=None)
    choices: Cell[str | None] = column(default=None)
    created_at_ns: Cell[int]
    opened_at_ns: Cell[int | None] = column(default=None)
    decided_at_ns: Cell[int | None] = column(default=None)
    expires_at_ns: Cell[int]
    collect_until_ns: Cell[int | None] = column(default=None)
    interval_seconds: Cell[int] = column(default=5)
    last_poll_at_ns: Cell[int | None] = column(default=None)
    address: Cell[str | None] = column(default=None)
    user_agent: Cell[str | None] = column(default=None)
    auth_method: Cell[str] = column(default="none")
    grant_id: Cell[str | None] = column(default=None)
    package_id: Cell[str | None] = column(default=None)
    replaces: Cell[str | None] = column(default=None)


class ReviewArtifactRow(AuthorizationRow, table="review_artifacts"):
    """What the owner decided on, byte for byte.

    `signature` is what a passkey signed for it; the last 32 bytes of the signed challenge are the
    SHA-256 of `revision`.
    """

    revision: Cell[str] = column(key=True)
    artifact: Cell[bytes]
    request_id: Cell[str]
    decided_at_ns: Cell[int]
    channel: Cell[str]
    signature: Cell[JsonObject | None] = column(default=None)


class CodeRow(AuthorizationRow, table="auth_codes"):
    """An authorization code: its hash, its request, and whether it was redeemed."""

    code_hash: Cell[bytes] = column(key=True)
    request_id: Cell[str] = column(indexed=True)
    client_id: Cell[str]
    redirect_uri: Cell[str]
    code_challenge: Cell[str]
    jkt: Cell[str | None] = column(default=None)
    resource: Cell[str]
    scope: Cell[str]
    origin: Cell[str]
    expires_at_ns: Cell[int]
    status: Cell[str] = column(default="issued")
    grant_id: Cell[str | None] = column(default=None)
    package_id: Cell[str | None] = column(default=None)
    redeemed_at_ns: Cell[int | None] = column(default=None)
    family_id: Cell[str | None] = column(default=None)


class GrantRow(AuthorizationRow, table="grants"):
    """A grant's bytes and, beside them, its state.

    `hold` is why it waits, `none` if it does not; `expiry_noted_at_ns` is when its end by time was
    audited; `name` is what its owner calls it.  A successor `replaces` another one, and `lineage`
    is the first of them.
    """

    grant_id: Cell[str] = column(key=True)
    grant: Cell[bytes]
    client_id: Cell[str] = column(indexed=True)
    connector_key: Cell[str]
    access_mode: Cell[str]
    issued_at_ns: Cell[int]
    expires_at_ns: Cell[int | None] = column(default=None)
    consumed_at_ns: Cell[int | None] = column(default=None)
    revoked_at_ns: Cell[int | None] = column(default=None)
    reason: Cell[str | None] = column(default=None)
    revision: Cell[str] = column(indexed=True)
    hold: Cell[str] = column(default="none")
    expiry_noted_at_ns: Cell[int | None] = column(default=None)
    name: Cell[str | None] = column(default=None)
    replaces: Cell[str | None] = column(default=None)
    lineage: Cell[str | None] = column(default=None, indexed=True)


class PackageRow(AuthorizationRow, table="grant_packages"):
    """Grants approved in one decision; `name`, `replaces` and `lineage` as of a grant."""

    package_id: Cell[str] = column(key=True)
    client_id: Cell[str] = column(indexed=True)
    created_at_ns: Cell[int]
    revoked_at_ns: Cell[int | None] = column(default=None)
    reason: Cell[str | None] = column(default=None)
    revision: Cell[str]
    name: Cell[str | None] = column(default=None)
    replaces: Cell[str | None] = column(default=None)
    lineage: Cell[str | None] = column(default=None, indexed=True)


class PackageMemberRow(AuthorizationRow, table="grant_package_members"):
    """The place of a grant in its package."""

    package_id: Cell[str] = column(key=True)
    position: Cell[int] = column(key=True)
    grant_id: Cell[str] = column(unique=True)


class FamilyRow(AuthorizationRow, table="token_families"):
    """All tokens of one redemption; `auth_floor` is how its client must prove itself.

    `jkt` is the thumbprint of the key that they are bound to.
    """

    family_id: Cell[str] = column(key=True)
    kind: Cell[str]
    client_id: Cell[str] = column(indexed=True)
    grant_id: Cell[str | None] = column(default=None, indexed=True)
    package_id: Cell[str | None] = column(default=None, indexed=True)
    origin: Cell[str]
    resource: Cell[str]
    scope: Cell[str]
    auth_floor: Cell[str] = column(default="none")
    jkt: Cell[str | None] = column(default=None)
    generation: Cell[int] = column(default=1)
    last_used_at_ns: Cell[int]
    idle_end_ns: Cell[int]
    absolute_end_ns: Cell[int | None] = column(default=None)
    revoked_at_ns: Cell[int | None] = column(default=None)
    reason: Cell[str | None] = column(default=None)


class RefreshTokenRow(AuthorizationRow, table="refresh_tokens"):
    """A refresh token; superseded ones stay to be recognised.

    `salt` makes the pair that superseded it, together with the token itself; `superseded_from` is
    the network (/24, /64) that redeemed it, `repeats` how often its answer was given again.
    """

    token_hash: Cell[bytes] = column(key=True)
    family_id: Cell[str] = column(indexed=True)
    generation: Cell[int]
    superseded_at_ns: Cell[int | None] = column(default=None)
    salt: Cell[bytes | None] = column(default=None)
    superseded_from: Cell[str | None] = column(default=None)
    repeats: Cell[int] = column(default=0)


class TokenRow(AuthorizationRow, table="tokens"):
    """An access token: exactly one of grant, package, owner, connection stands behind it.

    One with `jkt` is good only with a proof by the key of that thumbprint.
    """

    token_hash: Cell[bytes] = column(key=True)
    kind: Cell[str]
    client_id: Cell[str]
    grant_id: Cell[str | None] = column(default=None, indexed=True)
    package_id: Cell[str | None] = column(default=None, indexed=True)
    family_id: Cell[str | None] = column(default=None, indexed=True)
    origin: Cell[str]
    resource: Cell[str]
    scope: Cell[str]
    issued_at_ns: Cell[int]
    expires_at_ns: Cell[int]
    revoked_at_ns: Cell[int | None] = column(default=None)
    reason: Cell[str | None] = column(default=None)
    last_used_at_ns: Cell[int | None] = column(default=None)
    connection_id: Cell[str | None] = column(default=None)
    jkt: Cell[str | None] = column(default=None)


class AuditRow(AuthorizationRow, table="audit_events"):
    """One thing that happened.  `event_id` 0 lets the store number it."""

    event_id: Cell[int] = column(default=0, key=True)
    event: Cell[str]
    at_ns: Cell[int]
    actor: Cell[str]
    client_id: Cell[str | None] = column(default=None)
    grant_id: Cell[str | None] = column(default=None, indexed=True)
    package_id: Cell[str | None] = column(default=None, indexed=True)
    request_id: Cell[str | None] = column(default=None)
    address: Cell[str | None] = column(default=None)
    detail: Cell[JsonObject] = column(default_factory=dict[str, object])
    link: Cell[bytes | None] = column(default=None)


class ReadingSpanRow(AuthorizationRow, table="reading_spans"):
    """What was read under a grant or package in a minute or an hour (`seconds`), in figures."""

    held_id: Cell[str] = column(key=True)
    seconds: Cell[int] = column(key=True)
    start_ns: Cell[int] = column(key=True)
    requests: Cell[int]
    records: Cell[int]
    size_bytes: Cell[int]
    searches: Cell[int]
    empty_searches: Cell[int]
    new_words: Cell[int]
    unknown_keys: Cell[int]


class ReadingWordsRow(AuthorizationRow, table="reading_words"):
    """A salted sketch of the words that were searched for, until it ends."""

    held_id: Cell[str] = column(key=True)
    salt: Cell[bytes]
    seen: Cell[bytes]
    ends_at_ns: Cell[int]


class ReadingLimitsRow(AuthorizationRow, table="reading_limits"):
    """What an owner allows of a grant or package on a UTC day, and whether an alarm pauses it.

    `events` is whether its app may be told when something changes.

    `None` is no limit of its own, and of `pauses` what the server is set to.  `result_chars` is how
    long a tool result may be for its app; `None` is what every app has.
    """

    held_id: Cell[str] = column(key=True)
    records_per_day: Cell[int | None] = column(default=None)
    bytes_per_day: Cell[int | None] = column(default=None)
    requests_per_day: Cell[int | None] = column(default=None)
    pauses: Cell[bool | None] = column(default=None)
    result_chars: Cell[int | None] = column(default=None)
    events: Cell[bool | None] = column(default=None)


class ReadingAlarmRow(AuthorizationRow, table="reading_alarms"):
    """Something unusual in what was read; `detail` are figures, or the stream of a canary."""

    alarm_id: Cell[str] = column(key=True)
    held_id: Cell[str] = column(indexed=True)
    client_id: Cell[str | None]
    rule: Cell[str]
    at_ns: Cell[int]
    detail: Cell[JsonObject]
    paused: Cell[bool]
    dismissed_at_ns: Cell[int | None] = column(default=None)


class CanaryRow(AuthorizationRow, table="canaries"):
    """A record that the owner planted, and when it was given to whom last."""

    connection_id: Cell[str] = column(key=True)
    stream: Cell[str] = column(key=True)
    key: Cell[str] = column(key=True)
    planted_at_ns: Cell[int]
    disclosed_at_ns: Cell[int | None] = column(default=None)
    disclosed_to: Cell[str | None] = column(default=None)


class SubscriptionRow(AuthorizationRow, table="event_subscriptions"):
    """Where somebody is told that something changed.

    It is a grant's (with `package_id`, if its client reads by that), or the owner's with neither.
    `streams` and `connection_ids` narrow it; `secret` and `old_secret` are sealed; `seen` is the
    number of the newest change that was looked at; `challenges` are the times of the last ones.
    """

    subscription_id: Cell[str] = column(key=True)
    client_id: Cell[str]
    grant_id: Cell[str | None] = column(default=None, indexed=True)
    package_id: Cell[str | None] = column(default=None)
    callback_url: Cell[str]
    status: Cell[str] = column(default="pending_verification")
    streams: Cell[tuple[str, ...]] = column(default=())
    connection_ids: Cell[tuple[str, ...]] = column(default=())
    secret: Cell[bytes]
    old_secret: Cell[bytes | None] = column(default=None)
    old_secret_until_ns: Cell[int | None] = column(default=None)
    seen: Cell[int]
    challenges: Cell[tuple[int, ...]] = column(default=())
    tested_at_ns: Cell[int | None] = column(default=None)
    created_at_ns: Cell[int]
    updated_at_ns: Cell[int]
    verified_at_ns: Cell[int | None] = column(default=None)
    disabled_reason: Cell[str | None] = column(default=None)
    last_delivery_at_ns: Cell[int | None] = column(default=None)
    last_delivery_status: Cell[str | None] = column(default=None)


class EventRow(AuthorizationRow, table="events"):
    """A hint on its way, or what became of it.

    It is due at `due_at_ns`, waits without, and is done at `done_at_ns`; its bookmark stands behind
    change `since`; `said` is a challenge, or why a grant ended; `outcome` is of the last attempt.
    """

    event_id: Cell[str] = column(key=True)
    subscription_id: Cell[str] = column(indexed=True)
    type: Cell[str]
    connection_id: Cell[str | None] = column(default=None)
    stream: Cell[str | None] = column(default=None)
    since: Cell[int | None] = column(default=None)
    said: Cell[str | None] = column(default=None)
    created_at_ns: Cell[int]
    due_at_ns: Cell[int | None] = column(default=None, indexed=True)
    attempts: Cell[int] = column(default=0)
    outcome: Cell[str | None] = column(default=None)
    done_at_ns: Cell[int | None] = column(default=None)


ROW_TYPES: tuple[type[AuthorizationRow], ...] = (
    OwnerRow,
    OwnerLinkRow,
    OwnerSessionRow,
    PasskeyRow,
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
    ReadingSpanRow,
    ReadingWordsRow,
    ReadingLimitsRow,
    ReadingAlarmRow,
    CanaryRow,
    SubscriptionRow,
    EventRow,
)
