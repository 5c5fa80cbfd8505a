"""Sealing: opaque tokens by authenticated encryption with a server key.

Rule: what does not open is not looked at; a token has exactly one spelling. AES-SIV needs no
nonce (equal places make equal tokens) and carries use, request and version without their bytes.
Shapes: token = letter of the use | base64url(AES-SIV tag, 16 bytes | ciphertext).
Source: docs/contract/resource-server.md 2.7.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from personal_server.domain.cursor import TokenUse
from personal_server.domain.stored import SealingKey
from personal_server.storage.ports.upkeep_stores import ServerStore

KEY_BYTES, _TAG_BYTES = 32, 16
_VERSION = b"opaque tokens 2"


class KeyedSealer:
    """Seals with the newest key and opens with any that is kept."""

    def __init__(self, keys: Iterable[SealingKey]) -> None:
        self._keys = tuple(keys)

    def seal(self, use: TokenUse, request: str, content: bytes) -> str:
        """An opaque token."""
        sealed = _cipher(self._keys[0]).encrypt(content, _bound(use, request))
        return use.letter + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")

    def open(self, use: TokenUse, request: str, token: str) -> bytes | None:
        """The content, or `None` for what this server did not seal for this use and request."""
        sealed = _decoded(token[1:]) if token.startswith(use.letter) else None
        if sealed is None or len(sealed) <= _TAG_BYTES:
            return None
        for cipher in map(_cipher, self._keys):
            with suppress(InvalidTag):
                return cipher.decrypt(sealed, _bound(use, request))
        return None


def store_sealer(
    store: ServerStore, random_bytes: Callable[[int], bytes], now_ns: int
) -> KeyedSealer:
    """A sealer with the store's keys; the first start makes one."""
    keys = store.sealing_keys()
    if not keys:
        keys = (store.add_sealing_key(random_bytes(KEY_BYTES), now_ns),)
    return KeyedSealer(keys)


@lru_cache(maxsize=16)  # who neither seals nor opens, as imports, saves a megabyte
def _cipher(key: SealingKey) -> AESSIV:
    return AESSIV(HKDF(SHA512(), 64, None, _VERSION).derive(key.secret))


def _bound(use: TokenUse, request: str) -> list[bytes]:
    return [_VERSION, use.value.encode("ascii"), request.encode("ascii")]


def _decoded(token: str) -> bytes | None:
    """Exactly the bytes whose one spelling this is."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") == token else None
