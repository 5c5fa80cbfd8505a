"""What a host does once it has a token: list the tools, refresh, and meet a revoked token.

Rule: the doctor's own access is given back at the end.  Source: AS contract 9, 10.2, 12; MCP
adapter contract 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from typing import cast

from personal_server.cli.doctor_findings import Finding, good, judged, wrong
from personal_server.rs_client.authorization_flows import revoke
from personal_server.rs_client.discovery import Exchange, Provider, Reply

TOOLS = ("schema", "query_records", "aggregate", "search", "fetch", "read_record_field")
PROTOCOL = "2025-11-25"


def check_access(
    exchange: Exchange, provider: Provider, client_id: str, tokens: Mapping[str, object]
) -> Iterator[Finding]:
    """Everything with a token, in the order in which hosts do it."""
    token = str(tokens["access_token"])
    yield from _check_tools(exchange, provider, token)
    reply = exchange.ask(
        "GET", f"{provider.origin}/mcp", headers={"Authorization": f"Bearer {token}"}
    )
    yield judged(
        "Stream probe (GET /mcp)",
        reply.status == 405,
        f"answered {reply.status}, not 405",
        "A proxy answers in the server's place; let it pass every method.",
    )
    renewed = yield from _check_refresh(exchange, provider, client_id, tokens)
    spent = str(renewed.get("refresh_token") or renewed["access_token"])
    revoke(exchange, provider, client_id, spent)
    yield _after_revocation(exchange, provider, str(renewed["access_token"]))


def _check_tools(exchange: Exchange, provider: Provider, token: str) -> Iterator[Finding]:
    start = {
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "pdpp-doctor", "version": "1"},
    }
    reply = _call(exchange, provider, token, "initialize", start)
    yield judged(
        "MCP initialize",
        reply.ok and "result" in reply.body,
        f"answered {reply.status}",
        "See the server's log for this request id.",
    )
    listed = _call(exchange, provider, token, "tools/list", {})
    names = _tool_names(listed)
    yield judged(
        "MCP tools/list",
        names == TOOLS,
        f"answered {listed.status} with {len(names)} tools, not the six",
        "Update the server; hosts cache this list, so reconnect them afterwards.",
    )


def _check_refresh(
    exchange: Exchange, provider: Provider, client_id: str, tokens: Mapping[str, object]
) -> Generator[Finding, None, Mapping[str, object]]:
    refresh = tokens.get("refresh_token")
    if not isinstance(refresh, str):
        yield wrong("Refresh", "no refresh token was given", "Allow standing access, not once.")
        return tokens
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client_id}
    reply = exchange.post_form(provider.token, form)
    if not reply.ok or reply.text("access_token") is None:
        yield wrong("Refresh", f"answered {reply.status} {reply.error}", "See the server's log.")
        return tokens
    yield good("Refresh", "a new pair, once")
    return reply.body


def _after_revocation(exchange: Exchange, provider: Provider, token: str) -> Finding:
    reply = _call(exchange, provider, token, "tools/list", {})
    return judged(
        "Revoked token",
        reply.status == 401 and "www-authenticate" in reply.headers,
        f"answered {reply.status}, so hosts would not ask for consent again",
        "It must be 401 with WWW-Authenticate; check what stands in front of the server.",
    )


def _call(exchange: Exchange, provider: Provider, token: str, method: str, params: object) -> Reply:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": PROTOCOL,
    }
    if method == "initialize":
        del headers["MCP-Protocol-Version"]
    return exchange.ask("POST", f"{provider.origin}/mcp", headers=headers, body=body)


def _tool_names(reply: Reply) -> tuple[str, ...]:
    result = reply.body.get("result")
    tools = cast("dict[str, object]", result).get("tools") if isinstance(result, dict) else None
    listed: list[dict[str, object]] = json.loads(json.dumps(tools or []))
    return tuple(str(tool.get("name")) for tool in listed)
