"""Who is the owner: sign-in links, the password, and the sessions that follow.

Rule: a link opens one session, once; a session is a row, so that ending it bites on the next
request; nothing here is known to the store in clear.  One password is hashed at a time, since each
hash takes 64 MiB.
Source: docs/contract/authorization-server.md 13.1, 13.2.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
from collections.abc import Callable
from typing import Final

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from pdpp_kernel.errors import (
    InvalidRequest,
    SignInFailed,
    SignInLinkInvalid,
    StorageReadOnly,
)
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.credentials import (
    OWNER_LINK,
    SECRET_BYTES,
    RandomBytes,
    base64url,
    new_secret,
    secret_hash,
)
from personal_server.granting.audit import NOTHING, Acting, audit
from personal_server.storage.authorization_rows import OwnerLinkRow, OwnerRow, OwnerSessionRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
)

LINK_SECONDS: Final = 600
IDLE_SECONDS: Final = 12 * 3_600
ABSOLUTE_SECONDS: Final = 7 * 86_400
SEEN_GRAIN_SECONDS: Final = 60
FRESH_SECONDS: Final = 900
"""As long as a request waits: whoever signs in for it can read it to its end."""
MIN_PASSWORD_CHARS: Final = 12
MAX_PASSWORD_CHARS: Final = 1_024
_SHOWN_AGENT_CHARS: Final = 200
_REFERENCE_CHARS: Final = 24

Clock = Callable[[], int]

_log = logging.getLogger(__name__)


class Browser(msgspec.Struct, frozen=True):
    """From where a browser comes, as far as it says."""

    address: str | None = None
    user_agent: str | None = None


class SignedIn(Unprinted, frozen=True):
    """A live session.  `reference` names it on pages and opens nothing."""

    session_hash: bytes
    csrf: str
    created_at_ns: int
    last_seen_at_ns: int
    signed_in_at_ns: int
    address: str | None
    user_agent: str | None

    @property
    def reference(self) -> str:
        """The first digits of the hash."""
        return self.session_hash.hex()[:_REFERENCE_CHARS]

    @property
    def origin(self) -> tuple[str | None, str | None]:
        """Browser and address: each link that one browser opened is a session of its own."""
        return self.user_agent, self.address

    def is_fresh(self, now_ns: int, seconds: int = FRESH_SECONDS) -> bool:
        """Whether the owner signed in so lately that it still stands for their will."""
        return now_ns - self.signed_in_at_ns <= seconds * NANOSECONDS


class OwnerSignIn(msgspec.Struct, frozen=True, eq=False):
    """Opens and ends owner sessions.  `clock` gives UTC nanoseconds."""

    store: AuthorizationStore
    clock: Clock
    random_bytes: RandomBytes
    hasher: PasswordHasher = msgspec.field(default_factory=PasswordHasher)
    _hashing: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def make_link(self) -> str:
        """A fresh link secret, good once and for ten minutes."""
        secret = new_secret(OWNER_LINK, self.random_bytes)
        now_ns = self.clock()
        row = OwnerLinkRow(
            link_hash=secret_hash(secret), expires_at_ns=now_ns + LINK_SECONDS * NANOSECONDS
        )
        with self.store.write() as writer:
            writer.insert(row)
            _note(writer, "owner.link_created", now_ns, actor="local_cli")
        return secret

    def enter_by_link(self, secret: str, visitor: Browser) -> str:
        """Spend a link; the value of a new session's cookie.  Raises: SignInLinkInvalid."""
        now_ns = self.clock()
        with self.store.write() as writer:
            spent = writer.change(
                OwnerLinkRow,
                [OwnerLinkRow.used_at_ns.to(now_ns)],
                OwnerLinkRow.link_hash.equals(secret_hash(secret)),
                OwnerLinkRow.used_at_ns.equals(None),
                OwnerLinkRow.expires_at_ns.above(now_ns),
            )
            if spent:
                return self._open(writer, visitor, now_ns, "link")
        raise SignInLinkInvalid("This sign-in link was already used or is too old. Make a new one.")

    def enter_by_passkey(self, visitor: Browser) -> str:
        """The value of a new session's cookie, for an owner whose passkey was just verified."""
        with self.store.write() as writer:
            return self._open(writer, visitor, self.clock(), "passkey")

    def enter_by_password(self, password: str, visitor: Browser) -> str:
        """The value of a new session's cookie.  Raises: SignInFailed."""
        now_ns = self.clock()
        with self.store.read() as reader:
            row = reader.get(OwnerRow)
        stored = None if row is None else row.password_hash
        if stored is None or not self._fits(stored, password):
            with self.store.write() as writer:
                _note(writer, "owner.sign_in_failed", now_ns, address=visitor.address)
            raise SignInFailed("The password is wrong.")
        renewed = self._hashed(password) if self.hasher.check_needs_rehash(stored) else None
        with self.store.write() as writer:
            if renewed is not None:
                writer.change(
                    OwnerRow,
                    [OwnerRow.password_hash.to(renewed)],
                    OwnerRow.password_hash.equals(stored),
                )
            return self._open(writer, visitor, now_ns, "password")

    def has_password(self) -> bool:
        """Whether a password is set."""
        with self.store.read() as reader:
            row = reader.get(OwnerRow)
        return row is not None and row.password_hash is not None

    def set_password(self, password: str) -> None:
        """Set the password and end every session.  Raises: InvalidRequest."""
        if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
            raise InvalidRequest(
                f"A password must have {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.",
                param="password",
            )
        self._keep_password(self._hashed(password))

    def remove_password(self) -> None:
        """Let nobody sign in by password any more; every session ends."""
        self._keep_password(None)

    def _keep_password(self, hashed: str | None) -> None:
        now_ns = self.clock()
        with self.store.write() as writer:
            to = [OwnerRow.password_hash.to(hashed), OwnerRow.password_changed_at_ns.to(now_ns)]
            if not writer.change(OwnerRow, to):
                writer.insert(
                    OwnerRow(
                        password_hash=hashed, created_at_ns=now_ns, password_changed_at_ns=now_ns
                    )
                )
            _end_all(writer, now_ns)
            _note(writer, "owner.password_changed", now_ns)

    def remembrance(self) -> str | None:
        """What a browser keeps to be known again, until the password changes; none without one.

        It opens nothing.
        """
        key = self._remembering_key()
        name = base64url(self.random_bytes(SECRET_BYTES))
        return None if key is None else f"{name}.{_sealed(key, name)}"

    def recognized(self, remembrance: str | None) -> str | None:
        """The name of the browser that keeps this, if it signed in before."""
        key = self._remembering_key() if remembrance else None
        if key is None or remembrance is None:
            return None
        name, _, seal = remembrance.partition(".")
        fits = hmac.compare_digest(seal.encode(), _sealed(key, name).encode())
        return name if fits else None

    def _remembering_key(self) -> bytes | None:
        with self.store.read() as reader:
            row = reader.get(OwnerRow)
        return None if row is None or row.password_hash is None else row.password_hash.encode()

    def session(self, cookie: str) -> SignedIn | None:
        """The live session behind a cookie; its use counts against idleness."""
        now_ns = self.clock()
        with self.store.read() as reader:
            row = reader.get(
                OwnerSessionRow, OwnerSessionRow.session_hash.equals(secret_hash(cookie))
            )
        if row is None or not _alive(row, now_ns):
            return None
        if row.last_seen_at_ns + SEEN_GRAIN_SECONDS * NANOSECONDS <= now_ns:
            self._note_seen(row, now_ns)
        return _signed_in(row)

    def _note_seen(self, row: OwnerSessionRow, now_ns: int) -> None:
        try:
            with self.store.write() as writer:
                writer.change(
                    OwnerSessionRow,
                    [OwnerSessionRow.last_seen_at_ns.to(now_ns)],
                    OwnerSessionRow.session_hash.equals(row.session_hash),
                )
        except StorageReadOnly:
            _log.warning("the use of a sign-in is not noted, so that its owner can look")

    def sessions(self) -> list[SignedIn]:
        """Live sessions, the last seen first."""
        with self.store.read() as reader:
            return self._living(reader)

    def sign_out(self, cookie: str) -> None:
        """End the session behind a cookie."""
        now_ns = self.clock()
        with self.store.write() as writer:
            if _end(writer, secret_hash(cookie), now_ns):
                _note(writer, "owner.signed_out", now_ns)

    def end_session(self, reference: str) -> bool:
        """End the session with this reference; whether there was one."""
        now_ns = self.clock()
        with self.store.write() as writer:
            sessions = [s for s in self._living(writer) if s.reference == reference]
            ended = sum(_end(writer, session.session_hash, now_ns) for session in sessions)
            if ended:
                _note(writer, "owner.signed_out", now_ns)
        return bool(ended)

    def end_alike(self, reference: str, kept: str) -> bool:
        """End the session with this reference, and those of its browser and address.

        Shapes: `kept` is the reference of one that stays.  Whether there was one.
        """
        now_ns = self.clock()
        with self.store.write() as writer:
            living = self._living(writer)
            alike = {s.origin for s in living if s.reference == reference}
            sessions = [s for s in living if s.origin in alike and s.reference != kept]
            ended = sum(_end(writer, session.session_hash, now_ns) for session in sessions)
            if ended:
                _note(writer, "owner.signed_out", now_ns, ended=ended)
        return bool(alike)

    def end_others(self, reference: str) -> int:
        """End every session but the one with this reference; how many there were."""
        now_ns = self.clock()
        with self.store.write() as writer:
            sessions = [s for s in self._living(writer) if s.reference != reference]
            ended = sum(_end(writer, session.session_hash, now_ns) for session in sessions)
            if ended:
                _note(writer, "owner.signed_out", now_ns, ended=ended)
        return ended

    def sign_out_all(self) -> int:
        """End every session; how many there were."""
        now_ns = self.clock()
        with self.store.write() as writer:
            ended = _end_all(writer, now_ns)
            _note(writer, "owner.signed_out", now_ns, actor="local_cli", ended=ended)
        return ended

    def _living(self, reader: AuthorizationReader) -> list[SignedIn]:
        now_ns = self.clock()
        rows = reader.rows(
            OwnerSessionRow,
            OwnerSessionRow.ended_at_ns.equals(None),
            order=OwnerSessionRow.last_seen_at_ns,
            descending=True,
        )
        return [_signed_in(row) for row in rows if _alive(row, now_ns)]

    def _fits(self, stored: str, password: str) -> bool:
        if len(password) > MAX_PASSWORD_CHARS:
            return False
        try:
            with self._hashing:
                return self.hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    def _hashed(self, password: str) -> str:
        with self._hashing:
            return self.hasher.hash(password)

    def _open(self, writer: AuthorizationWriter, visitor: Browser, now_ns: int, method: str) -> str:
        cookie = base64url(self.random_bytes(SECRET_BYTES))
        agent = visitor.user_agent
        writer.insert(
            OwnerSessionRow(
                session_hash=secret_hash(cookie),
                csrf=base64url(self.random_bytes(SECRET_BYTES)),
                created_at_ns=now_ns,
                last_seen_at_ns=now_ns,
                signed_in_at_ns=now_ns,
                address=visitor.address,
                user_agent=agent[:_SHOWN_AGENT_CHARS] if agent else None,
            )
        )
        _note(writer, "owner.signed_in", now_ns, address=visitor.address, by=method)
        return cookie


