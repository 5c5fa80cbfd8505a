"""The frame of `/v1`: one ASGI application that takes every request through the same steps.

Rule: the order of checks of docs/contract/resource-server.md 1.5 is the order of this module; the
first step that fails answers, and nothing touches stored records before a route is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO

from starlette.types import Receive, Scope, Send

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.errors import (
    MethodNotAllowed,
    NotFound,
    NotPermitted,
    PersonalServerError,
    UnsupportedVersion,
)
from personal_server.reading.disclosure_log import (
    Call,
    DisclosureLog,
    ShownDisclosure,
    denied_entry,
    every_disclosure,
    served_entries,
    shared_out,
)
from personal_server.reading.export import Enclosures
from personal_server.reading.ports import ReadPorts
from personal_server.reading.tokens import Identified
from personal_server.resource_server.blobs import Blobs
from personal_server.resource_server.connections import OwnerConnections
from personal_server.resource_server.declarations import Declarations
from personal_server.resource_server.disclosures import Disclosures
from personal_server.resource_server.discovery import Discovery
from personal_server.resource_server.export import Export
from personal_server.resource_server.openapi import Beside, openapi_document
from personal_server.resource_server.quotas import Amount, Limits, amounts_by_grant
from personal_server.resource_server.reads import read_routes
from personal_server.resource_server.writes import CollectorState, Deletes, Ingest
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import DisclosureStore, ReadSnapshot
from personal_server.web.application import is_json, is_unchanged, preflight, rendered, unchanged
from personal_server.web.bearers import bearer_token
from personal_server.web.bodies import check_head, read_body, spool_body
from personal_server.web.cross_origin import CORS_HEADERS
from personal_server.web.error_responses import error_body, error_headers, translate
from personal_server.web.parameters import Parameters, parse_query
from personal_server.web.requests import DEFAULT_ORIGIN, PDPP_VERSION, Request, echoed_request_id
from personal_server.web.responses import (
    JSON_TYPE,
    Answer,
    Reply,
    close_chunks,
    compress,
    fixed_headers,
    rate_headers,
    send_answer,
)
from personal_server.web.routing import Caching, Match, Route, RouteTable, Tokens
from personal_server.web.workers import Capacity, Workers

WRITING = Capacity(threads=2, waiting=64, wait_seconds=30.0)

_NOBODY = ReadAuthority(TokenKind.OWNER, "", ())


Identify = Callable[[str], AbstractContextManager[tuple[Identified, ReadSnapshot]]]
"""What a token stands for now, and the state that says so, for as long as the block lasts.

Raises: InvalidToken, StorageUnavailable.
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """What the frame needs from outside.  `clock` is UTC nanoseconds.

    Writes wait for each other in threads of their own, so that they never hold up reads.
    """

    identify: Identify
    limits: Limits
    log: DisclosureLog
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    capacity: Capacity = field(default_factory=Capacity)
    writing: Capacity = WRITING


@dataclass(slots=True)
class _Call:
    """One request on its way: what the steps have found out so far."""

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: dict[str, str]
    origin: str
    request_id: str
    now_ns: int
    match: Match | None = None
    route: Route | None = None
    authority: ReadAuthority = _NOBODY
    admitted: bool = False
    identified: bool = False

    @property
    def bodiless(self) -> bool:
        return self.method == "HEAD"


