"""MCP hosts and the one command or setting that connects each.

Rule: the address comes first and every host gets exactly one way; what is printed on a terminal,
on the docs page and in the setup document is made here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostConnection:
    """How one host is connected: its name, what to do, and the text to paste."""

    host: str
    instruction: str
    text: str


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
        HostConnection("Claude Code", "Run:", f"claude mcp add --transport http {name} {url}"),
        HostConnection("Codex", "Run:", f"codex mcp add {name} --url {url}"),
        HostConnection("VS Code", "Run:", f"code --add-mcp '{entry}'"),
        HostConnection("Claude", f"{cloud}Settings, Connectors, Add custom connector:", url),
        HostConnection("ChatGPT", f"{cloud}Settings, Apps and connectors, Create:", url),
        HostConnection("Any other host", "Add to its MCP configuration:", stdio),
    )
