"""The frame: what every surface does with a request, and the application they stand in.

Rule: the frame owns the steps of a request, from scope to response; a surface gives it a table of
routes and says who calls, what a route answers and how an error looks.  What the outermost
application settles (`scope["state"]`: origin, request_id, client_address) is never settled again
inside; the in-process transport of the hosted adapter enters behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import BinaryIO, Generic, TypeVar

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pdpp_kernel.errors import (
    InvalidRequest,
    MethodNotAllowed,
    MisdirectedRequest,
    PersonalServerError,
    RateLimitExceeded,
)
from personal_server.web.bodies import check_head, read_body, spool_body
from personal_server.web.error_responses import bare_page, json_error, translate
from personal_server.web.health import HEALTH_PATHS, Health
from personal_server.web.limits import FailedBearers
from personal_server.web.parameters import Parameters, parse_query
from personal_server.web.requests import (
    PDPP_VERSION,
    IncomingRequest,
    OriginPolicy,
    check_version,
    prefers_html,
    request_id_of,
    sent_token,
)
from personal_server.web.responses import (
    JSON_TYPE,
    READABLE_ANYWHERE,
    ChunkedResponse,
    Reply,
    close_chunks,
    compress,
    is_public_document,
    preflight,
    readable_anywhere,
    send_response,
    set_fixed_headers,
)
from personal_server.web.routing import Match, Route, RouteDeclaration, RouteTable
from personal_server.web.traffic import NETWORK, Traffic
from personal_server.web.workers import Capacity, Places, Workers

WRITING = Capacity(at_once=2, waiting=64, wait_seconds=30.0)

D = TypeVar("D", bound=RouteDeclaration)
C = TypeVar("C")


@dataclass(slots=True)
class Exchange(Generic[D, C]):
    """One request on its way: what the steps have found out so far.

    Shapes: `route` is there once one was found, `path` holds its decoded variable segments;
        `caller` is whoever the surface says calls, `None` before it is known; `query_refusal`
        is what is wrong with the query, raised once the caller is known; `closing` gives back what
        the request holds, once it is answered.
    Units: `now_ns` UTC nanoseconds, where the surface keeps time.
    """

    request: IncomingRequest
    match: Match[D] | None = None
    route: D = field(init=False)
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    caller: C | None = None
    parameters: Parameters = field(default_factory=Parameters)
    query_refusal: PersonalServerError | None = None
    body: bytes = b""
    spool: BinaryIO | None = None
    now_ns: int = 0
    closing: ExitStack = field(default_factory=ExitStack)

    @property
    def found(self) -> D | None:
        """The route that answers; `None` where none was found."""
        return getattr(self, "route", None)

    @property
    def identified(self) -> C:
        """Who calls, once that is known."""
        if self.caller is None:
            raise LookupError("nobody was identified yet")
        return self.caller

    def require_query(self) -> None:
        """Raise what is wrong with the query."""
        if self.query_refusal is not None:
            raise self.query_refusal


class Surface(ABC, Generic[D, C]):
    """The ASGI application of a route table.

    Reads wait for reads and writes for writes, each in threads of their own, so that a write never
    holds up a read.
    """

    def __init__(
        self, table: RouteTable[D], reading: Capacity | None = None, writing: Capacity = WRITING
    ) -> None:
        self.table = table
        self.readers = Workers(reading or Capacity())
        self.writers = Workers(writing)

    @property
    def queues(self) -> dict[str, Places]:
        """Where calls wait, by what they do."""
        return {"read": self.readers.places, "write": self.writers.places}

    # What a surface says.
    @abstractmethod
    async def identify(self, exchange: Exchange[D, C]) -> None:
        """Find out who calls, and whether they may at all.  Raises: PersonalServerError."""

    @abstractmethod
    async def answer(self, exchange: Exchange[D, C]) -> Response:
        """Let the route answer.  Raises: PersonalServerError."""

    @abstractmethod
    def refuse(self, exchange: Exchange[D, C], error: PersonalServerError) -> Response:
        """How an error looks."""

    def complete(self, exchange: Exchange[D, C], response: Response) -> None:
        """Add what this surface says on every answer."""

    # The steps of a request.
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        request = IncomingRequest(scope, receive)
        exchange = Exchange[D, C](request)
        with exchange.closing:
            response = await self._response(exchange)
            await send_response(
                response,
                bodiless=request.method == "HEAD",
                receive=receive,
                send=send,
                workers=self.readers,
            )

    async def _response(self, exchange: Exchange[D, C]) -> Response:
        request = exchange.request
        try:
            response = await self.steps(exchange)
        except Exception as error:  # noqa: BLE001 (the one boundary)
            failure = translate(error, request.request_id)
            note(request.scope, error=failure.code)
            response = self.refuse(exchange, failure)
            if isinstance(failure, MethodNotAllowed) and exchange.match is not None:
                response.headers["Allow"] = ", ".join(exchange.match.methods)
        if exchange.found is not None:
            note(request.scope, route=exchange.found.name)
        set_fixed_headers(response, request.request_id)
        if _is_readable_anywhere(exchange):
            response.headers.update(READABLE_ANYWHERE)
        self.complete(exchange, response)
        return response

    async def steps(self, exchange: Exchange[D, C]) -> Response:
        """Every step in its order.  Source: docs/contract/resource-server.md 1.5."""
        request = exchange.request
        match = self.table.match(request.raw_path)
        exchange.match, exchange.path = match, match.path
        if request.method == "OPTIONS" and match.cors_methods:
            return preflight(match.cors_methods)
        exchange.route = match.route(request.method)
        check_version(request.headers)
        self.read_query(exchange)
        return await self.serve(exchange)

    async def serve(self, exchange: Exchange[D, C]) -> Response:
        """The steps that need to know who calls."""
        await self.identify(exchange)
        exchange.require_query()
        await self.read_body(exchange)
        return await self.answer(exchange)

    def read_query(self, exchange: Exchange[D, C]) -> None:
        """Parse the query as the route declares it; what is wrong with it waits for its turn."""
        if exchange.route.open_query:
            return
        try:
            query = exchange.request.raw_query
            exchange.parameters = parse_query(query, exchange.route.declared)
        except PersonalServerError as refusal:
            exchange.query_refusal = refusal

    async def read_body(self, exchange: Exchange[D, C]) -> None:
        """Read the body as the route declares it.

        Raises: UnsupportedMediaType, BodyTooLarge, InvalidRequest.
        """
        rule, request = exchange.route.body, exchange.request
        if rule is None:
            return
        check_head(rule, request.headers)
        if rule.spooled:
            exchange.spool = await spool_body(rule, request.receive)
            exchange.closing.callback(exchange.spool.close)
        else:
            exchange.body = await read_body(rule, request.receive)


def note(scope: Scope, **said: str) -> None:
    """Say of a request what its traffic is counted by."""
    scope.setdefault("state", {}).update(said)


def _is_readable_anywhere(exchange: Exchange[D, C]) -> bool:
    route = exchange.found
    if route is not None:
        return route.cors
    return exchange.match is not None and bool(exchange.match.cors_methods)


# A reply of `/v1` becomes a response with validator, caching and content type.
#
# Rule: what may be kept, and how it is checked again, is read from the route's declaration.


def respond(
    route: Route, reply: Reply, headers: Mapping[str, str], shown: Callable[[Response], None]
) -> Response:
    """The response of a reply, compressed where accepted; `shown` hears of it unless it is a 304.

    Shapes: headers by lower-case name.  Raises: what `shown` raises.
    """
    response = rendered(route, reply)
    try:
        if is_unchanged(headers, response):
            close_chunks(reply.chunks)
            return unchanged(response)
        shown(response)
    except BaseException:
        close_chunks(reply.chunks)
        raise
    if reply.content_type == JSON_TYPE and reply.chunks is None:
        compress(response, headers.get("accept-encoding", ""))
    return response


def rendered(route: Route, reply: Reply) -> Response:
    """The response of a reply: body, content type, caching, validator."""
    body = reply.content or b""
    if reply.body is not None:
        body = msgspec.json.encode(reply.body)
    headers = {} if reply.status == 204 else {"Content-Type": reply.content_type}
    headers["Cache-Control"] = route.caching.value
    etag = reply.etag
    if route.etag and etag is None and reply.status == 200:
        etag = f'W/"{blake2b(body, digest_size=16).hexdigest()}"'
    if reply.chunks is None:
        response = Response(body, reply.status, headers)
    else:
        response = ChunkedResponse(reply.chunks, reply.length_bytes, reply.status, headers)
    for name, value in reply.headers:
        response.headers.append(name, value)
    if etag is not None:
        response.headers["ETag"] = etag
    return response


def is_unchanged(headers: Mapping[str, str], response: Response) -> bool:
    """Whether the caller already has it (`If-None-Match`, weak comparison)."""
    sent, etag = headers.get("if-none-match"), response.headers.get("etag")
    if sent is None or etag is None or response.status_code not in (200, 206):
        return False
    known = {part.strip().removeprefix("W/") for part in sent.split(",")}
    return "*" in known or etag.removeprefix("W/") in known


def unchanged(response: Response) -> Response:
    """The 304 of a response: its headers without those of the body."""
    dropped = (b"content-type", b"content-length", b"content-range", b"content-disposition")
    kept = Response(None, 304)
    kept.raw_headers.extend(pair for pair in response.raw_headers if pair[0] not in dropped)
    return kept


# The outermost application: what is wrong with any request, then the surface that answers it.


Lifetime = Callable[[], AbstractAsyncContextManager[None]]


class Application:
    """One ASGI application of several parts, chosen by the first path segment."""

    def __init__(
        self,
        policy: OriginPolicy,
        parts: Sequence[tuple[frozenset[str], ASGIApp]],
        otherwise: ASGIApp,
        failed_bearers: FailedBearers,
        lifetime: Lifetime = nullcontext,
        health: Health | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        self._health = health or Health()
        self._answer = (traffic or Traffic()).measured(NETWORK, self._respond)
        self._policy = policy
        self._lifetime = lifetime
        self._parts = {segment: part for segments, part in parts for segment in segments}
        self._otherwise = otherwise
        self._failed = failed_bearers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live as long as the server; nothing else gets in."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._lifetime():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        request_id = request_id_of(headers)
        send = _with_fixed_headers(send, request_id)
        try:
            _check_form(scope, headers)
            address = self._settle(scope, headers, request_id)
        except PersonalServerError as error:
            note(scope, error=error.code)
            if not isinstance(error, MisdirectedRequest):
                await _refuse(error, request_id, send, Connection="close")
            elif prefers_html(headers.get("accept", "")):
                await _send(bare_page(error), send)
            else:
                await _refuse(error, request_id, send)
            return
        if is_public_document(scope["path"]):
            send = readable_anywhere(send)
            if scope["method"] == "OPTIONS":
                await preflight(("GET", "HEAD"))(scope, receive, send)
                return
        bearer = sent_token(headers.get("authorization"))
        if bearer is not None:
            send = self._limiting_refusals(scope, send, address, bearer)
        await self._part_of(scope)(scope, receive, send)

    def _settle(self, scope: Scope, headers: Mapping[str, str], request_id: str) -> str:
        if scope["path"] in HEALTH_PATHS:
            scope["state"] = {"request_id": request_id}
            return ""
        peer = (scope.get("client") or ("", 0))[0]
        address = self._policy.client_address(peer, headers)
        scope["state"] = {  # made anew: nothing of a request from outside is settled before
            "origin": self._policy.origin_of(peer, scope["scheme"], headers),
            "request_id": request_id,
            "client_address": address,
        }
        return address

    def _part_of(self, scope: Scope) -> ASGIApp:
        if scope["path"] in HEALTH_PATHS:
            return self._answer_health
        segments = scope["path"].split("/", 3)
        first = "/".join(segments[1:3]) if segments[1] == ".well-known" else segments[1]
        first = "~" if first.startswith("~") else first
        return self._parts.get(first, self._otherwise)

    async def _answer_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["method"] not in ("GET", "HEAD"):
            refusal = MethodNotAllowed("This address takes GET.")
            await _refuse(refusal, scope["state"]["request_id"], send, Allow="GET, HEAD")
            return
        note(scope, route=f"GET {scope['path']}")
        response = self._health.response(scope["path"])
        if scope["method"] == "HEAD":
            response.body = b""
        await _send(response, send)

    def _limiting_refusals(self, scope: Scope, send: Send, address: str, bearer: str) -> Send:
        """Turn a refused bearer into a 429 where it was refused too often before."""
        limited = False

        async def limiting(message: Message) -> None:
            nonlocal limited
            if message["type"] == "http.response.start" and message["status"] == 401:
                try:
                    self._failed.count(address, bearer)
                except RateLimitExceeded as error:
                    limited = True
                    note(scope, error=error.code)
                    request_id = scope["state"]["request_id"]
                    await _refuse(error, request_id, send, **_lasting(message))
            if not limited:
                await send(message)

        return limiting


def _check_form(scope: Scope, headers: Mapping[str, str]) -> None:
    """Refuse what is no request for a resource of ours, and a body that two headers measure.

    Source: docs/contract/resource-server.md 1.1.  Raises: InvalidRequest, MethodNotAllowed.
    """
    if scope["method"] == "CONNECT":
        raise MethodNotAllowed("This server is no proxy.")
    if not scope["path"].startswith("/"):
        raise InvalidRequest("The request target is a path.", param="path")
    if "transfer-encoding" in headers and "content-length" in headers:
        raise InvalidRequest(
            "Send Content-Length or Transfer-Encoding, not both.", param="Content-Length"
        )


def _lasting(message: Message) -> Mapping[str, str]:
    """The headers that every answer of a path has, whatever its status."""
    kept = (b"link", b"vary", b"access-control-allow-origin", b"access-control-expose-headers")
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in message["headers"]
        if name.lower() in kept
    }


async def _refuse(error: PersonalServerError, request_id: str, send: Send, **headers: str) -> None:
    response = json_error(error, request_id)
    response.headers.update({"Cache-Control": "no-store", **headers})
    await _send(response, send)


async def _send(response: Response, send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
    )
    await send({"type": "http.response.body", "body": response.body})


def _with_fixed_headers(send: Send, request_id: str) -> Send:
    async def fixing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Request-Id", request_id)
            headers.setdefault("X-Request-Id", headers["Request-Id"])
            headers.setdefault("PDPP-Version", PDPP_VERSION)
            headers.setdefault("X-Content-Type-Options", "nosniff")
        await send(message)

    return fixing
