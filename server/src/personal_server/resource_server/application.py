"""`/v1` on the frame: who calls, what was disclosed, and the routes put together.

Rule: the order of checks of docs/contract/resource-server.md 1.5 is the order of the frame; the
first step that fails answers, and nothing touches stored records before a route is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import NotPermitted, PersonalServerError
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.possession import PresentedToken
from personal_server.reading.disclosure_log import (
    DisclosureLog,
    EntrySecrets,
    ServedCall,
    denied_entry,
    served_entries,
)
from personal_server.reading.identification import Identified
from personal_server.reading.persons import planted_behind
from personal_server.reading.ports import PlantedRecords
from personal_server.reading.tokens import TokenState
from personal_server.resource_server.quotas import (
    BudgetLeft,
    Quotas,
    amounts_by_grant,
    budget_low,
)
from personal_server.storage.ports.snapshots import (
    PastBudget,
    ReadSnapshot,
)
from personal_server.web.authorization_headers import shows_proof
from personal_server.web.call_capacity import Capacity, wait_until
from personal_server.web.error_responses import json_error
from personal_server.web.rendering import respond
from personal_server.web.replies import Reply
from personal_server.web.requests import IncomingRequest, Request, needed_token
from personal_server.web.responses import rate_headers
from personal_server.web.routes import Caching, Route, Tokens
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import WRITING, Exchange, Surface

TAKEN: Mapping[Tokens, frozenset[TokenKind]] = {
    Tokens.NONE: frozenset(),
    Tokens.ANY: frozenset({TokenKind.CLIENT, TokenKind.PACKAGE, TokenKind.OWNER}),
    Tokens.OWNER: frozenset({TokenKind.OWNER}),
    Tokens.COLLECTOR: frozenset({TokenKind.OWNER, TokenKind.COLLECTOR}),
}
REFUSED: Mapping[Tokens, str] = {
    Tokens.ANY: "A collector's token can only write to its account, not read.",
    Tokens.OWNER: "This address accepts only the owner's token.",
    Tokens.COLLECTOR: (
        "This address accepts only the owner's token, or a collector's token for its account."
    ),
}
_NOBODY = ReadAuthority(TokenKind.OWNER, "", ())
"""Who calls a public route: nobody that could read anything."""

Bearer = PresentedToken | TokenState
"""A token as it was presented, or what it stood for where it was looked up before."""

Identify = Callable[[Bearer], AbstractContextManager[tuple[Identified, ReadSnapshot]]]
"""What a token stands for now, and the state that says so, for as long as the block lasts.

