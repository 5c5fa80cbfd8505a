"""`POST /mcp`: admission first, then a known list, a plain call or the SDK, statelessly, as JSON.

Source: docs/contract/mcp-adapter.md 2.2, 15; docs/contract/authorization-server.md 12.
Nothing about authorization is kept between requests; the origin was judged by the outermost
application and comes in the scope.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pdpp_kernel.errors import (
    AuthenticationRequired,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    MisdirectedRequest,
    NotPermitted,
    PersonalServerError,
)
from pdpp_mcp_server.calls import AdapterOptions, ServerCapabilities, none_known
from pdpp_mcp_server.change_bell import Bell, Signal
from pdpp_mcp_server.first_answers import HANDSHAKES
from pdpp_mcp_server.metrics import Counts, telling
from pdpp_mcp_server.plain_calls import PlainCalls
from pdpp_mcp_server.tool_runs import ClientRequest
from pdpp_mcp_server.tools.offered import OFFERED
from personal_server.hosted_mcp.admission import CLIENT_KINDS, Admission, Admitted, HostedCredential
from personal_server.hosted_mcp.call_answers import AskedCall, CallAnswers, asked_call
from personal_server.hosted_mcp.library_sessions import (
    CallerOf,
    LibrarySessions,
    OpenPort,
    SessionsDeclaration,
)
from personal_server.hosted_mcp.list_answers import ListAnswers, asked_list
from personal_server.web.authorization_headers import shows_proof
from personal_server.web.call_capacity import Capacity, Places
from personal_server.web.cors import preflight, readable_by
from personal_server.web.error_responses import json_error
from personal_server.web.requests import IncomingRequest, check_version
from personal_server.web.responses import LastingResponse
from personal_server.web.routes import BodyRule, RouteDeclaration
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import Exchange, Surface, note

if TYPE_CHECKING:
    from pdpp_mcp_server.server_offer import ServerOffer

BODY_BYTES = 4 * 1024 * 1024
# More at once would only all be late.
CALLS = Capacity(at_once=64, waiting=256)
RESOURCE = "/mcp"
# People type it with a slash, and some clients compare its description with what was typed.
PATHS = (RESOURCE, f"{RESOURCE}/")
LISTEN = "subscriptions/listen"
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
ENDED_GRANTS = (GrantRevoked, GrantExpired, GrantInvalid)


@dataclass(frozen=True, slots=True)
class McpRoute(RouteDeclaration):
    """The endpoint: `serve` lets the SDK answer an admitted request."""

    serve: Callable[[Scope, Receive, Send, HostedCredential], Awaitable[None]]


McpExchange = Exchange[McpRoute, HostedCredential]


def is_allowed_origin(value: str, own: Sequence[str], further: Sequence[str]) -> bool:
    """Whether a browser page of this origin may call."""
    if value in own or value in further:
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS and not parts.path


class PlainDoor(msgspec.Struct, frozen=True):
    """How calls are answered that need nothing of the SDK."""

    answers: CallAnswers
    caller_of: CallerOf


class HostedApp(Surface[McpRoute, HostedCredential]):
    """The ASGI application behind `/mcp`.

    Shapes: sessions let the SDK answer, and counts counts with or without it; run() is entered
            once, by the host.
    """

    def __init__(
        self,
        sessions: LibrarySessions,
        allowed_origins: Sequence[str],
        plain: PlainDoor | None = None,
    ) -> None:
        body = BodyRule((), BODY_BYTES)
        super().__init__(
            RouteTable([McpRoute("POST", path, self._serve, body=body) for path in PATHS])
        )
        self.sessions = sessions
        self.origins = sessions.declared.origins
        self.admission = sessions.declared.admission
        self.allowed_origins = allowed_origins
        self.counts = sessions.declared.counts
        self._bell = sessions.declared.bell
        self._plain = plain
        self._lists = ListAnswers()
        self._calls = Places(CALLS)

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve; a mounted application's own lifespan does not run."""
        async with telling(self.counts), anyio.create_task_group() as tasks:
            tasks.start_soon(self.sessions.serve)
            if self._bell is not None:
                tasks.start_soon(self._bell.ring)
            yield
            tasks.cancel_scope.cancel()

    def end_listeners(self) -> None:
        """Let nobody wait for more, when the server stops."""
        self.sessions.end_listeners()

    async def steps(self, exchange: McpExchange) -> Response:
        """The order of this surface judges the bearer before the method.

        Source: docs/contract/authorization-server.md 12.1; docs/contract/mcp-adapter.md 2.2.
        """
        request = exchange.request
        if request.origin not in self.origins:
            raise MisdirectedRequest(
                "The request names a host that is not the host of this server."
            )
        if not self._allows(request):
            raise NotPermitted("Browser pages from this origin may not call this server.")
        if request.method == "OPTIONS":
            return preflight(("POST",))
        await self.identify(exchange)
        exchange.match = match = self.table.match(request.raw_path)
        exchange.route = match.route(request.method)
        check_version(request.headers)
        self.read_query(exchange)
        exchange.require_query()
        await self.read_body(exchange)
        return await self.answer(exchange)

    async def identify(self, exchange: McpExchange) -> None:
        """Judge the bearer, its kind and its resource."""
        request = exchange.request
        presented = request.presented
        if presented is None:
            raise AuthenticationRequired("This address needs a bearer token.")
        admitted = await self.admission.judge(presented)
        if admitted.kind not in CLIENT_KINDS:
            raise NotPermitted(OWNER_MESSAGE)
        if not admitted.reaches_mcp:
            raise InvalidToken("The access token is not valid.")
        exchange.caller = _credential(presented.token, request, admitted)

    @property
    def queues(self) -> dict[str, Places]:
        """Calls of tools, too."""
        return {**super().queues, "call": self._calls}

    async def answer(self, exchange: McpExchange) -> Response:
        """A stream to a listener, a known list, an answer to a plain call, or else the SDK's."""
        request = exchange.request
        if self._bell is not None and _is_listener(request):
            return self._stream(exchange)
        asked = asked_list(request.origin, request.headers.raw, exchange.body)
        known = None if asked is None else self._lists.answer(asked)
        if known is not None:
            return known
        async with self._calls.one():
            call = asked_call(request.origin, request.headers.raw, exchange.body)
            plain = call and await self._plain_answer(call, exchange)
            if plain is not None:
                return plain
            response = await self._whole(exchange, request.scope)
            if response.status_code in (400, 406):
                from personal_server.hosted_mcp import refused_heads  # noqa: PLC0415 (few are)

                asking = request, exchange.body, partial(self._whole, exchange)
                response = await refused_heads.second_answer(response, *asking)
        if asked is not None:
            self._lists.keep(asked, response)
        if call is not None and self._plain is not None:
            self._plain.answers.keep(call, response)
        return response

    async def _plain_answer(self, asked: AskedCall, exchange: McpExchange) -> Response | None:
        if self._plain is None:
            return None
        user_agent = exchange.request.headers.get("user-agent")
        caller = self._plain.caller_of(exchange.identified, user_agent)
        return await self._plain.answers.answer(asked, caller)

    async def _whole(self, exchange: McpExchange, scope: Scope) -> Response:
        """What the SDK answers."""
        answered = _Whole()
        receive = _replayed(exchange.body, exchange.request.receive)
        await exchange.route.serve(scope, receive, answered, exchange.identified)
        return answered.response()

    def refuse(self, exchange: McpExchange, error: PersonalServerError) -> Response:
        """JSON; an ended grant is a challenge here.  Source: docs/decisions.md C11."""
        request = exchange.request
        status = 401 if isinstance(error, ENDED_GRANTS) else None
        return json_error(
            error,
            request.request_id,
            request.origin,
            resource=PATHS[1] if request.raw_path == PATHS[1].encode() else RESOURCE,
            status=status,
            with_proof=shows_proof(request.headers.get("authorization")),
        )

    def complete(self, exchange: McpExchange, response: Response) -> None:
        """What stands on every answer of `/mcp` once its origin is known."""
        request = exchange.request
        if request.origin not in self.origins:
            return
        link = f'<{request.origin}/icon.svg>; rel="icon"; type="image/svg+xml"'
        response.headers.update({"Link": link, "Cache-Control": "no-store"})
        browser = request.headers.get("origin")
        if browser is not None and self._allows(request):
            response.headers.update({**readable_by(browser), "Vary": "Origin"})

    def _allows(self, request: IncomingRequest) -> bool:
        browser = request.headers.get("origin")
        return browser is None or is_allowed_origin(browser, self.origins, self.allowed_origins)

    def _stream(self, exchange: McpExchange) -> Response:
        request, credential = exchange.request, exchange.identified
        receive = _replayed(exchange.body, request.receive)

        async def serve(send: Send) -> None:
            note(request.scope, route=LISTEN)  # how long it lasts says nothing of other requests
            await exchange.route.serve(request.scope, receive, send, credential)

        return LastingResponse(serve)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, credential: HostedCredential
    ) -> None:
        await self.sessions.handle(scope, receive, send, credential)


