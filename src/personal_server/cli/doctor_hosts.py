"""What the common hosts do before a person is asked: register, and open the authorization page.

Source: AS contract 3, 5; the hosts' own documentation of their redirect addresses.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode, urlsplit

from personal_server.cli.doctor_findings import HINT, Finding, good, judged, wrong
from personal_server.rs_client.discovery import Exchange, Provider, Reply

CHALLENGE = urlsafe_b64encode(hashlib.sha256(b"doctor").digest()).rstrip(b"=").decode()
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Host:
    """How one host comes: the redirect it registers, the one it then uses, where it runs."""

    name: str
    registers: str
    uses: str
    in_cloud: bool = False


HOSTS = (
    Host(
        "Claude (web, desktop)",
        "https://claude.ai/api/mcp/auth_callback",
        "https://claude.ai/api/mcp/auth_callback",
        in_cloud=True,
    ),
    Host(
        "ChatGPT",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        in_cloud=True,
    ),
    Host("Claude Code", "http://localhost:50123/callback", "http://localhost:50124/callback"),
    Host("Codex", "http://127.0.0.1:50123/callback", "http://127.0.0.1:50124/callback"),
    Host("VS Code", "http://127.0.0.1:33418/", "http://127.0.0.1:33418/"),
    Host(
        "Cursor",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ),
)


def check_host(exchange: Exchange, provider: Provider, host: Host) -> Iterator[Finding]:
    """Register as this host does, then open the authorization page as it does."""
    if provider.registration is None:
        yield Finding(
            host.name, HINT, "registration is off", "Register it by hand, or set PDPP_DCR=on."
        )
        return
    reply = exchange.post_json(provider.registration, _registration(host))
    client_id = reply.text("client_id")
    if reply.status != 201 or client_id is None:
        yield wrong(
            host.name,
            f"registration answered {reply.status} {reply.error or ''}".rstrip(),
            "Hosts of this kind cannot connect until registration answers 201.",
        )
        return
    page = exchange.get(_page(provider, host, client_id))
    if not leads_to_consent(page):
        yield wrong(
            host.name,
            f"the authorization page answered {page.status}",
            "It must lead to the consent page; check what stands between host and server.",
        )
        return
    if host.in_cloud and urlsplit(provider.origin).hostname in LOOPBACK_HOSTS:
        yield Finding(
            host.name,
            HINT,
            "would work, but runs elsewhere and cannot reach this address",
            "Put the server behind a public https address (docs/deploy.md).",
        )
        return
    yield good(host.name, "registers, and is led to the consent page")


def check_documents(metadata: Reply) -> Iterator[Finding]:
    """What hosts with client metadata documents look for before they use one."""
    methods = cast("list[object]", metadata.body.get("token_endpoint_auth_methods_supported") or [])
    yield judged(
        "Client metadata documents",
        metadata.body.get("client_id_metadata_document_supported") is True
        and {"none", "private_key_jwt"} <= set(map(str, methods)),
        "not offered together with `none` and `private_key_jwt`",
        "Hosts then register instead; set PDPP_CIMD=on to spare them that.",
    )


def leads_to_consent(page: Reply) -> bool:
    """Whether an answer sends the browser to a consent page."""
    return page.status == 303 and "/consent/" in page.headers.get("location", "")


def _registration(host: Host) -> dict[str, object]:
    return {
        "client_name": f"pdpp doctor ({host.name})",
        "redirect_uris": [host.registers],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def _page(provider: Provider, host: Host, client_id: str) -> str:
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": host.uses,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "doctor",
        "resource": f"{provider.origin}/mcp",
    }
    return f"{provider.authorization}?{urlencode(parameters)}"
