"""`pdpp doctor URL`: does what each common host does, and says what is wrong and how to mend it.

Without an address it asks the server of this machine what needs care (`health_findings`), with
`--data` it looks at the data on it (`data_findings`).

Rule: one line a check; nothing is left behind: what a host would ask is asked without the owner
(`prompt=none`), what is registered says that it only checks and is gone with its answer, and the
doctor's own access is given back.
Source: docs/contract/authorization-server.md 1, 2, 3, 5, 9, 10.2, 12; docs/contract/mcp-adapter.md
2.2; the hosts' own documentation of their redirect addresses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

import cyclopts
from cyclopts import Parameter
from msgspec.structs import replace

from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console
from pdpp_mcp_server.rs_client.authorization_flows import (
    PollWait,
)
from pdpp_mcp_server.rs_client.credentials import CredentialError, normalize_provider_url
from pdpp_mcp_server.rs_client.discovery import (
    RESOURCE_PATH,
    SERVER_PATH,
    JsonResponse,
    ProviderExchange,
    discover,
)
from pdpp_mcp_server.rs_client.json_values import as_object
from personal_server.cli.data_findings import data_findings
from personal_server.cli.doctor_access import check_with_access
from personal_server.cli.doctor_hosts import HOSTS, check_host, takes_documents
from personal_server.cli.findings import (
    HINT,
    SKIPPED,
    WRONG,
    Finding,
    good,
    judged,
    print_finding,
    wrong,
)
from personal_server.cli.health_findings import REACHABLE, health_findings, server_findings
from personal_server.cli.kept_data import open_store
from personal_server.cli.security import security_findings
from personal_server.cli.server_settings import settings_or_exit

BROWSER_HOST = "http://localhost:6274"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


MISDIRECTED: Mapping[str, tuple[str, str]] = {
    "unknown_host": (
        "the server does not answer requests for this host name",
        (
            "Set PDPP_PUBLIC_URL to exactly the address that you give to hosts, and "
            "let the proxy pass the Host header unchanged."
        ),
    ),
    "port_missing": (
        "the Host header reaches the server without the port",
        "Let the proxy pass the port; with nginx: proxy_set_header Host $http_host;",
    ),
    "untrusted_proxy": (
        "the server does not trust the proxy",
        "Add the proxy's address to PDPP_TRUSTED_PROXIES.",
    ),
    "not_https": (
        "the server cannot see that the request came over https",
        "Let the proxy send X-Forwarded-Proto: https.",
    ),
}
LARGE_BODY_BYTES = 2_000_000
Check = Callable[[], Iterator[Finding]]


def doctor_command(around: CommandContext) -> Callable[..., int]:
    """The command `pdpp doctor`."""

    def doctor(
        url: str | None = None,
        *,
        data: Annotated[bool, Parameter(negative="")] = False,
        repair: Annotated[bool, Parameter(negative="")] = False,
        security: Annotated[bool, Parameter(negative="")] = False,
        authorize: Annotated[bool | None, Parameter(negative="--no-authorize")] = None,
        timeout: Annotated[float, Parameter(validator=cyclopts.validators.Number(gt=0))] = 300,
        browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True,
        json: bool = False,
    ) -> int:
        """Check that MCP hosts can connect to a server, or that the data on this machine is sound.

        Without options, this lists what needs attention on this machine's server.

        Parameters
        ----------
        url
            The server's address as you give it to hosts. The check tries every step of a host.
        data
            Check the data directory instead: pages, records, word index, change feed, files. The
            server may keep running.
        repair
            With --data: rebuild indexes from the records, and remove unused files.
        security
            Check instead who could get in: files, encryption, sign-in, access, proxies, backups,
            packages.
        authorize
            Also ask you for access, to test tokens, tools, refresh and revocation. Default: in a
            terminal.
        timeout
            Seconds to wait for the decision.
        browser
            Open the browser for the decision.
        json
            Print JSON.
        """
        if [url is not None, data, security].count(True) > 1 or (repair and not data):
            raise CommandError(
                "usage",
                "Use only one of: an address, --data (with --repair), --security.",
            )
        if security:
            found = security_findings(settings_or_exit(), open_store)
        elif data:
            found = data_findings(settings_or_exit(), repair=repair)
        elif url is None:
            found = server_findings(around.exchange(), settings_or_exit())
        else:
            origin, exchange = normalize_provider_url(url), around.exchange()
            with_access = sys.stdin.isatty() and not json if authorize is None else authorize
            waiting = replace(around.waiting, timeout=timeout)
            open_browser = around.open_browser if browser else None
            found = _findings(exchange, origin, waiting, open_browser, with_access=with_access)
        findings: list[Finding] = []
        for finding in found:
            findings.append(finding)
            if not json:
                print_finding(finding, console())
        if json:
            print_json([finding.as_json() for finding in findings])
        return 69 if any(finding.state == WRONG for finding in findings) else 0

    return doctor


def _findings(
    exchange: ProviderExchange,
    origin: str,
    waiting: PollWait,
    open_browser: Callable[[str], object] | None,
    *,
    with_access: bool,
) -> Iterator[Finding]:
    """Everything in its order; nothing more is tried where nobody answers."""
    reached = _gather(*REACHABLE, lambda: health_findings(exchange, origin))
    yield from reached
    if any(finding.code == REACHABLE[0] and finding.state == WRONG for finding in reached):
        return
    yield from _without_access(exchange, origin)
    if with_access:
        check = partial(check_with_access, exchange, origin, waiting, open_browser)
        yield from _gather("access", "Access", check)
    else:
        yield Finding(
            "access",
            "Token, tools, refresh, revocation",
            SKIPPED,
            "not tested, because the test needs your decision",
            (
                "Run this command with --authorize and allow any records; the test ends "
                "the access afterwards."
            ),
        )


def host_findings(
    exchange: ProviderExchange, origin: str, *, for_everybody: bool
) -> Iterator[Finding]:
    """What needs no decision of the owner: whether somebody answers, and what each host meets.

    Shapes: `for_everybody`: the internet reaches the address, as far as this machine knows.
    """
    reached = _gather(*REACHABLE, lambda: health_findings(exchange, origin))
    yield from reached
    if all(finding.state != WRONG or finding.code != REACHABLE[0] for finding in reached):
        yield from _without_access(exchange, origin, for_everybody=for_everybody)


def _without_access(
    exchange: ProviderExchange, origin: str, *, for_everybody: bool = True
) -> Iterator[Finding]:
    yield from _gather(
        "sign_in_challenge", "Sign-in challenge", lambda: _check_challenge(exchange, origin)
    )
    yield from _gather(
        "mcp_metadata", "OAuth metadata of /mcp", lambda: _check_mcp_metadata(exchange, origin)
    )
    yield from _gather(
        "oauth_metadata", "OAuth metadata", lambda: _check_metadata(exchange, origin)
    )
    yield from _gather(
        "browser_hosts", "AI apps in a browser", lambda: _check_cors(exchange, origin)
    )
    yield from _gather("large_requests", "Large requests", lambda: _check_large(exchange, origin))
    try:
        provider = discover(exchange, origin)
    except CredentialError:
        return  # found above
    is_open = for_everybody and urlsplit(provider.origin).hostname not in LOOPBACK_HOSTS
    for host in HOSTS:
        check = partial(check_host, exchange, provider, host, is_open=is_open)
        yield from _gather("host", host.name, check)


def _check_challenge(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    reply = exchange.ask("POST", f"{origin}/mcp", body={})
    if reply.status == 421:
        reason = str(as_object(reply.body.get("error")).get("reason"))
        fault = reason if reason in MISDIRECTED else "unknown_host"
        sentence, mend = MISDIRECTED[fault]
        yield wrong("sign_in_challenge", "Sign-in challenge", f"{sentence} (421)", mend, fault)
        return
    challenge = reply.headers.get("www-authenticate", "")
    metadata = f"{origin}{RESOURCE_PATH}/mcp"
    yield judged(
        "sign_in_challenge",
        "Sign-in challenge (POST /mcp without token)",
        reply.status == 401 and f'resource_metadata="{metadata}"' in challenge,
        f"status {reply.status}, but the WWW-Authenticate header does not name {metadata}",
        "Let the proxy pass Host (or trusted X-Forwarded-*) and WWW-Authenticate unchanged.",
    )


def _check_mcp_metadata(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    reply = exchange.get(f"{origin}{RESOURCE_PATH}/mcp")
    yield judged(
        "mcp_metadata",
        "OAuth metadata of /mcp",
        reply.ok and reply.text("resource") == f"{origin}/mcp",
        f"status {reply.status}, but the metadata gives another address than {origin}/mcp",
        (
            "Hosts compare addresses byte for byte: set PDPP_PUBLIC_URL to the address "
            "that you give them."
        ),
    )
    yield judged(
        "openid_metadata",
        "OpenID metadata",
        exchange.get(f"{origin}/.well-known/openid-configuration").status == 404,
        "something other than this server answers at /.well-known/openid-configuration",
        "Some AI apps would trust that answer; let the proxy pass on the server's 404.",
    )


def _check_metadata(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    provider = discover(exchange, origin)
    yield good("oauth_metadata", "OAuth metadata", f"issuer {provider.issuer}")
    metadata = exchange.get(provider.issuer + SERVER_PATH)
    yield judged(
        "pkce",
        "PKCE",
        metadata.body.get("code_challenge_methods_supported") == ["S256"],
        "the server does not advertise S256 (PKCE)",
        "Hosts refuse to connect without S256; update the server.",
    )
    yield from _check_documents(metadata)


def _check_documents(metadata: JsonResponse) -> Iterator[Finding]:
    """What hosts with client metadata documents look for before they use one."""
    check = ("client_documents", "Client metadata documents")
    if takes_documents(metadata):
        yield good(*check)
    else:
        yield Finding(
            *check,
            HINT,
            "apps cannot name a web page that describes them, so they register",
            (
                "To read such pages (client metadata documents), set PDPP_CIMD=on and let the "
                "server reach the internet."
            ),
        )


def _check_cors(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    headers = {
        "Origin": BROWSER_HOST,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    token = exchange.ask("OPTIONS", f"{origin}/oauth/token", headers=headers)
    mcp = exchange.ask("OPTIONS", f"{origin}/mcp", headers=headers)
    if _allows(token) and _allows(mcp):
        yield good("browser_hosts", "Browser hosts (MCP Inspector)")
    else:
        yield Finding(
            "browser_hosts",
            "Browser hosts (MCP Inspector)",
            HINT,
            "a web page may not call this server (CORS preflight)",
            "Only apps that run in a web page need this; let the proxy pass OPTIONS.",
        )


def _check_large(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    """Whether a proxy refuses what the server would take; the server itself asks for a token."""
    try:
        reply = exchange.ask("POST", f"{origin}/v1/ingest/doctor", body="x" * LARGE_BODY_BYTES)
    except CredentialError:
        return  # it answered before it had read everything, as it may
    yield judged(
        "large_requests",
        "Large requests",
        reply.status != 413 or reply.error is not None,
        "a proxy before the server refuses requests of 2 MB (413)",
        "Raise the limit of the proxy; with nginx: client_max_body_size 0;",
    )


def _allows(reply: JsonResponse) -> bool:
    return reply.ok and "access-control-allow-origin" in reply.headers


def _gather(code: str, name: str, check: Check) -> list[Finding]:
    """The findings of a check; a server that fails on the way is one of them."""
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except CredentialError as error:
        findings.append(wrong(code, name, error.message, error.next_step, error.code))
    return findings


doctor = doctor_command(CommandContext())
