"""How a page of this computer is opened from the computer at which somebody sits, over ssh.

Source: docs/contract/authorization-server.md 13.1.
"""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Sequence
from urllib.parse import urlsplit

LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}
_PARTS = 4


def tunnel(origin: str, connection: Sequence[str]) -> str | None:
    """The command to type there first; none where no ssh or no loopback address is meant.

    Shapes: `connection` as `settings.ssh_connection` gives it.
    """
    parts = urlsplit(origin)
    if len(connection) != _PARTS or parts.hostname not in LOOPBACK_NAMES:
        return None
    port = parts.port or 80
    there = shlex.quote(f"{getpass.getuser()}@{connection[2]}")
    at = "" if connection[3] == "22" else f" -p {connection[3]}"
    return f"ssh -N -L {port}:127.0.0.1:{port}{at} {there}"