def _sealed(key: bytes, name: str) -> str:
    return base64url(hmac.new(key, f"browser {name}".encode(), hashlib.sha256).digest())


def _alive(row: OwnerSessionRow, now_ns: int) -> bool:
    idle = row.last_seen_at_ns + IDLE_SECONDS * NANOSECONDS
    absolute = row.created_at_ns + ABSOLUTE_SECONDS * NANOSECONDS
    return row.ended_at_ns is None and now_ns < min(idle, absolute)


def _signed_in(row: OwnerSessionRow) -> SignedIn:
    return SignedIn(
        session_hash=row.session_hash,
        csrf=row.csrf,
        created_at_ns=row.created_at_ns,
        last_seen_at_ns=row.last_seen_at_ns,
        signed_in_at_ns=row.signed_in_at_ns,
        address=row.address,
        user_agent=row.user_agent,
    )


def _end(writer: AuthorizationWriter, session_hash: bytes, now_ns: int) -> int:
    to = [OwnerSessionRow.ended_at_ns.to(now_ns)]
    return writer.change(
        OwnerSessionRow,
        to,
        OwnerSessionRow.session_hash.equals(session_hash),
        OwnerSessionRow.ended_at_ns.equals(None),
    )


def _end_all(writer: AuthorizationWriter, now_ns: int) -> int:
    return writer.change(
        OwnerSessionRow,
        [OwnerSessionRow.ended_at_ns.to(now_ns)],
        OwnerSessionRow.ended_at_ns.equals(None),
    )


def _note(
    writer: AuthorizationWriter,
    event: str,
    now_ns: int,
    *,
    actor: str = "owner",
    address: str | None = None,
    **detail: object,
) -> None:
    audit(writer, event, Acting(actor, address=address), now_ns, NOTHING, **detail)
