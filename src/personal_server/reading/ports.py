"""What every read needs from outside, in one value."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from personal_server.domain.cursor import Sealer, TokenUse
from personal_server.reading.freshness import CaptureTimes
from personal_server.reading.rankings import Rankings
from personal_server.storage.ports import ReadSnapshot, RecordStore, SealingKey, ServerStore

PlantedRecords = Callable[[], frozenset[tuple[str, str, str]]]
"""(connection_id, stream, key) of the records that the owner planted and that are not theirs."""


@dataclass(frozen=True, slots=True)
class ReadPorts:
    """Store, sealer, clock (UTC ns), randomness, what is kept between reads, planted records.

    `time_zone` is the owner's, by its IANA name.
    """

    store: RecordStore
    sealer: Sealer
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    capture_times: CaptureTimes = field(default_factory=CaptureTimes)
    rankings: Rankings = field(default_factory=Rankings)
    planted: PlantedRecords = frozenset
    time_zone: str = "UTC"

    def snapshot(self, timeout_seconds: float | None) -> AbstractContextManager[ReadSnapshot]:
        """One consistent state of the store."""
        return self.store.snapshot(timeout_seconds)


# Sealing: opaque tokens by authenticated encryption with a server key.
#
# Rule: what does not open is not looked at; a token has exactly one spelling.
# Shapes: token = base64url(key id, 4 bytes | nonce, 12 bytes | AES-GCM ciphertext and tag).
# Source: docs/contract/resource-server.md 2.7.


KEY_BYTES = 32
_ID_BYTES = 4
_NONCE_BYTES = 12
_TAG_BYTES = 16


class KeyedSealer:
    """Seals with the newest key and opens with any that is kept."""

    def __init__(self, keys: Iterable[SealingKey], random_bytes: Callable[[int], bytes]) -> None:
        ordered = list(keys)
        self._newest = ordered[0].key_id
        self._ciphers = {key.key_id: AESGCM(key.secret) for key in ordered}
        self._random_bytes = random_bytes

    def seal(self, use: TokenUse, content: bytes) -> str:
        """An opaque token."""
        head = self._newest.to_bytes(_ID_BYTES, "big")
        nonce = self._random_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._newest].encrypt(nonce, content, _bound(use, head))
        return base64.urlsafe_b64encode(head + nonce + sealed).rstrip(b"=").decode("ascii")

    def open(self, use: TokenUse, token: str) -> bytes | None:
        """The content, or `None` for anything this server did not seal for this use."""
        raw = _decoded(token)
        if raw is None or len(raw) < _ID_BYTES + _NONCE_BYTES + _TAG_BYTES:
            return None
        head, nonce = raw[:_ID_BYTES], raw[_ID_BYTES : _ID_BYTES + _NONCE_BYTES]
        cipher = self._ciphers.get(int.from_bytes(head, "big"))
        if cipher is None:
            return None
        try:
            return cipher.decrypt(nonce, raw[_ID_BYTES + _NONCE_BYTES :], _bound(use, head))
        except InvalidTag:
            return None


def store_sealer(
    store: ServerStore, random_bytes: Callable[[int], bytes], now_ns: int
) -> KeyedSealer:
    """A sealer with the store's keys; the first start makes one."""
    keys = store.sealing_keys()
    if not keys:
        keys = (store.add_sealing_key(random_bytes(KEY_BYTES), now_ns),)
    return KeyedSealer(keys, random_bytes)


def _bound(use: TokenUse, head: bytes) -> bytes:
    return use.value.encode("ascii") + b"\0" + head


def _decoded(token: str) -> bytes | None:
    """Exactly the bytes whose one spelling this is."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    same = base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
    return raw if same == token else None
