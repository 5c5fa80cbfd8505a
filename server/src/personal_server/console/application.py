"""The pages on the frame: who visits, and how an error looks.

Rule: an endpoint is a plain function from console and visit to a response; it runs in a worker
thread, after session, query and form secret were judged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import (
    BodyTooLarge,
    InvalidRequest,
    OwnerSessionRequired,
    PersonalServerError,
)
from personal_server.console.pages import Templates
from personal_server.console.session import (
    PLACE,
    PageRequest,
    PageRoute,
    anonymous_request,
    check_csrf,
    entry_cookie,
    known_cookie,
    next_cookie,
    place_of,
    session_cookie,
    session_secret,
)
from personal_server.enforcement.filter_texts import filters_of
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.web.accept_headers import prefers_json
from personal_server.web.forms import FORM, Form, form_fields, leading_fields
from personal_server.web.refused_bodies import drain
from personal_server.web.requests import IncomingRequest
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import Exchange, Surface

NO_SUCH_PAGE = "There is no such page."
SEGMENTS = frozenset({"consent", "device", "owner", "assets", "icon.svg", "~"})


class ConsoleApplication(Surface[PageRoute, PageRequest]):
    """The application of the pages."""

    def __init__(self, sign_in: OwnerSignIn, pages: Templates, routes: Sequence[PageRoute]) -> None:
        super().__init__(RouteTable(routes, NO_SUCH_PAGE))
        self._sign_in = sign_in
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request below its place."""
        found = PLACE.match(scope.get("path", ""))
        if found is not None:
            raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
            scope = {
                **scope,
                "path": scope["path"][found.end() :],
                "raw_path": raw_path[found.end() :],
                "state": {**scope.get("state", {}), "place": found[0]},
            }
        await super().__call__(scope, receive, send)

    async def identify(self, exchange: Exchange[PageRoute, PageRequest]) -> None:
        """Find the session of a visit."""
        exchange.caller = await self.readers.run(self._visit, exchange)
        if exchange.query_refusal is not None:  # a page repeats no words of a link
            param = (exchange.query_refusal.param or "")[:80] or None
            exchange.query_refusal = InvalidRequest(
                "The address of this page has a parameter that the page does not know.", param=param
            )

    def _visit(self, exchange: Exchange[PageRoute, PageRequest]) -> PageRequest:
        request = exchange.request
        sent = request.cookies.get(session_cookie(request.origin))
        cookie = session_secret(request.origin, sent, place_of(request))
        session = None if cookie is None else self._sign_in.session(cookie)
        keyed = exchange.parameters.keyed.get("filter", ())
        return replace(
            anonymous_request(request),
            query=exchange.parameters.texts,
            filters=filters_of((each.path, each.value) for each in keyed),
            path=exchange.path,
            cookie=cookie,
            session=session,
            place="" if session is None else place_of(request),
            entry_csrf=request.cookies.get(entry_cookie(request.origin)),
            entry_next=request.cookies.get(next_cookie(request.origin)),
            known_browser=self._sign_in.recognized(
                request.cookies.get(known_cookie(request.origin))
            ),
        )

    async def read_body(self, exchange: Exchange[PageRoute, PageRequest]) -> None:
        """Read a form; more than that of nobody but the owner.  Raises: OwnerSessionRequired."""
        try:
            if exchange.route.takes is not None:
                exchange.identified.owner()
            await super().read_body(exchange)
        except (BodyTooLarge, OwnerSessionRequired):
            exchange.is_body_asked = True
            await drain(exchange.request.receive)  # else the browser never reads the answer
            raise

    async def answer(self, exchange: Exchange[PageRoute, PageRequest]) -> Response:
        """Let the page answer, for the owner or where it is open to all."""
        route, request = exchange.route, exchange.request
        visit = exchange.identified
        if route.body is not None:
            content_type = request.headers.get("content-type", "")
            spool = exchange.spool
            form = (
                _form(exchange)
                if spool is None
                else await self.writers.run(leading_fields, spool, content_type)
            )
            visit = replace(
                visit, form=form, body=exchange.body, spool=spool, content_type=content_type
            )
        if not route.open_to_all and visit.session is None:
            return self._to_sign_in(request, visit)
        if route.body is not None:
            check_csrf(request, visit)
        threads = self.readers if route.method == "GET" else self.writers
        return await threads.run(route.endpoint, visit)

    def _to_sign_in(self, request: IncomingRequest, visit: PageRequest) -> Response:
        if prefers_json(request.accept):
            raise OwnerSessionRequired("Sign in as the owner first.")
        return self._pages.go(visit, f"/owner/login?next={quote(visit.target, safe='')}")

    def refuse(
        self, exchange: Exchange[PageRoute, PageRequest], error: PersonalServerError
    ) -> Response:
        """A page, or JSON where a program asks."""
        as_json = prefers_json(exchange.request.accept)
        place = "" if exchange.caller is None else exchange.caller.place
        visit = replace(anonymous_request(exchange.request), place=place)
        return self._pages.failure(visit, error, as_json=as_json)


def _form(exchange: Exchange[PageRoute, PageRequest]) -> Form:
    sent = exchange.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return form_fields(exchange.body) if sent == FORM else ()
