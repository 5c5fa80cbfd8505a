"""`pdpp doctor URL`: does what each common host does, and says what is wrong and how to mend it.

Rule: one line a check; nothing is changed but a registration per host, and the doctor's own access
is given back.  Source: AS contract 1, 2, 12.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from personal_server.cli.connecting import Surroundings
from personal_server.cli.connection import show_offer
from personal_server.cli.doctor_access import check_access
from personal_server.cli.doctor_findings import (
    HINT,
    SKIPPED,
    WRONG,
    Finding,
    gather,
    good,
    judged,
    print_finding,
)
from personal_server.cli.doctor_hosts import HOSTS, check_documents, check_host
from personal_server.cli.exits import print_json
from personal_server.cli.tables import console
from personal_server.rs_client.authorization_flows import (
    Waiting,
    ask_for_device,
    poll_device,
    register,
)
from personal_server.rs_client.credentials import CredentialError, normalize_provider_url
from personal_server.rs_client.discovery import (
    RESOURCE_PATH,
    SERVER_PATH,
    Exchange,
    Provider,
    Reply,
    discover,
)

BROWSER_HOST = "http://localhost:6274"
NAME = "pdpp doctor"


def doctor_command(around: Surroundings) -> Callable[..., int]:
    """The command `pdpp doctor`."""

    def doctor(
        url: str,
        *,
        authorize: Annotated[bool | None, Parameter(negative="--no-authorize")] = None,
        timeout: Annotated[float, Parameter(validator=cyclopts.validators.Number(gt=0))] = 300,
        browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True,
        json: bool = False,
    ) -> int:
        """Check that hosts can connect to a server, step by step as they do it.

        Parameters
        ----------
        url
            The server's address, as hosts are given it.
        authorize
            Also ask for access, to try tokens, tools, refresh and revocation. Default: if somebody
            is at the terminal.
        timeout
            Seconds to wait for the decision.
        browser
            Open the browser for the decision.
        json
            Print JSON.
        """
        origin, exchange = normalize_provider_url(url), around.exchange()
        asked = sys.stdin.isatty() and not json if authorize is None else authorize
        waiting = replace(around.waiting, timeout=timeout)
        open_browser = around.open_browser if browser else None
        findings: list[Finding] = []
        for finding in _findings(exchange, origin, waiting, open_browser, asked=asked):
            findings.append(finding)
            if not json:
                print_finding(finding, console())
        if json:
            print_json([finding.as_json() for finding in findings])
        return 69 if any(finding.state == WRONG for finding in findings) else 0

    return doctor


def _findings(
    exchange: Exchange,
    origin: str,
    waiting: Waiting,
    open_browser: Callable[[str], object] | None,
    *,
    asked: bool,
) -> Iterator[Finding]:
    """Everything in its order; nothing more is tried where nobody answers."""
    reached = gather("Reachable", lambda: _check_reachable(exchange, origin))
    yield from reached
    if all(finding.state != WRONG for finding in reached):
        yield from _without_access(exchange, origin)
        yield from _with_access(exchange, origin, waiting, open_browser, asked=asked)


def _without_access(exchange: Exchange, origin: str) -> Iterator[Finding]:
    yield from gather("Challenge", lambda: _check_challenge(exchange, origin))
    yield from gather("Metadata of /mcp", lambda: _check_mcp_metadata(exchange, origin))
    yield from gather("Metadata", lambda: _check_metadata(exchange, origin))
    yield from gather("Browser hosts", lambda: _check_cors(exchange, origin))
    try:
        provider = discover(exchange, origin)
    except CredentialError:
        return  # said above
    for host in HOSTS:
        yield from gather(host.name, lambda host=host: check_host(exchange, provider, host))


def _check_reachable(exchange: Exchange, origin: str) -> Iterator[Finding]:
    reply = exchange.get(f"{origin}/healthz")
    yield judged(
        "Reachable",
        reply.ok and reply.text("status") == "ok",
        f"/healthz answered {reply.status}; this is not a personal server",
        "Check address and port, and that `pdpp serve` runs.",
    )


def _check_challenge(exchange: Exchange, origin: str) -> Iterator[Finding]:
    reply = exchange.ask("POST", f"{origin}/mcp", body={})
    if reply.status == 421:
        yield Finding(
            "Challenge",
            WRONG,
            "the server does not answer for this host name (421)",
            "Set PDPP_PUBLIC_URL to exactly the address that hosts are given.",
        )
        return
    challenge = reply.headers.get("www-authenticate", "")
    metadata = f"{origin}{RESOURCE_PATH}/mcp"
    yield judged(
        "Challenge (POST /mcp without token)",
        reply.status == 401 and f'resource_metadata="{metadata}"' in challenge,
        f"answered {reply.status}, and its challenge does not name {metadata}",
        "Let the proxy pass Host (or trusted X-Forwarded-*) and WWW-Authenticate unchanged.",
    )


def _check_mcp_metadata(exchange: Exchange, origin: str) -> Iterator[Finding]:
    reply = exchange.get(f"{origin}{RESOURCE_PATH}/mcp")
    yield judged(
        "Metadata of /mcp",
        reply.ok and reply.text("resource") == f"{origin}/mcp",
        f"answered {reply.status}, and does not call itself {origin}/mcp",
        "Hosts compare byte for byte: set PDPP_PUBLIC_URL to the address they are given.",
    )
    yield judged(
        "Metadata of OpenID",
        exchange.get(f"{origin}/.well-known/openid-configuration").status == 404,
        "something answers at /.well-known/openid-configuration",
        "Some hosts would believe it; let the proxy pass the server's 404.",
    )


def _check_metadata(exchange: Exchange, origin: str) -> Iterator[Finding]:
    provider = discover(exchange, origin)
    yield good("Metadata", f"issuer {provider.issuer}")
    metadata = exchange.get(provider.issuer + SERVER_PATH)
    yield judged(
        "PKCE",
        metadata.body.get("code_challenge_methods_supported") == ["S256"],
        "S256 is not advertised",
        "Hosts refuse to connect; update the server.",
    )
    yield from check_documents(metadata)


def _check_cors(exchange: Exchange, origin: str) -> Iterator[Finding]:
    headers = {
        "Origin": BROWSER_HOST,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    token = exchange.ask("OPTIONS", f"{origin}/oauth/token", headers=headers)
    mcp = exchange.ask("OPTIONS", f"{origin}/mcp", headers=headers)
    if _allows(token) and _allows(mcp):
        yield good("Browser hosts (MCP Inspector)")
    else:
        yield Finding(
            "Browser hosts (MCP Inspector)",
            HINT,
            "preflight requests are not answered",
            "Only hosts inside a browser need it; let the proxy pass OPTIONS.",
        )


def _allows(reply: Reply) -> bool:
    return reply.ok and "access-control-allow-origin" in reply.headers


def _with_access(
    exchange: Exchange,
    origin: str,
    waiting: Waiting,
    open_browser: Callable[[str], object] | None,
    *,
    asked: bool,
) -> Iterator[Finding]:
    if not asked:
        yield Finding(
            "Token, tools, refresh, revocation",
            SKIPPED,
            "nobody was asked for access",
            "Run it with --authorize and allow something; it is given back at the end.",
        )
        return
    yield from gather("Access", lambda: _authorized(exchange, origin, waiting, open_browser))


def _authorized(
    exchange: Exchange,
    origin: str,
    waiting: Waiting,
    open_browser: Callable[[str], object] | None,
) -> Iterator[Finding]:
    provider: Provider = discover(exchange, origin)
    client_id = register(exchange, provider, NAME)
    offer = ask_for_device(exchange, provider, client_id, None)
    show_offer(offer, open_browser)
    tokens = poll_device(exchange, provider, client_id, offer, waiting)
    yield good("Access", "granted")
    yield from check_access(exchange, provider, client_id, tokens)