Raises: InvalidToken, StorageUnavailable.
"""


class Ports(msgspec.Struct, frozen=True):
    """What this surface needs from outside.  `clock` is UTC nanoseconds."""

    identify: Identify
    limits: Quotas
    log: DisclosureLog
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    capacity: Capacity = msgspec.field(default_factory=Capacity)
    writing: Capacity = WRITING
    planted: PlantedRecords = frozenset
    identify_briefly: Identify | None = None


Reading = Exchange[Route, ReadAuthority]


class ResourceServer(Surface[Route, ReadAuthority]):
    """The ASGI application of the routes of `/v1`."""

    def __init__(self, table: RouteTable[Route], ports: Ports) -> None:
        super().__init__(table, ports.capacity, ports.writing)
        self._ports = ports
        self._secrets = EntrySecrets(ports.random_bytes)

    async def serve(self, exchange: Reading) -> Response:
        """Steps 4 to 11 of a read in one thread and one state of the store.

        That is this thread where it takes a moment only: handing it to another takes longer.
        Source: docs/contract/resource-server.md 1.5, 1.6.
        """
        route, exchange.now_ns = exchange.route, self._ports.clock()
        if route.tokens is not Tokens.ANY or route.method != "GET":
            return await super().serve(exchange)
        bearer = _bearer(exchange)
        if route.is_brief(exchange.parameters):
            reply = self._read_briefly(exchange, bearer)
            if reply is not None and self._ports.limits.knows(exchange.identified, reply.disclosed):
                return self._respond(exchange, reply)
            if reply is not None:
                return await self.readers.run(self._respond, exchange, reply)
        if self.readers.are_busy:
            # What waits counts as in flight too, or the calls of one grant could fill the queue.
            await self.readers.run(self._identify, exchange, bearer)
            exchange.require_query()
        response, leaves_at = await self.readers.run(self._read, exchange, bearer)
        if leaves_at is not None:
            # without its thread and its state of the store, which others wait for
            await wait_until(leaves_at)
        return response

    def _read(self, exchange: Reading, bearer: Bearer) -> tuple[Response, float | None]:
        """The response, and when it may leave."""
        with self._ports.identify(bearer) as (identified, snapshot):
            self._admit(exchange, identified)
            exchange.require_query()
            reply = self._reply(exchange, snapshot)
        return self._respond(exchange, reply), reply.leaves_at

    def _read_briefly(self, exchange: Reading, bearer: Bearer) -> Reply | None:
        """The reply if it takes a moment only; `None` where it may take longer."""
        identify = self._ports.identify_briefly
        if identify is None:
            return None
        try:
            with identify(bearer) as (identified, snapshot):
                if not self._ports.limits.knows(identified.authority):
                    return None
                self._admit(exchange, identified)
                exchange.require_query()
                return self._reply(exchange, snapshot)
        except PastBudget:
            return None

    def _reply(self, exchange: Reading, snapshot: ReadSnapshot) -> Reply:
        reply = exchange.route.answer_request(self._request(exchange, snapshot))
        is_client = exchange.identified.kind is not TokenKind.OWNER
        if is_client and any(part.source.made_of and part.keys for part in reply.disclosed):
            behind = planted_behind(snapshot, reply.disclosed, self._ports.planted())
            reply = replace(reply, disclosed=(*reply.disclosed, *behind))
        return reply

    async def identify(self, exchange: Reading) -> None:
        """Who calls a route that is no read."""
        if exchange.route.tokens is not Tokens.NONE:
            await self.readers.run(self._identify, exchange, _bearer(exchange))

    def _identify(self, exchange: Reading, bearer: Bearer) -> None:
        with self._ports.identify(bearer) as (identified, _):
            self._admit(exchange, identified)

    def _admit(self, exchange: Reading, identified: Identified) -> None:
        """Steps 5 to 7: the state of the grant, rate, kind of token; a call is counted once."""
        is_counted, route = exchange.caller is not None, exchange.route
        exchange.caller = authority = identified.authority
        if identified.refusal is not None:
            raise identified.refusal
        if authority.kind is not TokenKind.OWNER:
            self._ports.log.check()
        if not is_counted:
            self._ports.limits.enter(authority, route.cost(exchange.parameters))
            exchange.closing.callback(self._ports.limits.leave, authority)
        if authority.kind not in TAKEN[route.tokens]:
            raise NotPermitted(REFUSED[route.tokens])

    async def answer(self, exchange: Reading) -> Response:
        """Let a route that is no read answer in a thread."""
        threads = self.readers if exchange.route.method == "GET" else self.writers
        return await threads.run(self._answer, exchange)

    def _answer(self, exchange: Reading) -> Response:
        return self._respond(exchange, exchange.route.answer_request(self._request(exchange)))

    def _request(self, exchange: Reading, snapshot: ReadSnapshot | None = None) -> Request:
        return _request(exchange, snapshot, self._ports.limits.left(exchange.caller or _NOBODY))

    def _respond(self, exchange: Reading, reply: Reply) -> Response:
        return respond(
            exchange.route,
            reply,
            exchange.request.headers,
            partial(self._disclose, exchange, reply),
        )

    def _disclose(self, exchange: Reading, reply: Reply, response: Response) -> None:
        if not reply.disclosed:
            return
        sent = reply.length_bytes if reply.chunks is not None else len(response.body)
        size_bytes = 0 if exchange.request.method == "HEAD" else sent or 0
        entries = served_entries(_facts(exchange), reply.disclosed, size_bytes, self._secrets)
        self._ports.limits.charge(exchange.caller or _NOBODY, amounts_by_grant(entries))
        self._ports.log.enter(entries)

    def refuse(self, exchange: Reading, error: PersonalServerError) -> Response:
        """JSON; what is denied to a known caller is entered too."""
        if exchange.caller is not None and error.status < 500:
            self._ports.log.enter([denied_entry(_facts(exchange), error, self._secrets)])
        request = exchange.request
        response = json_error(
            error,
            request.request_id,
            request.origin,
            with_proof=shows_proof(request.headers.get("authorization")),
        )
        response.headers["Cache-Control"] = Caching.NO_STORE.value
        return response

    def complete(self, exchange: Reading, response: Response) -> None:
        """Whether it may be shared, and what the caller has left."""
        found = exchange.found
        if found is None or found.tokens is not Tokens.NONE:
            response.headers.append("Vary", "Authorization, Accept-Encoding")
        if exchange.caller is not None:
            standing = self._ports.limits.standing(exchange.caller)
            response.headers.update(rate_headers(standing))


def _bearer(exchange: Reading) -> Bearer:
    presented = needed_token(exchange.request)
    state = exchange.request.token_states.get(presented.token)
    return state if isinstance(state, TokenState) else presented


def _request(
    exchange: Reading, snapshot: ReadSnapshot | None, left: Iterable[BudgetLeft]
) -> Request:
    incoming = exchange.request
    return Request(
        route_name=exchange.route.name,
        authority=exchange.caller or _NOBODY,
        parameters=exchange.parameters,
        path=exchange.path,
        raw_path=incoming.raw_path.decode("latin-1"),
        raw_query=incoming.raw_query.decode("latin-1"),
        origin=incoming.origin,
        request_id=incoming.request_id,
        now_ns=exchange.now_ns,
        headers=incoming.headers,
        body=exchange.body,
        spool=exchange.spool,
        method=incoming.method,
        snapshot=snapshot,
        warnings=tuple(budget_low(each) for each in left if each.is_low),
    )


def _asked(incoming: IncomingRequest) -> str:
    path, query = incoming.raw_path.decode("latin-1"), incoming.raw_query.decode("latin-1")
    return f"{path}?{query}" if query else path


def _facts(exchange: Reading) -> ServedCall:
    return ServedCall(
        exchange.caller or _NOBODY,
        exchange.route.name,
        exchange.request.request_id,
        exchange.now_ns,
        exchange.request.headers.get("pdpp-tool"),
        exchange.path.get("stream"),
        _asked(exchange.request),
    )
