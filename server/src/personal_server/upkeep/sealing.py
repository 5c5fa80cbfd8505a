"""Sealing a backup for an age recipient, so that the machine that writes it needs no secret.

Raises: BackupRefused.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import IO, Any

from personal_server.upkeep.backups import BackupRefused

SEALED_BEGIN = b"age-encryption.org/v1"


def seal(plain: IO[bytes], sealed: IO[bytes], recipient: str) -> None:
    """Encrypt to `age1…` or an SSH public key."""
    age = _age()
    kinds = (age.x25519.Recipient, age.ssh.Recipient)
    age.encrypt_io(plain, sealed, [_parsed(kinds, recipient, "recipient")])


def require_recipient(recipient: str) -> None:
    """Refuse what nobody could open again."""
    age = _age()
    _parsed((age.x25519.Recipient, age.ssh.Recipient), recipient, "recipient")


def unseal(sealed: IO[bytes], plain: IO[bytes], identity_file: Path) -> None:
    """Decrypt with the identities of a file, as age writes it (or an SSH private key)."""
    age = _age()
    try:
        text = identity_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BackupRefused("The identity file cannot be read.") from None
    if text.startswith("-----BEGIN"):
        keys = [_parsed((_SshKey(age),), text, "identity")]
    else:
        lines = [line.strip() for line in text.splitlines()]
        named = [line for line in lines if line and not line.startswith("#")]
        keys = [_parsed((age.x25519.Identity,), line, "identity") for line in named]
    try:
        age.decrypt_io(sealed, plain, keys)
    except (age.DecryptError, OSError):
        raise BackupRefused(
            "This identity does not decrypt the backup, or the backup is damaged."
        ) from None


def is_sealed(path: Path) -> bool:
    """Whether a file begins as age files do."""
    try:
        with path.open("rb") as file:
            return file.read(len(SEALED_BEGIN)) == SEALED_BEGIN
    except OSError:
        raise BackupRefused("The backup cannot be read.") from None


class _SshKey:
    """An SSH private key, which is parsed from bytes."""

    def __init__(self, age: Any) -> None:
        self._age = age

    def from_str(self, text: str) -> Any:
        return self._age.ssh.Identity.from_buffer(text.encode())


def _parsed(kinds: tuple[Any, ...], text: str, what: str) -> Any:
    age = _age()
    refusals = (age.RecipientError, age.IdentityError)
    for kind in kinds:
        try:
            return kind.from_str(text)
        except refusals:
            continue
    raise BackupRefused(f"This is not an age {what}.")


def _age() -> Any:
    # a compiled module without types, loaded where something is sealed only
    return import_module("pyrage")
