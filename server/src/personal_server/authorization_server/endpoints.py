"""The OAuth endpoints on the frame: what a call is to them, and how their errors look.

Rule: an endpoint is a coroutine from an `EndpointRequest` to a response; it raises typed errors
and never translates them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import BodyTooLarge, PersonalServerError, UnsupportedMediaType
from pdpp_kernel.oauth_errors import BadRequest, RequestTooLarge
from personal_server.authorization_server.endpoint_requests import (
    EndpointRequest,
    parse_form,
    parse_query,
)
from personal_server.web.accept_headers import prefers_json
from personal_server.web.authorization_headers import shows_proof
from personal_server.web.error_responses import ErrorPage, json_error, oauth_error, plain_page
from personal_server.web.forms import FORM, JSON
from personal_server.web.replies import NO_STORE
from personal_server.web.requests import IncomingRequest
from personal_server.web.routes import BodyRule, RouteDeclaration
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import Exchange, Surface

EndpointHandler = Callable[[EndpointRequest], Awaitable[Response]]
SEGMENTS = frozenset({"oauth", "introspect", "grants", "grant-packages"})
WELL_KNOWN = frozenset({".well-known/oauth-authorization-server", ".well-known/jwks.json"})
FORM_BODY = BodyRule((FORM,), 128 * 1024)
REGISTRATION_BODY = BodyRule((JSON,), 32 * 1024)


@dataclass(frozen=True, slots=True)
class EndpointRoute(RouteDeclaration):
    """One endpoint.  `page` answers browsers in HTML."""

    endpoint: EndpointHandler
    page: bool = field(default=False, kw_only=True)


class AuthorizationApplication(Surface[EndpointRoute, EndpointRequest]):
    """The application of the endpoints; each judges for itself who calls.

    Shapes: `caller` of an exchange is the call, with the client that it names.
    """

    def __init__(self, routes: Sequence[EndpointRoute], error_page: ErrorPage = plain_page) -> None:
        super().__init__(RouteTable(routes, "There is nothing at this address."))
        self._error_page = error_page

    @property
    def endpoints(self) -> frozenset[tuple[str, str]]:
        """Method and path of every endpoint."""
        return frozenset((route.method, route.pattern) for route in self.table.routes)

    async def identify(self, exchange: Exchange[EndpointRoute, EndpointRequest]) -> None:
        """Leave it to the endpoint: a client proves itself in the body that is read later."""

    async def answer(self, exchange: Exchange[EndpointRoute, EndpointRequest]) -> Response:
        """Let the endpoint answer."""
        route, request = exchange.route, exchange.request
        call = EndpointRequest(request, exchange.path, body=exchange.body)
        if route.open_query:
            parameters, resources, repeated = parse_query(request.raw_query)
            call = replace(call, parameters=parameters, resources=resources, repeated=repeated)
        elif route.body is FORM_BODY:
            parameters, resources = parse_form(exchange.body)
            call = replace(call, parameters=parameters, resources=resources)
        exchange.caller = call
        return await route.endpoint(call)

    def is_readable_anywhere(self, exchange: Exchange[EndpointRoute, EndpointRequest]) -> bool:
        """As the route says, but never what the owner's own programs are told."""
        caller = exchange.caller
        return super().is_readable_anywhere(exchange) and not (caller and caller.is_of_owner)

    def refuse(
        self, exchange: Exchange[EndpointRoute, EndpointRequest], error: PersonalServerError
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

    def complete(
        self, exchange: Exchange[EndpointRoute, EndpointRequest], response: Response
    ) -> None:
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
