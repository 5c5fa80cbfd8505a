"""A command line as it is shown, to be copied."""

from __future__ import annotations

import re

from pdpp_mcp_server.settings import own_command

_COMMAND = re.compile(r"(?<![\w./-])pdpp (?=[a-z]|--help)")


def spelled(text: str) -> str:
    """Words of ours with each command as it works from where the person stands."""
    found = _COMMAND.search(text)
    return text if found is None else _COMMAND.sub(f"{own_command()} ".replace("\\", r"\\"), text)
