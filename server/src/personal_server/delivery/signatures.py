"""Signatures of events (Standard Webhooks), and the secrets behind them.

Rule: a secret is shown once, when it is made; the store holds it sealed, and opens it to sign.
Source: docs/contract/resource-server.md 15.2.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pdpp_kernel.errors import StorageUnavailable
from personal_server.domain.stored import SealingKey

SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 (what every secret begins with)
_PURPOSE = b"webhook secrets 1"


def shown_secret(secret: bytes) -> str:
    """A secret as its receiver is told it."""
    return SECRET_PREFIX + base64.b64encode(secret).decode("ascii")


def signed_headers(
    event_id: str, sent_at_s: int, body: bytes, secrets: Sequence[bytes]
) -> dict[str, str]:
    """The headers by which a receiver knows the sender; one signature for each secret.

    Source: the Standard Webhooks specification.
    """
    content = f"{event_id}.{sent_at_s}.".encode() + body
    signatures = [
        base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode("ascii")
        for secret in secrets
    ]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(sent_at_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


class SecretBox(msgspec.Struct, frozen=True):
    """Seals secrets with the newest key of the server; older keys still open what they sealed."""

    keys: Callable[[], Sequence[SealingKey]]

    def seal(self, secret: bytes, subscription_id: str) -> bytes:
        """What the store keeps of a subscription's secret."""
        return _cipher(self.keys()[0]).encrypt(secret, [_PURPOSE, subscription_id.encode()])

    def open(self, sealed: bytes, subscription_id: str) -> bytes:
        """The secret.  Raises: StorageUnavailable for what no key of this server sealed."""
        for key in self.keys():
            with suppress(InvalidTag):
                return _cipher(key).decrypt(sealed, [_PURPOSE, subscription_id.encode()])
        raise StorageUnavailable(
            "The secret of an event subscription cannot be decrypted; delete the "
            "subscription and subscribe again."
        )


def _cipher(key: SealingKey) -> AESSIV:
    return AESSIV(HKDF(SHA512(), 64, None, _PURPOSE).derive(key.secret))
