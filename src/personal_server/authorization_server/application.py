"""The authorization server put together; the composition root mounts it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from traceback import extract_tb

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from personal_server.authorization_server.authorization_endpoint import Authorizing
from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.client_metadata import Documents
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.device import DeviceAuthorizing
from personal_server.authorization_server.endpoint_requests import Call, check_version, settled
from personal_server.authorization_server.grants import Grants, OwnerSession
from personal_server.authorization_server.introspection import Introspecting
from personal_server.authorization_server.metadata import Metadata
from personal_server.authorization_server.registration import Registering
from personal_server.authorization_server.revocation import Revoking
from personal_server.authorization_server.token_endpoint import TokenEndpoint
from personal_server.consent.credentials import RandomBytes
from personal_server.errors import InternalError, MethodNotAllowed, NotFound, PersonalServerError
from personal_server.granting.codes import Redeeming
from personal_server.granting.pending_requests import Requesting
from personal_server.granting.tokens import Rotating
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import Catalogs
from personal_server.web.bodies import (
    FORM,
    JSON,
    MAX_BODY,
    MAX_REGISTRATION,
    known_query,
    parse_form,
    query_parameters,
    read_small_body,
)
from personal_server.web.cross_origin import CROSS_ORIGIN, PREFLIGHT
from personal_server.web.error_responses import (
    ErrorPage,
    oauth_error,
    plain_page,
    server_error,
)
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.limits import Limits
from personal_server.web.requests import prefers_json
from personal_server.web.responses import NO_STORE, answer, with_fixed_headers

# The frame of the OAuth endpoints: routes, bodies, and the one place errors become answers.
#
# Rule: an endpoint is a coroutine from a `Call` to a response; it raises typed errors and never
# translates them.


Endpoint = Callable[[Call], Awaitable[Response]]
SEGMENTS = frozenset({"oauth", "introspect", "grants", "grant-packages"})
WELL_KNOWN = frozenset({".well-known/oauth-authorization-server"})
_log = logging.getLogger("personal_server.authorization_server")


@dataclass(frozen=True, slots=True)
class EndpointRoute:
    """One endpoint.

    `content_type` is that of the body (POST), `None` if it has none; `open_query` is for the
    authorization endpoint, which ignores what it does not know; `page` answers browsers in HTML.
    """

    method: str
    path: str
    endpoint: Endpoint
    content_type: str | None = None
    limit: int = MAX_BODY
    cross_origin: bool = False
    open_query: bool = False
    page: bool = False


class Frame:
    """Answers for all endpoints."""

    def __init__(self, routes: Sequence[EndpointRoute], error_page: ErrorPage = plain_page) -> None:
        self._error_page = error_page
        self._routes = {route.path: route for route in routes}
        self._router = Router(
            [
                Route(route.path, self._answering(route), methods=_methods(route))
                for route in routes
            ],
            redirect_slashes=False,
            default=_not_found,
        )

    @property
    def endpoints(self) -> frozenset[tuple[str, str]]:
        """Method and path of every endpoint."""
        return frozenset((route.method, route.path) for route in self._routes.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["app"] = self
        request = Request(scope, receive)
        call = settled(request)
        scope.setdefault("state", {})["request_id"] = call.request_id
        try:
            check_version(request)
            await self._router(scope, receive, send)
        except HTTPException as error:
            await self._refuse(call, _routing_error(error), error)(scope, receive, send)
        except PersonalServerError as error:
            await self._refuse(call, error)(scope, receive, send)

    def _answering(self, route: EndpointRoute) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            call = settled(request)
            if request.method == "OPTIONS":
                return with_fixed_headers(_preflight(route), call.request_id)
            response = await self._endpoint(route, call)
            if route.cross_origin:
                response.headers.update(CROSS_ORIGIN)
            return with_fixed_headers(response, call.request_id)

        return respond

    async def _endpoint(self, route: EndpointRoute, call: Call) -> Response:
        try:
            return await route.endpoint(await _read(route, call))
        except ClientDisconnect:
            raise
        except PersonalServerError as error:
            return self._translated(route, call, error)
        except Exception as error:  # noqa: BLE001 (the boundary of the endpoints)
            _log_failure(error)
            internal = InternalError("Something went wrong on this server.")
            return self._translated(route, call, internal)

    def _translated(self, route: EndpointRoute, call: Call, error: PersonalServerError) -> Response:
        if route.page and not prefers_json(call.request.headers.get("accept", "")):
            return self._error_page(call.request, error)
        return _in_family(route.path, error, call.request_id)

    def _refuse(
        self, call: Call, error: PersonalServerError, cause: HTTPException | None = None
    ) -> Response:
        path = call.request.url.path
        nothing_there = isinstance(error, NotFound)
        render = server_error if nothing_there else partial(_in_family, path)
        response = render(error, call.request_id)
        allow = (cause.headers or {}).get("Allow") if cause else None
        if allow:
            response.headers["Allow"] = ", ".join(sorted(allow.split(", ")))
        route = self._routes.get(path)
        if route is not None and route.cross_origin:
            response.headers.update(CROSS_ORIGIN)
        return with_fixed_headers(response, call.request_id)


async def _read(route: EndpointRoute, call: Call) -> Call:
    if route.open_query:
        parameters, resources, repeated = query_parameters(call.request)
        return replace(call, parameters=parameters, resources=resources, repeated=repeated)
    known_query(call.request)
    if route.content_type is None:
        return call
    body = await read_small_body(call.request, route.content_type, route.limit)
    if route.content_type == FORM:
        parameters, resources = parse_form(body)
        return replace(call, parameters=parameters, resources=resources)
    return replace(call, body=body)


def _in_family(path: str, error: PersonalServerError, request_id: str) -> Response:
    if path.startswith("/oauth/"):
        return oauth_error(error, request_id)
    return server_error(error, request_id)


def _methods(route: EndpointRoute) -> list[str]:
    return [route.method, "OPTIONS"] if route.cross_origin else [route.method]


def _preflight(route: EndpointRoute) -> Response:
    methods = "GET, HEAD, OPTIONS" if route.method == "GET" else f"{route.method}, OPTIONS"
    headers = {**NO_STORE, **CROSS_ORIGIN, **PREFLIGHT, "Access-Control-Allow-Methods": methods}
    return answer(None, 204, headers)


def _routing_error(error: HTTPException) -> PersonalServerError:
    allow = (error.headers or {}).get("Allow")
    if allow:
        return MethodNotAllowed(f"Only {allow} is answered here.")
    return NotFound("There is nothing at this address.")


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive, send
    raise HTTPException(404)


def _log_failure(error: Exception) -> None:
    """Where it happened and which kind; never its text, which may quote what it failed on."""
    frames = extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown"
    _log.error("unexpected %s at %s", type(error).__name__, place)


def no_owner_session(request: Request) -> bool:
    """Without a console nobody is signed in."""
    del request
    return False


@dataclass(frozen=True, slots=True)
class AuthorizationParts:
    """What the authorization server stands on.

    `owner_session` and `error_page` come from the console; `fetch` is the network.
    """

    store: AuthorizationStore
    catalogs: Catalogs
    clock: Callable[[], int]
    random_bytes: RandomBytes
    configuration: Configuration = field(default_factory=Configuration)
    fetch: GuardedFetch = field(default_factory=GuardedFetch)
    owner_session: OwnerSession = no_owner_session
    error_page: ErrorPage = plain_page


def authorization_app(parts: AuthorizationParts) -> Frame:
    """The ASGI application of `frame.SEGMENTS` and `frame.WELL_KNOWN`."""
    return Frame(_routes(parts), parts.error_page)


def _routes(parts: AuthorizationParts) -> list[EndpointRoute]:
    store, configuration, clock = parts.store, parts.configuration, parts.clock
    limits = Limits(clock)
    documents = Documents(store, configuration, limits, clock, parts.fetch)
    clients = Clients(store, configuration, documents, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    redeeming = Redeeming(store, clock, parts.random_bytes)
    overlap = configuration.refresh_overlap_seconds
    rotating = Rotating(store, clock, parts.random_bytes, overlap)
    authorizing = Authorizing(clients, requesting, configuration, limits)
    registering = Registering(store, configuration, limits, clock, parts.random_bytes)
    devices = DeviceAuthorizing(clients, requesting, configuration, limits)
    tokens = TokenEndpoint(clients, redeeming, rotating, configuration, limits)
    revoking = Revoking(clients, store, clock)
    introspecting = Introspecting(store, parts.catalogs, limits, clock)
    grants = Grants(store, parts.catalogs, clock, parts.owner_session)
    metadata = Metadata(configuration)
    routes = [
        EndpointRoute(
            "GET", "/.well-known/oauth-authorization-server", metadata.get, cross_origin=True
        ),
        EndpointRoute("GET", "/oauth/authorize", authorizing.get, open_query=True, page=True),
        EndpointRoute("POST", "/oauth/par", authorizing.push, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/token", tokens.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/device_authorization", devices.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/revoke", revoking.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/introspect", introspecting.post, FORM),
        EndpointRoute("GET", "/grants/current", grants.current),
        EndpointRoute("POST", "/grants/{grant_id}/revoke", grants.end_grant),
        EndpointRoute("POST", "/grant-packages/{package_id}/revoke", grants.end_package),
    ]
    if configuration.dynamic_registration:
        routes.append(
            EndpointRoute("POST", "/oauth/register", registering.post, JSON, MAX_REGISTRATION, True)
        )
    return routes
