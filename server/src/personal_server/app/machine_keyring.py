"""The keyring of this machine, where somebody installed the package `keyring` beside the server and
it finds a keyring that is one.

Rule: what cannot be kept or read there is nowhere, and never an error: the sealed file is there.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Protocol, cast

import msgspec

SERVICE = "personal-server feeds"
LEAST_PRIORITY = 1
"""Of backends: what keeps passwords in a plain file, or nowhere, has a lower one."""


class KeyringBackend(Protocol):
    """A backend of the package.  Raises: errors of the package, and whatever a desktop says."""

    def get_password(self, service: str, username: str) -> str | None:
        """What is kept under a name."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep it."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Remove it."""
        ...


class MachineKeyring(msgspec.Struct, frozen=True):
    """A keyring that is there."""

    backend: KeyringBackend

    def password(self, name: str) -> str | None:
        """What is kept under a name, if it can be read now."""
        with suppress(Exception):
            return self.backend.get_password(SERVICE, name)
        return None

    def keep(self, name: str, password: str) -> bool:
        """Keep it; whether it can be read again."""
        with suppress(Exception):
            self.backend.set_password(SERVICE, name, password)
            return self.backend.get_password(SERVICE, name) == password
        return False

    def forget(self, name: str) -> None:
        """Remove it, if it is there."""
        with suppress(Exception):
            self.backend.delete_password(SERVICE, name)


@cache
def machine_keyring() -> MachineKeyring | None:
    """The keyring of this machine, looked for once in a process.

    Where several are there the package gives a chain of them, of a high priority whatever is in it:
    the first of it alone is used.
    """
    try:
        package = import_module("keyring")
        found = package.get_keyring()
        backend = next(iter(getattr(found, "backends", ())), found)
        if float(backend.priority) < LEAST_PRIORITY:
            return None
    except Exception:  # noqa: BLE001 (a desktop that is half there may say anything)
        return None
    return MachineKeyring(cast("KeyringBackend", backend))
