"""Who made a backup or an export: a signature over the digest of everything in it.

Rule: the key lies beside the data and is in no backup, so that whoever has one can make no other.
Source: docs/backup.md; docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from personal_server.consent.credentials import base64url

KEY_FILE = "signer.key"
SEED_BYTES = 32
_SIGNED, _EXPORTED = b"pdpp backup manifest 1\n", b"pdpp export 1\n"


class BackupSigner:
    """Signs the manifests of one data directory; its key is made when it is first needed."""

    def __init__(self, data_dir: Path, random_bytes: Callable[[int], bytes]) -> None:
        self._path = data_dir / KEY_FILE
        self._random_bytes = random_bytes

    @property
    def name(self) -> str:
        """The public key, as commands print and take it.  Raises: OSError."""
        return base64url(self._key().public_key().public_bytes_raw())

    def keep_key(self) -> None:
        """Make the key where there is none yet.  Raises: OSError."""
        self._key()

    def sign(self, manifest: bytes) -> bytes:
        """What goes into the archive behind a manifest.  Raises: OSError."""
        return orjson.dumps(self._signed(_SIGNED + manifest))

    def sign_export(self, sha256: str) -> Mapping[str, str]:
        """What the end of an export says beside that digest.  Raises: OSError."""
        return self._signed(_EXPORTED + sha256.encode())

    def _signed(self, content: bytes) -> Mapping[str, str]:
        return {"signer": self.name, "signature": base64url(self._key().sign(content))}

    def _key(self) -> Ed25519PrivateKey:
        if not self._path.exists():
            own = self._path.with_name(f".{KEY_FILE}-{os.getpid()}")
            own.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(own, flags, 0o600), "wb") as file:
                file.write(self._random_bytes(SEED_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was first: its key counts
                os.link(own, self._path)
            own.unlink()
        return Ed25519PrivateKey.from_private_bytes(self._path.read_bytes())


def signer_of(manifest: bytes, signed: bytes) -> str | None:
    """Whose signature of a manifest that is; None, if it is nobody's."""
    try:
        members = orjson.loads(signed)
        return _signer(members["signer"], members["signature"], _SIGNED + manifest)
    except (InvalidSignature, ValueError, TypeError, KeyError):
        return None


def signer_of_export(sha256: str, signer: str, signature: str) -> str | None:
    """Whose signature of an export that is; None, if it is nobody's."""
    try:
        return _signer(signer, signature, _EXPORTED + sha256.encode())
    except (InvalidSignature, ValueError):
        return None


def _signer(signer: str, signature: str, content: bytes) -> str:
    """Raises: InvalidSignature, ValueError, TypeError."""
    key = Ed25519PublicKey.from_public_bytes(_bytes_of(signer))
    key.verify(_bytes_of(signature), content)
    return base64url(key.public_bytes_raw())


def _bytes_of(text: str) -> bytes:
    """Raises: ValueError, TypeError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
