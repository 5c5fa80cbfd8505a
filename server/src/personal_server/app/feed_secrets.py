"""Passwords of feeds: in the keyring of this machine, or in a file of the owner's (0600), sealed
with a key of the database.

Rule: neither file nor database alone gives a password: a backup has the database and not the file.
The keyring outlives the database, and gives one for the place alone that it was kept for.
No password is in a log, an argument, the environment, a receipt, an export or a page.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec
import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.file_locks import lock
from personal_server.app.machine_keyring import MachineKeyring, machine_keyring
from personal_server.app.stores import Stores
from personal_server.reading.sealed_tokens import store_sealer
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.upkeep_stores import ServerStore

FILE, DAMAGED = "feed-secrets.json", ".damaged"
TOKENS_BEGIN = "oauth2 "
"""What is kept in the place of a password begins so, where tokens sign in (`oauth_access.py`)."""
_VERSION = b"feed secrets 1"
_PLACE_DIGITS = 32
_decoder = msgspec.json.Decoder(dict[str, str])


class PasswordPlace(StrEnum):
    """Where a password lies."""

    FILE = "file"
    KEYRING = "keyring"


class FeedSecrets(msgspec.Struct, frozen=True):
    """The passwords of feeds."""

    path: Path
    store: ServerStore
    random_bytes: Callable[[int], bytes]
    clock: Callable[[], int]
    keyring: MachineKeyring | None = None

    @classmethod
    def of(cls, stores: Stores) -> FeedSecrets:
        """Those of a data directory."""
        return cls(
            stores.data_dir / FILE,
            stores.records,
            stores.random_bytes,
            stores.clock,
            machine_keyring(),
        )

    def place_of(self, feed: FeedRow) -> PasswordPlace | None:
        """Where the password of a feed lies; None where there is none."""
        if feed.feed_id in self._all():
            return PasswordPlace.FILE
        is_there = self.keyring is not None and self.keyring.password(_named(feed)) is not None
        return PasswordPlace.KEYRING if is_there else None

    def password(self, feed: FeedRow) -> str | None:
        """The password, or None where there is none that this database can open."""
        feed_id = feed.feed_id
        sealed = self._all().get(feed_id)
        if sealed is None:
            return None if self.keyring is None else self.keyring.password(_named(feed))
        for key in self.store.sealing_keys():
            try:
                opened = _cipher(key.secret).decrypt(base64.b64decode(sealed), _bound(feed_id))
            except (InvalidTag, ValueError):
                continue
            return opened.decode()
        return None

    def keep(self, feed: FeedRow, password: str) -> None:
        """Keep one: in the keyring if that takes it, else sealed in the file; in one of them."""
        feed_id = feed.feed_id
        if self.keyring is not None and self.keyring.keep(_named(feed), password):
            self._unwrite(feed_id)
            return
        store_sealer(self.store, self.random_bytes, self.clock())  # the first start makes a key
        key = self.store.sealing_keys()[0]
        sealed = _cipher(key.secret).encrypt(password.encode(), _bound(feed_id))
        with self._changing() as kept:
            kept[feed_id] = base64.b64encode(sealed).decode()

    def forget(self, feed: FeedRow) -> None:
        """Remove one, if it is there."""
        if self.keyring is not None:
            self.keyring.forget(_named(feed))
        self._unwrite(feed.feed_id)

    def _unwrite(self, feed_id: str) -> None:
        with self._changing() as kept:
            kept.pop(feed_id, None)

    @contextmanager
    def _changing(self) -> Generator[dict[str, str]]:
        """What the file holds, written where it is another after the block; by one at a time, since
        commands and pages would lose each other's.  Raises: StorageReadOnly, StorageUnavailable.
        """
        try:
            opened = os.open(self.path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(opened, "wb") as turn:
                lock(turn)
                kept = self._all()
                before = dict(kept)
                yield kept
                if kept != before:
                    self._write(kept)
        except OSError as error:
            raise refusal_of(error) from error

    def _all(self) -> dict[str, str]:
        """None of a file that is damaged, so that each feed says that its password is missing.

        Raises: StorageUnavailable where the file is there and cannot be read.
        """
        try:
            return self._decoded() or {}
        except OSError as error:  # written anew, it would lose the others' passwords
            raise refusal_of(error) from error

    def _decoded(self) -> dict[str, str] | None:
        """What the file holds, or None of one that is damaged.  Raises: OSError."""
        try:
            return _decoder.decode(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _write(self, kept: dict[str, str]) -> None:
        if self._decoded() is None:  # somebody may find the others' passwords in it
            self.path.replace(self.path.with_suffix(DAMAGED))
        scratch = self.path.with_suffix(f".{os.getpid()}")
        opened = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as out:
            out.write(orjson.dumps(kept))
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(self.path)


def _named(feed: FeedRow) -> str:
    """What the password is called in the keyring: a database that came from elsewhere may have a
    feed of the same id that signs in at a server of somebody else's.
    """
    return f"{feed.feed_id} {sha256(feed.place.encode()).hexdigest()[:_PLACE_DIGITS]}"


def _cipher(secret: bytes) -> AESSIV:
    return AESSIV(HKDF(SHA512(), 64, None, _VERSION).derive(secret))


def _bound(feed_id: str) -> list[bytes]:
    return [_VERSION, feed_id.encode()]