class ResourceServer:
    """The ASGI application of a route table."""

    def __init__(self, table: RouteTable, ports: Ports) -> None:
        self.table = table
        self._ports = ports
        self._readers = Workers(ports.capacity)
        self._writers = Workers(ports.writing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        call = self._call(scope)
        try:
            answer = await self._answered(call, receive)
            await send_answer(
                answer, bodiless=call.bodiless, receive=receive, send=send, workers=self._readers
            )
        finally:
            if call.admitted:
                self._ports.limits.leave(call.authority)

    def _call(self, scope: Scope) -> _Call:
        state = scope.get("state", {})
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        return _Call(
            scope["method"],
            scope.get("raw_path") or scope["path"].encode(),
            scope.get("query_string", b""),
            headers,
            state.get("origin") or DEFAULT_ORIGIN,
            state.get("request_id") or self._request_id(headers),
            self._ports.clock(),
        )

    def _request_id(self, headers: dict[str, str]) -> str:
        return echoed_request_id(headers) or f"req_{self._ports.random_bytes(12).hex()}"

    async def _answered(self, call: _Call, receive: Receive) -> Answer:
        try:
            answer = await self._steps(call, receive)
        except Exception as error:  # noqa: BLE001 (the one boundary)
            answer = self._failed(call, error)
        return self._finished(call, answer)

    async def _steps(self, call: _Call, receive: Receive) -> Answer:
        call.match = match = self.table.match(call.raw_path)
        if call.method == "OPTIONS" and match.cors_methods:
            return preflight(match)
        call.route = route = match.route(call.method)
        _check_version(call.headers)
        if route.tokens is Tokens.ANY and route.method == "GET":
            return await self._read(call, route)
        if route.tokens is not Tokens.NONE:
            await self._readers.run(self._identify, call, _token(call))
        parameters = self._admit(call, route)
        request = await self._request(call, route, parameters, receive)
        try:
            workers = self._readers if route.method == "GET" else self._writers
            return await workers.run(self._work, call, route, request)
        finally:
            if request.spool is not None:
                request.spool.close()

    async def _read(self, call: _Call, route: Route) -> Answer:
        """Steps 4 to 11 of a read, in one thread and one state of the store."""
        token = _token(call)
        if self._readers.are_busy:
            # What waits counts as in flight too, or the calls of one grant could fill the queue.
            await self._readers.run(self._identify, call, token)
            self._admit(call, route)
        return await self._readers.run(self._read_one_state, call, route, token)

    def _read_one_state(self, call: _Call, route: Route, token: str) -> Answer:
        with self._ports.identify(token) as (identified, snapshot):
            self._accept(call, identified)
            request = _request_of(call, route, self._admit(call, route), snapshot=snapshot)
            reply = route.answer_request(request)
        return self._answer(call, route, reply)

    def _identify(self, call: _Call, token: str) -> None:
        with self._ports.identify(token) as (identified, _):
            self._accept(call, identified)

    def _accept(self, call: _Call, identified: Identified) -> None:
        """Steps 4 and 5: credentials, then the state of the grant."""
        call.authority = identified.authority
        call.identified = True
        if identified.refusal is not None:
            raise identified.refusal
        if identified.authority.kind is not TokenKind.OWNER:
            self._ports.log.check()

    def _admit(self, call: _Call, route: Route) -> Parameters:
        """Steps 6 to 8: rate, kind of token, syntax."""
        parsed = _parsed(call.raw_query, route)
        if call.identified:
            known = parsed if isinstance(parsed, Parameters) else Parameters()
            if not call.admitted:
                self._ports.limits.enter(call.authority, route.cost(known))
                call.admitted = True
            if route.tokens is Tokens.OWNER and call.authority.kind is not TokenKind.OWNER:
                raise NotPermitted("This route takes the owner's tokens only.")
        if not isinstance(parsed, Parameters):
            raise parsed
        return parsed

    async def _request(
        self, call: _Call, route: Route, parameters: Parameters, receive: Receive
    ) -> Request:
        body, spool = b"", None
        if route.body is not None:
            check_head(route.body, call.headers)
            if route.body.spooled:
                spool = await spool_body(route.body, receive)
            else:
                body = await read_body(route.body, receive)
        return _request_of(call, route, parameters, body=body, spool=spool)

    def _work(self, call: _Call, route: Route, request: Request) -> Answer:
        return self._answer(call, route, route.answer_request(request))

    def _answer(self, call: _Call, route: Route, reply: Reply) -> Answer:
        """In a worker thread still: what follows from a reply."""
        answer = rendered(route, reply)
        try:
            if is_unchanged(call.headers, answer):
                close_chunks(answer.chunks)
                return unchanged(answer)
            self._disclose(call, reply, answer)
        except BaseException:
            close_chunks(answer.chunks)
            raise
        if is_json(answer):
            compress(answer, call.headers.get("accept-encoding", ""))
        return answer

    def _disclose(self, call: _Call, reply: Reply, answer: Answer) -> None:
        if not reply.disclosed:
            return
        sent = answer.length_bytes if answer.chunks is not None else len(answer.body)
        size_bytes = 0 if call.bodiless else sent or 0
        sizes = shared_out(size_bytes, [part.record_count for part in reply.disclosed])
        amounts = amounts_by_grant(
            (part.source.grant_id, Amount(part.record_count, size))
            for part, size in zip(reply.disclosed, sizes, strict=True)
        )
        self._ports.limits.disclose(amounts)
        entries = served_entries(_facts(call), reply.disclosed, size_bytes, self._entry_id)
        self._ports.log.enter(entries)

    def _failed(self, call: _Call, error: Exception) -> Answer:
        failure = translate(error, call.request_id)
        if call.identified and failure.status < 500:
            self._ports.log.enter([denied_entry(_facts(call), failure, self._entry_id)])
        headers = [("Content-Type", JSON_TYPE), *error_headers(failure, call.origin)]
        if isinstance(failure, MethodNotAllowed) and call.match is not None:
            headers.append(("Allow", ", ".join(call.match.methods)))
        body = error_body(failure, call.request_id, call.origin)
        headers.append(("Cache-Control", Caching.NO_STORE.value))
        return Answer(failure.status, headers, body)

    def _finished(self, call: _Call, answer: Answer) -> Answer:
        answer.headers.extend(fixed_headers(call.request_id))
        if call.route is None or call.route.tokens is not Tokens.NONE:
            answer.headers.append(("Vary", "Authorization, Accept-Encoding"))
        if call.route is not None and call.route.cors:
            answer.headers.extend(CORS_HEADERS)
        if call.identified:
            answer.headers.extend(rate_headers(self._ports.limits.standing(call.authority)))
        return answer

    def _entry_id(self) -> str:
        return f"dis_{self._ports.random_bytes(12).hex()}"


def _check_version(headers: dict[str, str]) -> None:
    if headers.get("pdpp-version", PDPP_VERSION) != PDPP_VERSION:
        raise UnsupportedVersion(
            f"This server speaks PDPP-Version {PDPP_VERSION}.",
            param="PDPP-Version",
            allowed_values=[PDPP_VERSION],
        )


def _parsed(raw_query: bytes, route: Route) -> Parameters | PersonalServerError:
    try:
        return parse_query(raw_query, route.declared)
    except PersonalServerError as error:
        return error


def _token(call: _Call) -> str:
    return bearer_token(call.headers.get("authorization"))


def _request_of(
    call: _Call,
    route: Route,
    parameters: Parameters,
    *,
    body: bytes = b"",
    spool: BinaryIO | None = None,
    snapshot: ReadSnapshot | None = None,
) -> Request:
    return Request(
        route_name=route.name,
        authority=call.authority,
        parameters=parameters,
        path=call.match.path if call.match is not None else {},
        raw_path=call.raw_path.decode("latin-1"),
        raw_query=call.raw_query.decode("latin-1"),
        origin=call.origin,
        request_id=call.request_id,
        now_ns=call.now_ns,
        headers=call.headers,
        body=body,
        spool=spool,
        method=call.method,
        snapshot=snapshot,
    )


def _facts(call: _Call) -> Call:
    return Call(
        call.authority,
        call.route.name if call.route is not None else "",
        call.request_id,
        call.now_ns,
        call.headers.get("pdpp-tool"),
        call.match.path.get("stream") if call.match is not None else None,
    )


# Capabilities that the wire knows and this server does not have: their routes say so.
#
# Rule: an absent capability answers as the contract says and is advertised nowhere.
# Source: docs/contract/resource-server.md 15 ("other callers get 404").


SUBSCRIPTIONS = "/v1/event-subscriptions"
_CALLS = (
    ("GET", SUBSCRIPTIONS),
    ("POST", SUBSCRIPTIONS),
    ("GET", f"{SUBSCRIPTIONS}/{{id}}"),
    ("PATCH", f"{SUBSCRIPTIONS}/{{id}}"),
    ("DELETE", f"{SUBSCRIPTIONS}/{{id}}"),
    ("POST", f"{SUBSCRIPTIONS}/{{id}}/test-event"),
)


def routes() -> tuple[Route, ...]:
    """The routes of event subscriptions, which this server does not deliver."""
    return tuple(
        Route(
            method,
            pattern,
            no_subscriptions,
            "Event subscriptions are not offered by this server.",
            "15",
            success=404,
            errors=(NotFound,),
            cors=True,
            advertised=False,
        )
        for method, pattern in _CALLS
    )


def no_subscriptions(request: Request) -> Reply:
    """Raise: NotFound."""
    del request
    raise NotFound("This server offers no event subscriptions; follow changes_since instead.")


# The resource server put together: every route module on one table, in one frame.


@dataclass(frozen=True, slots=True)
class Parts:
    """What the routes work with.

    Shapes: `flush` makes fresh disclosures readable; `grants` go into archives; `beside` is what
        the published description holds besides these routes.
    """

    reads: ReadPorts
    disclosures: DisclosureStore
    flush: Callable[[], bool]
    declarations: KnownDeclarations = field(default_factory=KnownDeclarations)
    grants: Callable[[], Iterable[Mapping[str, object]]] = lambda: ()
    max_blob_bytes: int = 50 * 1024 * 1024
    server_name: str = "Personal server"
    beside: Beside = field(default_factory=Beside)


def resource_server(parts: Parts, ports: Ports) -> ResourceServer:
    """The application that answers `/`, `/docs`, `/v1` and the protected-resource documents."""
    return ResourceServer(route_table(parts), ports)


def route_table(parts: Parts) -> RouteTable:
    """Every route of this server."""
    made: dict[str, Mapping[str, object]] = {}

    def document() -> Mapping[str, object]:
        if "document" not in made:
            made["document"] = openapi_document(table, parts.server_name, parts.beside)
        return made["document"]

    reads, declarations = parts.reads, parts.declarations

    def disclosures() -> Iterable[ShownDisclosure]:
        parts.flush()
        return every_disclosure(parts.disclosures)

    enclosures = Enclosures(parts.grants, disclosures)
    table = RouteTable(
        [
            *Discovery(parts.server_name, document).routes(),
            *read_routes(reads),
            *Blobs(reads, declarations, parts.max_blob_bytes).routes(),
            *Ingest(reads, declarations).routes(),
            *CollectorState(reads, declarations).routes(),
            *Deletes(reads, declarations).routes(),
            *Declarations(reads, declarations).routes(),
            *OwnerConnections(reads).routes(),
            *Disclosures(parts.disclosures, reads.sealer, parts.flush).routes(),
            *Export(reads, enclosures).routes(),
            *routes(),
        ]
    )
    return table
