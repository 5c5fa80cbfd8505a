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

import hashlib
import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import cyclopts
from cyclopts import Parameter

from pdpp_mcp_server.commands.connect import CommandContext, show_offer
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console
from pdpp_mcp_server.rs_client.authorization_flows import (
    PollWait,
    ask_for_device,
    poll_device,
    register,
    revoke,
)
from pdpp_mcp_server.rs_client.credentials import CredentialError, normalize_provider_url
from pdpp_mcp_server.rs_client.discovery import (
    RESOURCE_PATH,
    SERVER_PATH,
    JsonResponse,
    Provider,
    ProviderExchange,
    discover,
)
from pdpp_mcp_server.rs_client.json_values import as_object
from personal_server.cli.data_findings import data_findings
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
from personal_server.consent.client_registration import CHECKING
from personal_server.domain import hosts
from personal_server.domain.hosts import PublishedDocument

NAME = "pdpp doctor"
PROTOCOL = "2025-11-25"
TOOLS = ("schema", "query_records", "aggregate", "search", "fetch", "read_record_field")
BROWSER_HOST = "http://localhost:6274"
ASKS = "interaction_required"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
CHALLENGE = urlsafe_b64encode(hashlib.sha256(b"doctor").digest()).rstrip(b"=").decode()


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


@dataclass(frozen=True, slots=True)
class Host:
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
        check = partial(_check_with_access, exchange, origin, waiting, open_browser)
        yield from _gather("access", "Access", check)
    else:
        yield Finding(
            "access",
            "Token, tools, refresh, revocation",
            SKIPPED,
            "not tested, because the test needs your decision",
            (
                "Run this command with --authorize and allow something; the test ends "
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
    yield from _gather("browser_hosts", "Hosts in a browser", lambda: _check_cors(exchange, origin))
    yield from _gather("large_requests", "Large requests", lambda: _check_large(exchange, origin))
    try:
        provider = discover(exchange, origin)
    except CredentialError:
        return  # found above
    is_open = for_everybody and urlsplit(provider.origin).hostname not in LOOPBACK_HOSTS
    for host in HOSTS:
        check = partial(_check_host, exchange, provider, host, is_open=is_open)
        yield from _gather("host", host.name, check)


def _check_challenge(exchange: ProviderExchange, origin: str) -> Iterator[Finding]:
    reply = exchange.ask("POST", f"{origin}/mcp", body={})
    if reply.status == 421:
        reason = str(as_object(reply.body.get("error")).get("reason"))
        fault = reason if reason in MISDIRECTED else "unknown_host"
        said, mend = MISDIRECTED[fault]
        yield wrong("sign_in_challenge", "Sign-in challenge", f"{said} (421)", mend, fault)
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
        "Some hosts would use that answer; let the proxy pass on the server's 404.",
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
    if _takes_documents(metadata):
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


def _check_host(
    exchange: ProviderExchange, provider: Provider, host: Host, *, is_open: bool
) -> Iterator[Finding]:
    """Say who asks as this host does, then open the authorization page as it does."""
    document = host.document
    metadata = exchange.get(provider.issuer + SERVER_PATH)
    if document is not None and _takes_documents(metadata):
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
                "The authorization page must lead to the consent page; check the "
                "proxies between host and server."
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


def _takes_documents(metadata: JsonResponse) -> bool:
    """What hosts look for before they use their document."""
    methods = cast("list[object]", metadata.body.get("token_endpoint_auth_methods_supported") or [])
    return metadata.body.get("client_id_metadata_document_supported") is True and "none" in methods


def _check_with_access(
    exchange: ProviderExchange,
    origin: str,
    waiting: PollWait,
    open_browser: Callable[[str], object] | None,
) -> Iterator[Finding]:
    provider = discover(exchange, origin)
    client_id = register(exchange, provider, NAME)
    offer = ask_for_device(exchange, provider, client_id, None)
    show_offer(offer, open_browser)
    tokens = poll_device(exchange, provider, client_id, offer, waiting)
    yield good("access", "Access", "granted")
    yield from _check_access(exchange, provider, client_id, tokens)


def _check_access(
    exchange: ProviderExchange, provider: Provider, client_id: str, tokens: Mapping[str, object]
) -> Iterator[Finding]:
    """Everything with a token, in the order in which hosts do it."""
    token = str(tokens["access_token"])
    yield from _check_tools(exchange, provider, token)
    reply = exchange.ask(
        "GET", f"{provider.origin}/mcp", headers={"Authorization": f"Bearer {token}"}
    )
    yield judged(
        "mcp_get",
        "Stream probe (GET /mcp)",
        reply.status == 405,
        f"answered {reply.status}, not 405",
        "A proxy answers instead of the server; let the proxy pass every method.",
    )
    renewed = yield from _check_refresh(exchange, provider, client_id, tokens)
    last = str(renewed.get("refresh_token") or renewed["access_token"])
    revoke(exchange, provider, client_id, last)
    yield _after_revocation(exchange, provider, str(renewed["access_token"]))


def _check_tools(exchange: ProviderExchange, provider: Provider, token: str) -> Iterator[Finding]:
    start = {
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "pdpp-doctor", "version": "1"},
    }
    reply = _call(exchange, provider, token, "initialize", start)
    yield judged(
        "mcp_initialize",
        "MCP initialize",
        reply.ok and "result" in reply.body,
        f"answered {reply.status}",
        "Look for this request id in the server's log.",
    )
    listed = _call(exchange, provider, token, "tools/list", {})
    names = _tool_names(listed)
    yield judged(
        "mcp_tools",
        "MCP tools/list",
        names == TOOLS,
        f"status {listed.status} with {len(names)} tools instead of the six",
        (
            "Update the server, and reconnect the hosts afterwards, because they cache "
            "the list of tools."
        ),
    )


def _check_refresh(
    exchange: ProviderExchange, provider: Provider, client_id: str, tokens: Mapping[str, object]
) -> Generator[Finding, None, Mapping[str, object]]:
    refresh = tokens.get("refresh_token")
    if not isinstance(refresh, str):
        yield wrong(
            "token_refresh",
            "Token refresh",
            "the server gave no refresh token",
            "Choose ongoing access instead of one-time access when you allow the test.",
        )
        return tokens
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client_id}
    reply = exchange.post_form(provider.token, form)
    if not reply.ok or reply.text("access_token") is None:
        yield wrong(
            "token_refresh",
            "Token refresh",
            f"answered {reply.status} {reply.error}",
            "Look into the server's log.",
        )
        return tokens
    yield good("token_refresh", "Token refresh", "a new pair of tokens, once")
    return reply.body


