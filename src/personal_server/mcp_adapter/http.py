"""`POST /mcp`: admission first, then the SDK, statelessly, as JSON.

Source: MCP adapter contract 2.2, 15. Nothing about authorization is kept between requests; the
origin was judged by the outermost application and comes in the scope.
"""

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from personal_server.mcp_adapter.admission import (
    Admission,
    AdmissionUnavailable,
    Admitted,
    HostedCredential,
    Refused,
    client_kinds,
)
from personal_server.mcp_adapter.calls import AdapterSettings
from personal_server.mcp_adapter.door import (
    Answer,
    Headers,
    bearer_in,
    body_bytes,
    challenge,
    is_allowed_origin,
    preflight,
    refused,
    standing_headers,
)
from personal_server.mcp_adapter.measuring import Counts, telling
from personal_server.mcp_adapter.offer import Offer, personal_data
from personal_server.mcp_adapter.server import Caller, build_server
from personal_server.rs_client.port import RsPort
from personal_server.web.requests import PDPP_VERSION

server_name = "pdpp-personal-server"
state_key = "mcp_credential"
OpenPort = Callable[[HostedCredential], RsPort]


@dataclass(frozen=True, slots=True)
class HostedApp:
    """The ASGI application behind `/mcp`.

    Shapes: managers has one session manager for each origin, and counts counts for all of them;
            run() is entered once, by the host.
    """

    managers: Mapping[str, StreamableHTTPSessionManager]
    admission: Admission
    allowed_origins: Sequence[str]
    counts: Counts

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve; a mounted application's own lifespan does not run."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(telling(self.counts))
            for manager in self.managers.values():
                await stack.enter_async_context(manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        origin, request_id = _place(scope)
        if origin not in self.managers:
            await _write(_misdirected(request_id), [], send)
            return
        browser = request.headers.get("origin")
        known = browser is None or is_allowed_origin(
            browser, tuple(self.managers), self.allowed_origins
        )
        headers = standing_headers(origin, request_id, browser if known else None)
        answer = _before_bearer(request, request_id, known=known)
        if answer is None:
            admitted = await self._admit(request, origin, request_id)
            if isinstance(admitted, HostedCredential):
                body = await _body(request, request_id)
                if isinstance(body, bytes):
                    replayed = _replayed(body, receive)
                    await self._serve(scope, replayed, _with_headers(send, headers), admitted)
                    return
                admitted = body
            answer = admitted
        await _write(answer, headers, send)

    async def _admit(
        self, request: Request, origin: str, request_id: str
    ) -> HostedCredential | Answer:
        token = bearer_in(request.headers.get("authorization"))
        if token is None:
            return challenge(origin, request_id, "authentication_error")
        try:
            verdict = await self.admission.judge(token)
        except AdmissionUnavailable:
            return refused(503, "storage_unavailable", "Tokens cannot be judged now.", request_id)
        if isinstance(verdict, Refused):
            return challenge(origin, request_id, verdict.code)
        if verdict.kind not in client_kinds:
            return refused(403, "permission_error", owner_message, request_id)
        if not verdict.reaches_mcp:
            return challenge(origin, request_id, "invalid_token")
        return _method_problem(request, request_id) or _credential(
            token, origin, request_id, verdict
        )

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, credential: HostedCredential
    ) -> None:
        inner = {**scope, "state": {**scope.get("state", {}), state_key: credential}}
        await self.managers[credential.origin].handle_request(inner, receive, send)


owner_message = (
    "This endpoint takes tokens of agents only. With an owner token use the REST API under /v1."
)


def hosted_app(
    *,
    open_port: OpenPort,
    admission: Admission,
    origins: Sequence[str],
    version: str,
    allowed_origins: Sequence[str] = (),
    settings: AdapterSettings | None = None,
    offer: Offer = personal_data,
) -> HostedApp:
    """The application: one server for each origin, all built here."""
    counts = Counts()

    def callers(request: Any) -> Caller:
        return _caller(request, open_port)

    def manager(origin: str) -> StreamableHTTPSessionManager:
        server = build_server(
            callers,
            name=server_name,
            version=version,
            icon_url=f"{origin}/icon.svg",
            settings=settings,
            offer=offer,
            counts=counts,
        )
        return StreamableHTTPSessionManager(
            app=server,
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=body_bytes + 1,
        )

    managers = {origin: manager(origin) for origin in origins}
    return HostedApp(managers, admission, allowed_origins, counts)


def _caller(request: Request, open_port: OpenPort) -> Caller:
    credential: HostedCredential = request.scope["state"][state_key]
    return Caller(
        open_port=lambda tool: open_port(replace(credential, tool=tool)),
        provider_url=credential.origin,
        request_id=credential.request_id,
        client_id=credential.client_id,
        grant_id=credential.grant_id,
        user_agent=request.headers.get("user-agent"),
    )


def _credential(token: str, origin: str, request_id: str, verdict: Admitted) -> HostedCredential:
    return HostedCredential(
        token=token,
        origin=origin,
        request_id=request_id,
        tool="resource",
        client_id=verdict.client_id,
        grant_id=verdict.grant_id or verdict.package_id,
    )


def _place(scope: Scope) -> tuple[str, str]:
    state = scope.get("state", {})
    return state.get("origin", ""), state.get("request_id") or f"req_{secrets.token_hex(12)}"


def _before_bearer(request: Request, request_id: str, *, known: bool) -> Answer | None:
    if not known:
        return refused(403, "permission_error", "This browser origin is not allowed.", request_id)
    return preflight() if request.method == "OPTIONS" else None


def _method_problem(request: Request, request_id: str) -> Answer | None:
    if request.method != "POST":
        return refused(405, "method_not_allowed", "Use POST.", request_id)
    if request.headers.get("pdpp-version", PDPP_VERSION) != PDPP_VERSION:
        spoken = f"This server speaks PDPP-Version {PDPP_VERSION}."
        return refused(400, "unsupported_version", spoken, request_id)
    for name in request.query_params:
        return refused(
            400, "invalid_request", "This endpoint takes no parameters.", request_id, name
        )
    return None


async def _body(request: Request, request_id: str) -> bytes | Answer:
    length = request.headers.get("content-length", "")
    body = bytearray()
    if not length.isdigit() or int(length) <= body_bytes:
        async for chunk in request.stream():
            body += chunk
            if len(body) > body_bytes:
                break
        else:
            return bytes(body)
    return refused(413, "resource_limit", "The body passes 4 MiB.", request_id)


def _misdirected(request_id: str) -> Answer:
    return refused(421, "misdirected_request", "This is not the host of this server.", request_id)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more; what follows, a disconnect, comes when it comes."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send, standing: Headers) -> Send:
    names = {name for name, _ in standing}

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            kept = [pair for pair in own if pair[0].lower() != b"mcp-session-id"]
            message = {**message, "headers": [*kept, *standing]}
        await send(message)

    return forward


async def _write(answer: Answer, standing: Headers, send: Send) -> None:
    own = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    content = answer.content
    if answer.body is not None:
        own.append((b"content-type", b"application/json; charset=utf-8"))
    own.append((b"content-length", str(len(content)).encode()))
    headers = [*own, *standing]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
