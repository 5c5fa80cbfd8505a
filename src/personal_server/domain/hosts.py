"""MCP hosts and the one command or setting that connects each.

Rule: the address comes first and every host gets exactly one way; what is printed on a terminal,
on the docs page and in the setup document is made here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostConnection:
    """How one host is connected: its name, what to do, the text to paste, and what comes next."""

    host: str
    instruction: str
    text: str
    then: str = ""


def mcp_url(origin: str) -> str:
    """The address that every host is given."""
    return f"{origin}/mcp"


def host_connections(origin: str, name: str = "personal-data") -> tuple[HostConnection, ...]:
    """One way per host, the common ones first.

    Shapes: `origin` without trailing slash; hosts that run in a vendor's cloud need a public one.
    """
    url = mcp_url(origin)
    entry = json.dumps({"name": name, "type": "http", "url": url}, separators=(",", ":"))
    stdio = json.dumps({"mcpServers": {name: {"type": "http", "url": url}}})
    cloud = "" if url.startswith("https:") else "Once it has a public https address: "
    return (
        HostConnection(
            "Claude Code",
            "Run:",
            f"claude mcp add --transport http {name} {url}",
            f"Then type /mcp in it, choose {name} and authenticate.",
        ),
        HostConnection(
            "Codex",
            "Run:",
            f"codex mcp add {name} --url {url}",
            f"If it does not open the browser: codex mcp login {name}",
        ),
        HostConnection(
            "VS Code",
            "Run:",
            f"code --add-mcp '{entry}'",
            "Then start it under `MCP: List Servers` and allow it to sign in.",
        ),
        HostConnection(
            "Claude",
            f"{cloud}Settings, Connectors, Add custom connector:",
            url,
            "Then press Connect.",
        ),
        HostConnection(
            "ChatGPT",
            f"{cloud}Settings, Apps and connectors, Create:",
            url,
            "With authentication by OAuth; custom connectors need developer mode.",
        ),
        HostConnection("Any other host", "Add to its MCP configuration:", stdio),
    )
