"""`python -m personal_server.cli`: the command line without an installed script."""

from __future__ import annotations

from pdpp_mcp_server.commands.main import run

if __name__ == "__main__":
    run()
