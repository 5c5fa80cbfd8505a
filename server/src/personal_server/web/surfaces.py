"""Surfaces: the steps of a request, from scope to response, for each table of routes.

Rule: the frame owns the steps; a surface says who calls, what a route answers and how an error
looks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Generic, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import MethodNotAllowed, PersonalServerError
from personal_server.web.bodies import check_head, read_body, spool_body
from personal_server.web.call_capacity import CallThreads, Capacity, Places
from personal_server.web.cors import READABLE_ANYWHERE, preflight
from personal_server.web.error_responses import translate
from personal_server.web.parameters import Parameters
from personal_server.web.query_strings import parse_query
from personal_server.web.refused_bodies import let_arrive
from personal_server.web.requests import IncomingRequest, check_version
from personal_server.web.responses import send_response, set_fixed_headers
from personal_server.web.routes import RouteDeclaration
from personal_server.web.routing import Match, RouteTable

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
    is_body_asked: bool = False
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
        self.readers = CallThreads(reading or Capacity())
        self.writers = CallThreads(writing)

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

    def is_readable_anywhere(self, exchange: Exchange[D, C]) -> bool:
        """Whether pages of other origins may read the answer."""
        route = exchange.found
        if route is not None:
            return route.cors
        return exchange.match is not None and bool(exchange.match.cors_methods)

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
                pool=self.readers,
            )

    async def _response(self, exchange: Exchange[D, C]) -> Response:
        request = exchange.request
        try:
            response = await self.steps(exchange)
        except Exception as error:  # noqa: BLE001 (the one boundary)
            if not exchange.is_body_asked:
                await let_arrive(request.headers, request.receive)
            failure = translate(error, request.request_id)
            note(request.scope, error=failure.code)
            response = self.refuse(exchange, failure)
            if isinstance(failure, MethodNotAllowed) and exchange.match is not None:
                response.headers["Allow"] = ", ".join(exchange.match.methods)
        if exchange.found is not None:
            note(request.scope, route=exchange.found.name)
        set_fixed_headers(response, request.request_id)
        if self.is_readable_anywhere(exchange):
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
        exchange.is_body_asked = True
        if rule.spooled:
            exchange.spool = await spool_body(rule, request.receive)
            exchange.closing.callback(exchange.spool.close)
        else:
            exchange.body = await read_body(rule, request.receive)


def note(scope: Scope, **members: str) -> None:
    """Say of a request what its traffic is counted by."""
    scope.setdefault("state", {}).update(members)
