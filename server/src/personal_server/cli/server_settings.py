"""The settings of the server that a command works for.

Source: docs/settings.md.
"""

from __future__ import annotations

from pathlib import Path

from pdpp_mcp_server.commands.exits import usable
from personal_server.settings import Settings, from_env


def settings_or_exit(port: int | None = None, data_dir: Path | None = None) -> Settings:
    """The server's settings; what is given here comes before them.

    Raises: CommandError (`config`).
    """
    return usable(lambda: from_env(port=port, data_dir=data_dir))