def _is_listener(request: IncomingRequest) -> bool:
    """Whether it may be answered by a stream, which takes no place among the calls.

    In a session the SDK never holds this header against the body: a call of a tool may bear it.
    """
    version = request.headers.get("mcp-protocol-version")
    return version not in {None, *HANDSHAKES} and request.headers.get("mcp-method") == LISTEN


class _Whole:
    """Takes an answer of the SDK as one response."""

    def __init__(self) -> None:
        self._start: Message = {}
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        """The response, without the session that a stateless server does not keep."""
        response = Response(bytes(self._body), self._start["status"])
        dropped = (b"content-length", b"mcp-session-id")
        kept = [pair for pair in self._start["headers"] if pair[0].lower() not in dropped]
        response.raw_headers.extend(kept)
        return response


OWNER_MESSAGE = (
    "This address accepts only tokens of apps. With an owner token use the REST API under /v1."
)


class ServerBehind(msgspec.Struct, frozen=True):
    """What is known of the resource server behind: its words, and how its writes are heard of.

    Without `changes` no subscriptions are offered.
    """

    capabilities: ServerCapabilities = none_known
    changes: Signal | None = None


UNKNOWN = ServerBehind()


def hosted_app(
    *,
    open_port: OpenPort,
    admission: Admission,
    origins: Sequence[str],
    version: str,
    allowed_origins: Sequence[str] = (),
    settings: AdapterOptions | None = None,
    offer: ServerOffer | None = None,
    behind: ServerBehind = UNKNOWN,
) -> HostedApp:
    """The application; `offer` is that of this adapter where none is given."""
    counts = Counts()

    def caller_of(credential: HostedCredential, user_agent: str | None) -> ClientRequest:
        return _caller(credential, user_agent, open_port, behind.capabilities)

    declared = SessionsDeclaration(
        origins=origins,
        version=version,
        open_port=open_port,
        admission=admission,
        caller_of=caller_of,
        body_bytes=BODY_BYTES,
        settings=settings,
        offer=offer,
        counts=counts,
        bell=None if behind.changes is None else Bell(behind.changes),
    )
    plain = None
    if offer is None or offer.tools is OFFERED:
        calls = PlainCalls(settings or AdapterOptions(), counts)
        plain = PlainDoor(CallAnswers(calls), caller_of)
    return HostedApp(LibrarySessions(declared), allowed_origins, plain)


def _caller(
    credential: HostedCredential,
    user_agent: str | None,
    open_port: OpenPort,
    server_capabilities: ServerCapabilities,
) -> ClientRequest:
    return ClientRequest(
        open_port=lambda tool: open_port(replace(credential, tool=tool)),
        provider_url=credential.origin,
        request_id=credential.request_id,
        client_id=credential.client_id,
        grant_id=credential.grant_id,
        user_agent=user_agent,
        server_capabilities=server_capabilities,
        result_chars=credential.result_chars,
    )


def _credential(token: str, request: IncomingRequest, admitted: Admitted) -> HostedCredential:
    return HostedCredential(
        token=token,
        origin=request.origin,
        request_id=request.request_id,
        tool="resource",
        client_id=admitted.client_id,
        grant_id=admitted.grant_id or admitted.package_id,
        state=admitted.state,
        result_chars=admitted.result_chars,
    )


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
