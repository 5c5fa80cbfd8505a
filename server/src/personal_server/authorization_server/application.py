"""The authorization server put together; the composition root mounts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from starlette.responses import Response

from pdpp_kernel.errors import BodyTooLarge, PersonalServerError, UnsupportedMediaType
from pdpp_kernel.oauth_errors import BadRequest, RequestTooLarge
from personal_server.authorization_server.authorization_endpoint import Authorizing
from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.client_metadata import Documents
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.device import DeviceAuthorizing
from personal_server.authorization_server.endpoint_requests import (
    EndpointRequest,
    parse_form,
    parse_query,
)
from personal_server.authorization_server.grants import Grants, OwnerSession
from personal_server.authorization_server.introspection import Introspecting
from personal_server.authorization_server.metadata import KEYS_PATH, Metadata
from personal_server.authorization_server.registration import Registering
from personal_server.authorization_server.revocation import Revoking
from personal_server.authorization_server.token_endpoint import TokenEndpoint
from personal_server.consent.credentials import RandomBytes
from personal_server.domain.keyed_values import OwnSpace, ValueSpace
from personal_server.granting.codes import Redeeming
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.pending_requests import Requesting
from personal_server.granting.tokens import Rotating
from personal_server.reading.proofs import Proofs
from personal_server.reading.tokens import TokenUses
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import Catalogs
from personal_server.web.accept_headers import prefers_json
from personal_server.web.authorization_headers import shows_proof
from personal_server.web.error_responses import ErrorPage, json_error, oauth_error, plain_page
from personal_server.web.forms import FORM, JSON
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.limits import RateLimits
from personal_server.web.replies import NO_STORE
from personal_server.web.requests import IncomingRequest
from personal_server.web.routes import BodyRule, RouteDeclaration
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import Exchange, Surface

# The OAuth endpoints on the frame: what a call is to them, and how their errors look.
#
# Rule: an endpoint is a coroutine from an `EndpointRequest` to a response; it raises typed errors
# and never translates them.


EndpointHandler = Callable[[EndpointRequest], Awaitable[Response]]
SEGMENTS = frozenset({"oauth", "introspect", "grants", "grant-packages"})
WELL_KNOWN = frozenset({".well-known/oauth-authorization-server"})
FORM_BODY = BodyRule((FORM,), 128 * 1024)
REGISTRATION_BODY = BodyRule((JSON,), 32 * 1024)


@dataclass(frozen=True, slots=True)
class EndpointRoute(RouteDeclaration):
    """One endpoint.  `page` answers browsers in HTML."""

    endpoint: EndpointHandler
    page: bool = field(default=False, kw_only=True)


class AuthorizationApplication(Surface[EndpointRoute, None]):
    """The application of the endpoints; each judges for itself who calls."""

    def __init__(self, routes: Sequence[EndpointRoute], error_page: ErrorPage = plain_page) -> None:
        super().__init__(RouteTable(routes, "There is nothing at this address."))
        self._error_page = error_page

    @property
    def endpoints(self) -> frozenset[tuple[str, str]]:
        """Method and path of every endpoint."""
        return frozenset((route.method, route.pattern) for route in self.table.routes)

    async def identify(self, exchange: Exchange[EndpointRoute, None]) -> None:
        """Leave it to the endpoint: a client proves itself in the body that is read later."""

    async def answer(self, exchange: Exchange[EndpointRoute, None]) -> Response:
        """Let the endpoint answer."""
        route, request = exchange.route, exchange.request
        call = EndpointRequest(request, exchange.path, body=exchange.body)
        if route.open_query:
            parameters, resources, repeated = parse_query(request.raw_query)
            call = replace(call, parameters=parameters, resources=resources, repeated=repeated)
        elif route.body is FORM_BODY:
            parameters, resources = parse_form(exchange.body)
            call = replace(call, parameters=parameters, resources=resources)
        return await route.endpoint(call)

    def refuse(
        self, exchange: Exchange[EndpointRoute, None], error: PersonalServerError
    ) -> Response:
        """A page where a browser asks, else the family of the path.

        Source: docs/contract/authorization-server.md 0.
        """
        request, route = exchange.request, exchange.found
        if route is not None and route.page and not prefers_json(request.accept):
            return self._error_page(request, error)
        error.members.pop("back_to_app", None)  # a link of the page, no member of the wire
        if request.url.path.startswith("/oauth/") and exchange.match is not None:
            return oauth_error(_of_oauth(error), request.request_id)
        return json_error(
            _of_oauth(error),
            request.request_id,
            request.origin,
            with_proof=shows_proof(request.headers.get("authorization")),
        )

    def complete(self, exchange: Exchange[EndpointRoute, None], response: Response) -> None:
        """Nothing is kept that does not say so."""
        del exchange
        if "cache-control" not in response.headers:
            response.headers.update(NO_STORE)


def _of_oauth(error: PersonalServerError) -> PersonalServerError:
    """A body that is too large or of another type is `invalid_request` here."""
    if isinstance(error, BodyTooLarge):
        return RequestTooLarge(error.text)
    return BadRequest(error.text) if isinstance(error, UnsupportedMediaType) else error


def no_owner_session(request: IncomingRequest) -> bool:
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
    uses: TokenUses
    proofs: Proofs
    receipts: ConsentReceipts
    configuration: Configuration = field(default_factory=Configuration)
    fetch: GuardedFetch = field(default_factory=GuardedFetch)
    owner_session: OwnerSession = no_owner_session
    error_page: ErrorPage = plain_page
    space: ValueSpace = field(default_factory=OwnSpace)


def authorization_app(parts: AuthorizationParts) -> AuthorizationApplication:
    """The ASGI application of `SEGMENTS` and `WELL_KNOWN`."""
    return AuthorizationApplication(_routes(parts), parts.error_page)


def _routes(parts: AuthorizationParts) -> list[EndpointRoute]:
    store, configuration, clock = parts.store, parts.configuration, parts.clock
    limits = RateLimits(clock, parts.space)
    documents = Documents(store, configuration, limits, clock, parts.fetch, parts.space)
    clients = Clients(store, configuration, documents, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    redeeming = Redeeming(store, clock, parts.random_bytes)
    rotating = Rotating(store, clock, parts.random_bytes, parts.uses.flush)
    authorizing = Authorizing(clients, requesting, parts.proofs, configuration, limits)
    registering = Registering(store, configuration, limits, clock, parts.random_bytes)
    owner = OwnerSignIn(store, clock, parts.random_bytes)
    devices = DeviceAuthorizing(clients, requesting, owner, configuration, limits)
    tokens = TokenEndpoint(clients, redeeming, rotating, parts.proofs, configuration, limits)
    revoking = Revoking(clients, store, clock)
    introspecting = Introspecting(store, parts.catalogs, parts.uses, limits, clock)
    grants = Grants(
        store,
        parts.catalogs,
        parts.uses,
        parts.proofs,
        parts.receipts,
        clock,
        parts.owner_session,
    )
    metadata = Metadata(configuration, documents, parts.receipts)
    routes = [
        EndpointRoute("GET", "/.well-known/oauth-authorization-server", metadata.get, cors=True),
        EndpointRoute("GET", KEYS_PATH, metadata.keys, cors=True),
        EndpointRoute("GET", "/oauth/authorize", authorizing.get, open_query=True, page=True),
        EndpointRoute("POST", "/oauth/par", authorizing.push, body=FORM_BODY, cors=True),
        EndpointRoute("POST", "/oauth/token", tokens.post, body=FORM_BODY, cors=True),
        EndpointRoute(
            "POST", "/oauth/device_authorization", devices.post, body=FORM_BODY, cors=True
        ),
        EndpointRoute("POST", "/oauth/revoke", revoking.post, body=FORM_BODY, cors=True),
        EndpointRoute("POST", "/introspect", introspecting.post, body=FORM_BODY),
        EndpointRoute("GET", "/grants/current", grants.current),
        EndpointRoute("POST", "/grants/{grant_id}/revoke", grants.end_grant),
        EndpointRoute("POST", "/grant-packages/{package_id}/revoke", grants.end_package),
    ]
    if configuration.dynamic_registration:
        routes.append(
            EndpointRoute(
                "POST", "/oauth/register", registering.post, body=REGISTRATION_BODY, cors=True
            )
        )
    return routes
