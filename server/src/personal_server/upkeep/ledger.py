"""The ledger: what was erased and what access was ended, kept beside the database and backups.

Rule: it is no part of a backup, so that what came after the backup is known when it is restored;
lines are only ever added.  It names connections, streams and grants by their ids and erased records
by a digest, and holds nothing that was erased.
Source: docs/backup.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import orjson

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.texts import message

NAME = "erasures.jsonl"


class LedgerDamaged(StorageUnavailable):
    """A ledger that cannot be read."""


Entry = dict[str, Any]
"""`kind` is `erasure` or `ended`, `id` what tells it from others."""


def read_ledger(path: Path) -> dict[str, Entry]:
    """Entries by their id; none where there is no file.  Raises: LedgerDamaged."""
    try:
        lines = path.read_bytes().splitlines()
        entries = [cast("Entry", orjson.loads(line)) for line in lines]
        return {str(entry["id"]): entry for entry in entries}
    except FileNotFoundError:
        return {}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        raise LedgerDamaged(
            f"{path.name} cannot be read. Put back a copy of the file, or move the file away."
        ) from None


def add_to_ledger(path: Path, entries: Iterable[Entry]) -> bool:
    """Add what it does not have yet; whether there was anything."""
    known = read_ledger(path)
    fresh = {str(entry["id"]): entry for entry in entries if str(entry["id"]) not in known}
    if not fresh:
        return False
    lines = b"".join(orjson.dumps(each) + b"\n" for each in (known | fresh).values())
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".ledger-", delete=False) as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
    except OSError:
        raise StorageUnavailable(
            message("The server cannot write the file %(file)s.", file=path.name)
        ) from None
    return True
