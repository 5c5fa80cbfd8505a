"""The SDK of the protocol behind `/mcp`: one session manager for each origin.

Rule: only `library_sessions.py` imports this module, with the first request that needs the SDK.
Source: docs/contract/mcp-adapter.md 2.2, 11.1, 15.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from msgspec.structs import replace
from starlette.requests import Request

from pdpp_mcp_server.listeners import SUBSCRIPTION, Listening, OfferedSubscriptions, OpenPort
from pdpp_mcp_server.rs_client.port import RsPort
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.server_offer import personal_data
from pdpp_mcp_server.tool_runs import ClientRequest
from personal_server.hosted_mcp.admission import HostedCredential
from personal_server.hosted_mcp.library_sessions import STATE_KEY, SessionsDeclaration

SERVER_NAME = "pdpp-personal-server"


def listening_of(declared: SessionsDeclaration) -> Listening | None:
    """What answers listeners, with each token judged anew for each look; None without a bell."""
    if declared.bell is None:
        return None

    def source_of(request: Request) -> tuple[str, OpenPort]:
        credential: HostedCredential = request.scope["state"][STATE_KEY]
        looks = count(1)

        async def open_again() -> RsPort:
            admitted = await declared.admission.judge_again(credential.token)
            request_id = f"{credential.request_id}.{next(looks)}"
            return declared.open_port(
                replace(credential, tool=SUBSCRIPTION, request_id=request_id, state=admitted.state)
            )

        # an access has a new token with each renewal, and those of before last for an hour
        return credential.grant_id or credential.token, open_again

    return Listening(source_of, declared.bell.pace)


def session_managers(
    declared: SessionsDeclaration, listening: Listening | None
) -> Mapping[str, StreamableHTTPSessionManager]:
    """The managers by origin; each is entered once, by the host."""

    def callers(request: Request) -> ClientRequest:
        credential: HostedCredential = request.scope["state"][STATE_KEY]
        return declared.caller_of(credential, request.headers.get("user-agent"))

    def manager(origin: str) -> StreamableHTTPSessionManager:
        server = build_server(
            callers,
            name=SERVER_NAME,
            version=declared.version,
            icon_url=f"{origin}/icon.svg",
            settings=declared.settings,
            offer=declared.offer or personal_data,
            counts=declared.counts,
            subscriptions=OfferedSubscriptions(listening),
        )
        return StreamableHTTPSessionManager(
            app=server,
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=declared.body_bytes + 1,
        )

    return {origin: manager(origin) for origin in declared.origins}
