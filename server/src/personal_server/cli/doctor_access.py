"""What an app meets once it has access: tools, a stream, a new pair of tokens, the end.

Rule: the access that `pdpp doctor` asks its owner for is given back at the end.
Source: docs/contract/authorization-server.md 9, 10.2, 12; docs/contract/mcp-adapter.md 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import cast

from pdpp_mcp_server.commands.connect import show_offer
from pdpp_mcp_server.rs_client.authorization_flows import (
    PollWait,
    ask_for_device,
    poll_device,
    register,
    revoke,
)
from pdpp_mcp_server.rs_client.discovery import (
    JsonResponse,
    Provider,
    ProviderExchange,
    discover,
)
from personal_server.cli.findings import (
    Finding,
    good,
    judged,
    wrong,
)

NAME = "pdpp doctor"
PROTOCOL = "2025-11-25"
TOOLS = ("schema", "query_records", "aggregate", "search", "fetch", "read_record_field")


def check_with_access(
    exchange: ProviderExchange,
    origin: str,
    waiting: PollWait,
    open_browser: Callable[[str], object] | None,
) -> Iterator[Finding]:
    """Ask the owner for access, as a device does, and try everything with it."""
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
