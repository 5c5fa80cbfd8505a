"""Uploads as the server wires them: `pdpp import` reads them, in a process of its own.

Rule: the command finds the very store that serves; nothing of an upload is read in this process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from personal_server.app.stores import Stores
from personal_server.collecting.uploads import Uploads
from personal_server.settings import Settings, command_environment

PDPP = (sys.executable, "-m", "personal_server.cli")
FOLDER = "uploads"
CATALOGUE_SECONDS = 60


def uploads_of(settings: Settings, stores: Stores) -> Uploads:
    """The uploads of this server."""

    def command(paths: Sequence[Path], account: str | None) -> Sequence[str]:
        chosen = [] if account is None else ["--connection", account]
        return [*PDPP, "import", "--json", "--ask", *chosen, "--", *map(str, paths)]

    return Uploads(
        settings.data_dir / FOLDER,
        settings.upload_bytes,
        command,
        command_environment(settings),
        stores.clock,
        stores.random_bytes,
    )


@cache
def importable_exports() -> Sequence[dict[str, Any]]:
    """What can be imported, as `pdpp sources` lists it; its modules are not loaded here."""
    done = subprocess.run(  # noqa: S603 - our own command
        [*PDPP, "sources", "--json"], capture_output=True, timeout=CATALOGUE_SECONDS, check=True
    )
    return orjson.loads(done.stdout)
