"""`POST /mcp`: admission first, then the SDK, statelessly, as JSON.

Source: docs/contract/mcp-adapter.md 2.2, 15. Nothing about authorization is kept between requests;
the origin was judged by the outermost application and comes in the scope.
"""

import json
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from personal_server.mcp_adapter.calls import AdapterSettings
from personal_server.mcp_adapter.metrics import Counts, telling
from personal_server.mcp_adapter.server import Caller, Offer, build_server, personal_data
from personal_server.rs_client.json_values import Json
from personal_server.rs_client.port import RsPort
from personal_server.web.cross_origin import (
    CROSS_ORIGIN_REQUEST_HEADERS,
    CROSS_ORIGIN_RESPONSE_HEADERS,
)
from personal_server.web.requests import PDPP_VERSION

# Who may use `/mcp`: the port that the composition root answers from the token store.
#
# Source: docs/contract/mcp-adapter.md 2.2; docs/contract/authorization-server.md 10.1, 12.


RefusalCode = Literal["invalid_token", "grant_revoked", "grant_expired", "grant_invalid"]
client_kinds = frozenset({"client", "mcp_package"})


@dataclass(frozen=True, slots=True)
class Admitted:
    """A good token, whatever its kind; the door judges kind and resource.

    Shapes: reaches_mcp says whether the token's resource covers `/mcp`.
    """

    kind: str
    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    reaches_mcp: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A token that is not good, and why."""

    code: RefusalCode = "invalid_token"


class AdmissionUnavailable(Exception):
    """Tokens cannot be judged now; nobody is let in."""


class Admission(Protocol):
    """Judges bearers."""

    async def judge(self, token: str, /) -> Admitted | Refused:
        """What a bearer stands for at this moment.

        Raises: AdmissionUnavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class HostedCredential:
    """What a port of one hosted call is opened with.

    Shapes: origin is the origin of the request; request_id is the one its reads are numbered under.
    """

    token: str
    origin: str
    request_id: str
    tool: str
    client_id: str | None = None
    grant_id: str | None = None


# What `/mcp` answers before MCP runs: challenges, refusals, headers.
#
# Source: docs/contract/mcp-adapter.md 2.2; docs/contract/authorization-server.md 12.


body_bytes = 4 * 1024 * 1024
next_step = (
    "Authorize this client at the server named in resource_metadata, then repeat the request."
)
allowed_methods = "POST"
loopback_hosts = frozenset({"localhost", "127.0.0.1", "::1"})
messages = {
    "authentication_error": "This endpoint needs a bearer token.",
    "invalid_token": "The access token is not valid.",
    "grant_revoked": "The owner ended this access.",
    "grant_expired": "This access has ended.",
    "grant_invalid": "This access cannot be used any more.",
}
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer of the door."""

    status: int
    body: Json | None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def metadata_url(origin: str) -> str:
    """Where a client learns how to authorize."""
    return f"{origin}/.well-known/oauth-protected-resource/mcp"


def challenge(origin: str, request_id: str, code: str) -> Answer:
    """A 401; `error` stands in the challenge only when a token was sent."""
    message = messages[code]
    words = f'Bearer resource_metadata="{metadata_url(origin)}", scope="pdpp:read"'
    if code != "authentication_error":
        words += f', error="invalid_token", error_description="{message}"'
    error: Json = {"type": "authentication_error", "code": code, "message": message}
    error["resource_metadata"] = metadata_url(origin)
    error["next_step"] = next_step
    error["request_id"] = request_id
    return Answer(401, {"error": error}, (("WWW-Authenticate", words),))


def refused(
    status: int, code: str, message: str, request_id: str, param: str | None = None
) -> Answer:
    """Any other refusal."""
    kinds = {
        403: "permission_error",
        413: "request_entity_too_large_error",
        503: "api_error",
    }
    error: Json = {"type": kinds.get(status, "invalid_request_error"), "code": code}
    error["message"] = message
    if param is not None:
        error["param"] = param
    error["request_id"] = request_id
    headers = (("Allow", allowed_methods),) if status == 405 else ()
    if status == 503:
        headers = (("Retry-After", "1"),)
    return Answer(status, {"error": error}, headers)


def preflight() -> Answer:
    """The answer to OPTIONS."""
    headers = (
        ("Access-Control-Allow-Methods", allowed_methods),
        ("Access-Control-Allow-Headers", CROSS_ORIGIN_REQUEST_HEADERS),
        ("Access-Control-Max-Age", "600"),
    )
    return Answer(204, None, headers)


def is_allowed_origin(value: str, own: Sequence[str], further: Sequence[str]) -> bool:
    """Whether a browser page of this origin may call."""
    if value in own or value in further:
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname in loopback_hosts and not parts.path


def standing_headers(origin: str, request_id: str, browser_origin: str | None) -> Headers:
    """What stands on every answer of `/mcp` once its origin is known."""
    headers = [
        ("Link", f'<{origin}/icon.svg>; rel="icon"; type="image/svg+xml"'),
        ("Cache-Control", "no-store"),
        ("Request-Id", request_id),
        ("X-Request-Id", request_id),
    ]
    if browser_origin is not None:
        headers += [
            ("Access-Control-Allow-Origin", browser_origin),
            ("Access-Control-Expose-Headers", CROSS_ORIGIN_RESPONSE_HEADERS),
            ("Vary", "Origin"),
        ]
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]


def bearer_in(header: str | None) -> str | None:
    """The token of an Authorization header; another scheme or an empty token counts as none."""
    if header is None:
        return None
    scheme, _, token = header.strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


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
