"""Where the server of a data directory answers: a file beside the data, for other terminals.

Rule: a link that signs in leads to the server that runs and to nothing else.  A command that knows
its address by settings alone would send the owner, and the link, to whoever has that port.
Source: docs/contract/authorization-server.md 13.1.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from personal_server.settings import Settings

FILE = "served-at"
LONGEST_BYTES = 300


def note_address(data_dir: Path, origin: str) -> None:
    """Keep the address of the server that begins to serve; a disk without room is no hindrance,
    but the address of a server before it does not stay.
    """
    kept, scratch = data_dir / FILE, data_dir / f".{FILE}-{os.getpid()}"
    with suppress(OSError):
        kept.unlink(missing_ok=True)
        scratch.unlink(missing_ok=True)
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(origin)
        scratch.replace(kept)


def noted_address(settings: Settings) -> str | None:
    """The address that was kept, which is that of the running server where one runs on a file; a
    database may be served from elsewhere.
    """
    if settings.database_url is not None:
        return None
    with suppress(OSError, UnicodeDecodeError), (settings.data_dir / FILE).open("rb") as file:
        return file.read(LONGEST_BYTES).decode("ascii") or None
    return None
