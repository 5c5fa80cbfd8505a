"""How each common host comes to a server: what it registers, or is known by, and where it is sent.

Rule: nobody is asked (`prompt=none`), and what is registered says that it only checks.
Source: docs/contract/authorization-server.md 2, 3, 5; the hosts' own documentation of their
redirect addresses.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import cast
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from pdpp_mcp_server.rs_client.discovery import (
    SERVER_PATH,
    JsonResponse,
    Provider,
    ProviderExchange,
)
from personal_server.cli.findings import (
    HINT,
    Finding,
    good,
    wrong,
)
from personal_server.consent.client_registration import CHECKING
from personal_server.domain import hosts
from personal_server.domain.hosts import PublishedDocument

ASKS = "interaction_required"
CHALLENGE = urlsafe_b64encode(hashlib.sha256(b"doctor").digest()).rstrip(b"=").decode()


class Host(msgspec.Struct, frozen=True):
    """How one host comes: the redirect it registers, the one it then uses, where it runs.

    Shapes: `only_port` is the one that it reaches, where it reaches no other; `document` is what it
        is known by where the server takes documents; it registers where there is none.
    """

    name: str
    registers: str
    uses: str
    in_cloud: bool = False
    only_port: int | None = None
    document: PublishedDocument | None = None


HOSTS = (
    Host(
        "Claude (web, desktop)",
        "https://claude.ai/api/mcp/auth_callback",
        "https://claude.ai/api/mcp/auth_callback",
        in_cloud=True,
        only_port=443,
    ),
    Host(
        "ChatGPT",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        in_cloud=True,
    ),
    Host(
        "Claude Code",
        "http://localhost:50123/callback",
        "http://localhost:50124/callback",
        document=hosts.CLAUDE_CODE,
    ),
    Host(
        "Codex",
        "http://127.0.0.1:50123/callback",
        "http://127.0.0.1:50124/callback",
        document=hosts.CODEX,
    ),
    Host(
        "VS Code",
        "http://127.0.0.1:33418/",
        "http://127.0.0.1:33418/",
        document=hosts.VS_CODE,
    ),
    Host(
        "Cursor",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ),
)


def check_host(
    exchange: ProviderExchange, provider: Provider, host: Host, *, is_open: bool
) -> Iterator[Finding]:
    """Say who asks as this host does, then open the authorization page as it does."""
    document = host.document
    metadata = exchange.get(provider.issuer + SERVER_PATH)
    if document is not None and takes_documents(metadata):
        page = exchange.get(_page(provider, host, document.url))
        if _would_ask(page):
            yield good(
                "host",
                host.name,
                ("the server knows this host by its document; the host reaches the consent page"),
            )
            return
        where = urlsplit(document.url).hostname
        yield wrong(
            "host",
            host.name,
            (
                f"the server refused the document of this host: {page.status} {page.error or ''}"
            ).rstrip(),
            (
                f"Let the server reach {where} over https, or update the server, which "
                "contains a copy of the document. With PDPP_CIMD=off hosts register "
                "instead."
            ),
        )
        return
    if provider.registration is None:
        yield Finding(
            "host",
            host.name,
            HINT,
            "registration of clients is off",
            "Register this host by hand, or set PDPP_DCR=on.",
        )
        return
    reply = exchange.post_json(provider.registration, _registration(host))
    client_id = reply.text("client_id")
    if reply.status != 201 or client_id is None:
        yield wrong(
            "host",
            host.name,
            f"registration failed with status {reply.status} {reply.error or ''}".rstrip(),
            "Hosts of this kind cannot connect until registration answers with status 201.",
        )
        return
    page = exchange.get(_page(provider, host, client_id))
    if not _would_ask(page):
        yield wrong(
            "host",
            host.name,
            f"the authorization page answered with status {page.status}",
            (
                "The address at which apps ask for access must show your consent page; check "
                "the proxies between host and server."
            ),
        )
        return
    if host.in_cloud and not is_open:
        yield Finding(
            "host",
            host.name,
            HINT,
            "this host would work, but runs on the internet and cannot reach this address",
            "Put the server behind a public https address (docs/deploy.md).",
        )
        return
    port = urlsplit(provider.origin).port or 443
    if host.only_port not in (None, port):
        yield wrong(
            "host",
            host.name,
            f"this host reaches port {host.only_port} only, and the address names port {port}",
            f"Give the server an https address at port {host.only_port} (docs/deploy.md).",
            "port_unreachable",
        )
        return
    yield good("host", host.name, "the host can register, and reaches the consent page")


def _registration(host: Host) -> dict[str, object]:
    return {
        "client_name": f"pdpp doctor ({host.name})",
        "redirect_uris": [host.registers],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "software_id": CHECKING,
    }


def _page(provider: Provider, host: Host, client_id: str) -> str:
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": host.uses,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "doctor",
        "scope": "pdpp:read offline_access",
        "prompt": "none",
        "resource": f"{provider.origin}/mcp",
    }
    return f"{provider.authorization}?{urlencode(parameters)}"


def _would_ask(page: JsonResponse) -> bool:
    """Whether an answer refuses for nothing but that the owner was not to be asked."""
    sent_back = parse_qs(urlsplit(page.headers.get("location", "")).query)
    return ASKS in (page.error, *sent_back.get("error", ()))


def takes_documents(metadata: JsonResponse) -> bool:
    """What hosts look for before they use their document."""
    methods = cast("list[object]", metadata.body.get("token_endpoint_auth_methods_supported") or [])
    return metadata.body.get("client_id_metadata_document_supported") is True and "none" in methods
