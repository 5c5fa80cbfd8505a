"""Who makes the exports of this server, so that they come back as its own.

Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from personal_server.upkeep.backup_signatures import BackupSigner


class ExportSigner(msgspec.Struct, frozen=True):
    """Signs with the key of backups; what signs is loaded with the first export."""

    data_dir: Path
    random_bytes: Callable[[int], bytes]

    def sign(self, sha256: str) -> Mapping[str, str]:
        """What the end of an export says of who made it; nothing where a key cannot be kept."""
        try:
            return self._signer().sign_export(sha256)
        except OSError:  # the disk is full: an export is what helps then
            return {}

    def name(self) -> str | None:
        """The public key in exports of this server, if there is one."""
        try:
            return self._signer().name
        except OSError:
            return None

    def _signer(self) -> BackupSigner:
        from personal_server.upkeep.backup_signatures import BackupSigner  # noqa: PLC0415 (see class)

        return BackupSigner(self.data_dir, self.random_bytes)
