"""Passkeys: the owner proves who they are with a key that stays in their device.

Rule: a challenge is ours, for one purpose, ten minutes old at most and answered once.  What a
signature was about stands in its challenge, so that a kept one proves what was signed.
Source: docs/contract/authorization-server.md 13.6; W3C WebAuthn Level 3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec
import orjson

from pdpp_kernel.errors import SignInFailed
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.credentials import RandomBytes, base64url
from personal_server.domain.keyed_values import (
    KeyedValues,
    ValueSpace,
)
from personal_server.domain.own_values import OwnSpace
from personal_server.granting.audit import NOTHING, Acting, audit
from personal_server.storage.authorization_rows import JsonObject, PasskeyRow
from personal_server.storage.ports.authorization_store import AuthorizationStore

REGISTER, SIGN_IN, APPROVE = "register", "sign-in", "approve"
MAX_PASSKEYS: Final = 20
MAX_NAME_CHARS: Final = 60
_CHALLENGE_NS: Final = 600 * NANOSECONDS
_NONCE_BYTES, _TIME_BYTES, _MAC_BYTES = 16, 8, 16
_KEY_BYTES: Final = 32
_MOST_ANSWERED: Final = 4_096
_ALGORITHMS = (-7, -8, -257)
_REFERENCE_CHARS: Final = 24


def relying_party(origin: str) -> str | None:
    """The name that passkeys of an origin belong to; an address has none.

    Source: W3C WebAuthn Level 3, 5.1.2 (a relying party is a domain).
    """
    parts = urlsplit(origin)
    host = parts.hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host if parts.scheme == "https" or host == "localhost" else None
    return None


@dataclass(slots=True)
class Challenges:
    """Challenges that nobody needs to keep before they are answered: they carry our seal.

    Shapes: nonce (16) | UTC nanoseconds (8) | seal (16) | SHA-256 of what is signed (32).
    """

    clock: Callable[[], int]
    random_bytes: RandomBytes
    space: ValueSpace = field(default_factory=OwnSpace)
    _key: bytes = field(init=False, repr=False)
    _answered: KeyedValues[int] = field(init=False)

    def __post_init__(self) -> None:
        """Seal with a key of this server, which dies with it."""
        keys = self.space.values("challenges.key", bytes, 1, _KEY_BYTES + 2)
        with keys.lock:
            self._key = keys.get(None) or self.random_bytes(_KEY_BYTES)
            keys.put(None, self._key)
        self._answered = self.space.values("challenges.answered", int, _MOST_ANSWERED, 9)

    def make(self, purpose: str, content: str) -> bytes:
        """A fresh challenge of random bytes, good for one answer."""
        head = self.random_bytes(_NONCE_BYTES) + self.clock().to_bytes(_TIME_BYTES, "big")
        return self._sealed(head, purpose, content)

    def fits(self, challenge: bytes, purpose: str, content: str) -> bool:
        """Whether it is ours, for this, still young and not answered before."""
        head = challenge[: _NONCE_BYTES + _TIME_BYTES]
        made_ns = int.from_bytes(head[_NONCE_BYTES:], "big")
        return (
            hmac.compare_digest(challenge, self._sealed(head, purpose, content))
            and made_ns <= self.clock() <= made_ns + _CHALLENGE_NS
            and self._answered.get(head) is None
        )

    def spend(self, challenge: bytes) -> bool:
        """Answer it; whether that was the first time, and it can be remembered."""
        head = challenge[: _NONCE_BYTES + _TIME_BYTES]
        with self._answered.lock:
            now_ns = self.clock()
            forgotten = self._answered.displaced_by(head)
            is_full = forgotten is not None and forgotten >= now_ns - _CHALLENGE_NS
            if is_full or self._answered.get(head) is not None:
                return False
            self._answered.put(head, now_ns)
            return True

    def _sealed(self, head: bytes, purpose: str, content: str) -> bytes:
        about = hashlib.sha256(content.encode()).digest()
        seal = hmac.new(self._key, b"%b|%b|" % (head, purpose.encode()) + about, hashlib.sha256)
        return head + seal.digest()[:_MAC_BYTES] + about


class Passkey(msgspec.Struct, frozen=True):
    """A passkey as pages show it.  `reference` names it and opens nothing."""

    reference: str
    name: str
    relying_party: str
    created_at_ns: int
    last_used_at_ns: int | None


class Passkeys(msgspec.Struct, frozen=True):
    """Registers passkeys and checks what they sign.  `clock` gives UTC nanoseconds."""

    store: AuthorizationStore
    clock: Callable[[], int]
    server_name: str
    challenges: Challenges

    def listed(self) -> list[Passkey]:
        """Every passkey, the first first."""
        with self.store.read() as reader:
            rows = reader.rows(PasskeyRow, order=PasskeyRow.created_at_ns)
        return [_shown(row) for row in rows]

    def to_register(self, origin: str) -> JsonObject | None:
        """What a browser needs to make a passkey; `None` where an origin can have none."""
        party = relying_party(origin)
        if party is None:
            return None
        with self.store.read() as reader:
            passkeys = reader.rows(PasskeyRow)
        return {
            "rp": {"id": party, "name": self.server_name},
            "user": {
                "id": base64url(self.store.subject_id.encode()),
                "name": "owner",
                "displayName": self.server_name,
            },
            "challenge": base64url(self.challenges.make(REGISTER, "")),
            "pubKeyCredParams": [{"type": "public-key", "alg": alg} for alg in _ALGORITHMS],
            "excludeCredentials": [
                {"type": "public-key", "id": base64url(row.credential_id)} for row in passkeys
            ],
            "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
            "attestation": "none",
        }

    def to_sign(self, origin: str, purpose: str, content: str = "") -> JsonObject | None:
        """What a browser needs to sign `content`; `None` without a passkey of this origin."""
        party = relying_party(origin)
        if party is None:
            return None
        with self.store.read() as reader:
            if not reader.count(PasskeyRow, PasskeyRow.relying_party.equals(party)):
                return None
        return {
            "rpId": party,
            "challenge": base64url(self.challenges.make(purpose, content)),
            "userVerification": "required",
        }

    def register(self, origin: str, answer: str, name: str, acting: Acting) -> None:
        """Keep a passkey that a browser made.  Raises: SignInFailed."""
        from personal_server.granting.passkey_answers import verified_registration  # noqa: PLC0415

        credential, challenge = self._answered(answer, REGISTER, "")
        party = relying_party(origin) or ""
        registration = verified_registration(credential, challenge, party, origin)
        if registration is None:
            raise _refused()
        now_ns = self.clock()
        with self.store.write() as writer:
            is_made = PasskeyRow.credential_id.equals(registration.credential_id)
            full = writer.count(PasskeyRow) >= MAX_PASSKEYS
            if full or writer.get(PasskeyRow, is_made) is not None:
                raise SignInFailed(
                    "This passkey is registered already, or you have too many passkeys."
                )
            writer.insert(
                PasskeyRow(
                    credential_id=registration.credential_id,
                    public_key=registration.credential_public_key,
                    sign_count=registration.sign_count,
                    relying_party=party,
                    name=name.strip()[:MAX_NAME_CHARS] or "Passkey",
                    created_at_ns=now_ns,
                )
            )
            audit(writer, "owner.passkey_added", acting, now_ns, NOTHING)

    def verify(self, origin: str, answer: str, purpose: str, content: str = "") -> JsonObject:
        """The proof that the owner just signed `content`.  Raises: SignInFailed.

        Shapes: the proof holds what anybody needs to check it again, without our help.
        """
        from personal_server.granting.passkey_answers import verified_signature  # noqa: PLC0415

        credential, challenge = self._answered(answer, purpose, content)
        credential_id = _bytes_of(credential, "id")
        is_signer = PasskeyRow.credential_id.equals(credential_id)
        with self.store.read() as reader:
            row = reader.get(PasskeyRow, is_signer)
        if row is None or row.relying_party != relying_party(origin):
            raise _refused()
        signed = verified_signature(credential, challenge, row, origin)
        if signed is None:
            raise _refused()
        now_ns = self.clock()
        with self.store.write() as writer:
            to = [
                PasskeyRow.sign_count.to(signed.new_sign_count),
                PasskeyRow.last_used_at_ns.to(now_ns),
            ]
            if not self.challenges.spend(challenge) or not writer.change(PasskeyRow, to, is_signer):
                raise _refused()
        response = _object_of(credential, "response")
        return {
            "type": "webauthn",
            "credential_id": base64url(credential_id),
            "public_key": base64url(row.public_key),
            **{
                name: response[name]
                for name in ("authenticatorData", "clientDataJSON", "signature")
            },
        }

    def remove(self, reference: str, acting: Acting) -> bool:
        """Forget a passkey; whether there was one."""
        now_ns = self.clock()
        with self.store.write() as writer:
            for row in writer.rows(PasskeyRow):
                if _shown(row).reference == reference:
                    writer.delete(PasskeyRow, PasskeyRow.credential_id.equals(row.credential_id))
                    audit(writer, "owner.passkey_removed", acting, now_ns, NOTHING)
                    return True
        return False

    def _answered(
        self, answer: str, purpose: str, content: str
    ) -> tuple[Mapping[str, object], bytes]:
        """What a browser answered, and the challenge that it answers."""
        try:
            credential = _an_object(orjson.loads(answer))
            client_data = _bytes_of(_object_of(credential, "response"), "clientDataJSON")
            challenge = _bytes_of(_an_object(orjson.loads(client_data)), "challenge")
        except ValueError:
            raise _refused() from None
        if not self.challenges.fits(challenge, purpose, content):
            raise _refused()
        return credential, challenge


def has_passkey(store: AuthorizationStore, origin: str) -> bool:
    """Whether the owner can sign in at an origin without a password."""
    party = relying_party(origin)
    with store.read() as reader:
        return (
            party is not None
            and reader.count(PasskeyRow, PasskeyRow.relying_party.equals(party)) > 0
        )


def _shown(row: PasskeyRow) -> Passkey:
    digest = hashlib.sha256(row.credential_id).hexdigest()
    return Passkey(
        digest[:_REFERENCE_CHARS],
        row.name,
        row.relying_party,
        row.created_at_ns,
        row.last_used_at_ns,
    )


def _an_object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("The request must be a JSON object.")
    return cast("Mapping[str, object]", value)


def _object_of(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    return _an_object(value.get(name))


def _bytes_of(value: Mapping[str, object], name: str) -> bytes:
    return base64.urlsafe_b64decode(f"{value.get(name)}===")  # padding is optional there


def _refused() -> SignInFailed:
    return SignInFailed("The passkey does not match, or the page is too old. Reload the page.")