def _after_revocation(exchange: ProviderExchange, provider: Provider, token: str) -> Finding:
    reply = _call(exchange, provider, token, "tools/list", {})
    return judged(
        "revoked_token",
        "Revoked token",
        reply.status == 401 and "www-authenticate" in reply.headers,
        f"status {reply.status}, so hosts would not ask for consent again",
        (
            "The status must be 401 with the header WWW-Authenticate; check the proxy "
            "in front of the server."
        ),
    )


def _call(
    exchange: ProviderExchange, provider: Provider, token: str, method: str, params: object
) -> JsonResponse:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": PROTOCOL,
    }
    if method == "initialize":
        del headers["MCP-Protocol-Version"]
    return exchange.ask("POST", f"{provider.origin}/mcp", headers=headers, body=body)


def _tool_names(reply: JsonResponse) -> tuple[str, ...]:
    result = reply.body.get("result")
    tools = cast("dict[str, object]", result).get("tools") if isinstance(result, dict) else None
    listed: list[dict[str, object]] = json.loads(json.dumps(tools or []))
    return tuple(str(tool.get("name")) for tool in listed)


def _gather(code: str, name: str, check: Check) -> list[Finding]:
    """The findings of a check; a server that fails on the way is one of them."""
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except CredentialError as error:
        findings.append(wrong(code, name, error.message, error.next_step, error.code))
    return findings


doctor = doctor_command(CommandContext())
