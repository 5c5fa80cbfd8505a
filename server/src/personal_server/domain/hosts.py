"""MCP hosts: the one command or setting that connects each, and the document it is known by.

Rule: the address comes first and every host gets exactly one way; what is printed on a terminal,
on the docs page and in the setup document is made here.  A document written down here stands in
for one that cannot be fetched, for half a year after its day, and never says more than that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType
from typing import cast

import msgspec

DOCUMENT_DAYS = 180
"""How long a document counts that was not fetched since."""


class HostConnection(msgspec.Struct, frozen=True):
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
    is_public = url.startswith("https:")
    cloud = "" if is_public else "Once this server has a public https address: "
    public_url = url if is_public else mcp_url("https://YOUR-ADDRESS")
    return (
        HostConnection(
            "Claude Code",
            "Run this command:",
            f"claude mcp add --transport http {name} {url}",
            f"Then type /mcp in Claude Code, choose {name} and authenticate.",
        ),
        HostConnection(
            "Codex",
            "Run this command:",
            f"codex mcp add {name} --url {url}",
            f"If no browser opens: codex mcp login {name}",
        ),
        HostConnection(
            "VS Code",
            "Run this command:",
            f"code --add-mcp '{entry}'",
            "Then start the server under “MCP: List Servers” and allow VS Code to sign in.",
        ),
        HostConnection(
            "Claude",
            f"{cloud}Settings, Connectors, Add custom connector:",
            public_url,
            "Then press Connect.",
        ),
        HostConnection(
            "ChatGPT",
            f"{cloud}Settings, Apps and connectors, Create:",
            public_url,
            "Choose OAuth as authentication. Custom connectors need developer mode.",
        ),
        HostConnection("Any other host", "Add this to the app's MCP configuration:", stdio),
    )


class PublishedDocument(msgspec.Struct, frozen=True):
    """The client metadata document of a host, as it was published on a day."""

    published_on: date
    members: Mapping[str, object]

    @property
    def url(self) -> str:
        """Where it is published, which is the id of its client."""
        return cast("str", self.members["client_id"])

    @property
    def body(self) -> bytes:
        """The document."""
        return json.dumps(dict(self.members)).encode()


def _published(published_on: str, url: str, name: str, *redirects: str) -> PublishedDocument:
    members = {
        "client_id": url,
        "client_name": name,
        "redirect_uris": list(redirects),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return PublishedDocument(date.fromisoformat(published_on), MappingProxyType(members))


_LOOPBACK = ("http://localhost/callback", "http://127.0.0.1/callback")
CLAUDE_CODE = _published(
    "2026-09-08",
    "https://claude.ai/oauth/claude-code-client-metadata",
    "Claude Code",
    *_LOOPBACK,
)
CODEX = _published("2026-09-08", "https://chatgpt.com/oauth/codex/client.json", "Codex", *_LOOPBACK)
VS_CODE = _published(
    "2026-09-08",
    "https://vscode.dev/oauth/client-metadata.json",
    "Visual Studio Code",
    "http://127.0.0.1:33418/",
    "https://vscode.dev/redirect",
)
PUBLISHED = MappingProxyType({document.url: document for document in (CLAUDE_CODE, CODEX, VS_CODE)})
"""What hosts that run on the owner's machine publish, by address."""
FIRST_QUESTIONS: Mapping[str, str] = {
    "mail": "Which mails of the last month am I still expected to answer?",
    "bank": "What did I spend most on in the last three months?",
    "calendar": "What did I do in the same week a year ago?",
    "google": "Where was I in the summer of last year?",
    "apple_health": "How did my steps and my sleep change over the year?",
}
FIRST_OF_ALL = "Which of my personal data can you see, and for which dates?"


def first_question(connector_keys: Iterable[str]) -> str:
    """What an agent may be asked first, by the sources that there are."""
    keys = set(connector_keys)
    return next(
        (question for key, question in FIRST_QUESTIONS.items() if key in keys), FIRST_OF_ALL
    )
