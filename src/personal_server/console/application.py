"""The console put together: every page on its frame.  The composition root mounts it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from traceback import extract_tb
from urllib.parse import quote

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from personal_server.console.access import AccessPages
from personal_server.console.apps import ClientPages
from personal_server.console.consent_page import ConsentPages
from personal_server.console.device import DevicePages, UserCodeThrottle
from personal_server.console.disclosures import RecordsPages
from personal_server.console.home import HomePage
from personal_server.console.pages import ICON, STYLESHEET, STYLESHEET_NAME, Pages
from personal_server.console.session import (
    PageRoute,
    Visit,
    check_csrf,
    check_version,
    entry_cookie,
    known_query,
    next_cookie,
    origin_of,
    session_cookie,
    stranger,
)
from personal_server.console.sign_in import SignInPages, SignInThrottle
from personal_server.errors import (
    InternalError,
    MethodNotAllowed,
    NotFound,
    OwnerSessionRequired,
    PersonalServerError,
)
from personal_server.granting.decisions import Granting
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.pending_requests import Requesting
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import KnownDeclarations, StoredCatalogs
from personal_server.storage.ports import DisclosureStore
from personal_server.web.bodies import read_form
from personal_server.web.requests import prefers_json

# The console as an ASGI application: routes, who visits, and the one place errors become pages.
#
# Rule: an endpoint is a plain function from console and visit to a response; it runs in a worker
# thread, after session, query and form secret were judged here.


SEGMENTS = frozenset({"consent", "device", "owner", "assets", "icon.svg"})
_log = logging.getLogger("personal_server.console")


class Frame:
    """Answers for all pages."""

    def __init__(self, sign_in: OwnerSignIn, pages: Pages, routes: Sequence[PageRoute]) -> None:
        self._sign_in = sign_in
        self._pages = pages
        self._router = Router(
            [
                Route(path, self._answering(path, routes), methods=_methods(routes, path))
                for path in dict.fromkeys(route.path for route in routes)
            ],
            redirect_slashes=False,
            default=_not_found,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["app"] = self  # lets the router raise what it refuses
        request = Request(scope, receive)
        try:
            check_version(request)
            await self._router(scope, receive, send)
        except HTTPException as error:
            named = (error.headers or {}).get("Allow", "")
            allow = ", ".join(sorted(named.split(", ")))
            refusal = (
                MethodNotAllowed(f"This page takes {allow}.") if allow else NotFound("No page.")
            )
            response = self._failure(request, refusal)
            if allow:
                response.headers["Allow"] = allow
            await response(scope, receive, send)
        except PersonalServerError as error:
            await self._failure(request, error)(scope, receive, send)
        except Exception as error:  # noqa: BLE001 (the boundary of the pages)
            _log_failure(error)
            internal = InternalError("Something went wrong on this server.")
            await self._failure(request, internal)(scope, receive, send)

    def _answering(
        self, path: str, routes: Sequence[PageRoute]
    ) -> Callable[[Request], Awaitable[Response]]:
        by_method = {route.method: route for route in routes if route.path == path}

        async def answer(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._answer(request, by_method[method])

        return answer

    async def _answer(self, request: Request, route: PageRoute) -> Response:
        """Judge the visit, then let the page answer.  Raises: PersonalServerError."""
        visit = await anyio.to_thread.run_sync(self._visit, request, route)
        if request.method == "POST":
            visit = replace(visit, form=await read_form(request))
        if not route.open_to_all and visit.session is None:
            return self._to_sign_in(request, visit)
        if request.method == "POST":
            check_csrf(request, visit)
        return await anyio.to_thread.run_sync(route.endpoint, visit)

    def _visit(self, request: Request, route: PageRoute) -> Visit:
        origin = origin_of(request)
        cookie = request.cookies.get(session_cookie(origin))
        return replace(
            stranger(request),
            query=known_query(request, route.query),
            path={name: str(value) for name, value in request.path_params.items()},
            cookie=cookie,
            session=None if cookie is None else self._sign_in.session(cookie),
            entry_csrf=request.cookies.get(entry_cookie(origin)),
            entry_next=request.cookies.get(next_cookie(origin)),
        )

    def _to_sign_in(self, request: Request, visit: Visit) -> Response:
        if prefers_json(request.headers.get("accept", "")):
            raise OwnerSessionRequired("Sign in as the owner first.")
        return self._pages.go(visit, f"/owner/login?next={quote(visit.target, safe='')}")

    def _failure(self, request: Request, error: PersonalServerError) -> Response:
        as_json = prefers_json(request.headers.get("accept", ""))
        return self._pages.failure(stranger(request), error, as_json=as_json)


def _methods(routes: Sequence[PageRoute], path: str) -> list[str]:
    return [route.method for route in routes if route.path == path]


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive, send
    raise NotFound("There is no such page.")


def _log_failure(error: Exception) -> None:
    """Where it failed and how, without the error's text: that may hold a stored value."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    _log.error("A page failed: %s at %s", type(error).__name__, " < ".join(reversed(places[-6:])))


# The icon and the stylesheet: public files of the console.
#
# Source: docs/contract/authorization-server.md 12.1 (the icon is public), 12.4 (CORS).


_ICON_HEADERS = {
    "Cache-Control": "public, max-age=86400",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}
_STYLESHEET_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}


def icon(visit: Visit) -> Response:
    """`/icon.svg`."""
    del visit
    return Response(ICON, 200, _ICON_HEADERS, "image/svg+xml")


def stylesheet(visit: Visit) -> Response:
    """The one stylesheet, under a name that changes with its content."""
    del visit
    return Response(STYLESHEET, 200, _STYLESHEET_HEADERS, "text/css")


ASSET_ROUTES = (
    PageRoute("GET", "/icon.svg", icon, open_to_all=True),
    PageRoute("GET", f"/assets/{STYLESHEET_NAME}", stylesheet, open_to_all=True),
)


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the pages stand on."""

    server_name: str
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    declarations: KnownDeclarations
    random_bytes: Callable[[int], bytes]
    sign_in: OwnerSignIn


def console_app(parts: ConsoleParts) -> Frame:
    """The ASGI application of `frame.SEGMENTS`."""
    pages, clock, store = Pages(parts.server_name), parts.reads.clock, parts.authorization
    catalogs = StoredCatalogs(parts.reads.store, parts.declarations)
    granting = Granting(store, catalogs, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    evidence = EvidenceReader(parts.reads, parts.declarations)
    log, reads = parts.disclosures, parts.reads
    routes = (
        *ASSET_ROUTES,
        *SignInPages(parts.sign_in, pages, SignInThrottle(clock)).routes(),
        *ConsentPages(granting, evidence, pages, clock).routes(),
        *DevicePages(store, requesting, granting, pages, UserCodeThrottle(clock), clock).routes(),
        *HomePage(store, log, reads, catalogs, parts.sign_in, pages, clock).routes(),
        *AccessPages(store, log, catalogs, pages, clock).routes(),
        *ClientPages(store, pages, clock).routes(),
        *RecordsPages(store, log, reads, catalogs, pages, clock).routes(),
    )
    return Frame(parts.sign_in, pages, routes)


# What the console lends to the authorization server: the owner's session and the error page.
#
# Source: docs/contract/authorization-server.md 0, 5.1, 10.3, 13.3.


def owner_session(sign_in: OwnerSignIn) -> Callable[[Request], bool]:
    """Whether a request comes from a signed-in owner; its form secret travels in a header.

    Raises: CsrfFailed if a signed-in browser was made to send it.
    """

    def judge(request: Request) -> bool:
        cookie = request.cookies.get(session_cookie(origin_of(request)))
        session = None if cookie is None else sign_in.session(cookie)
        if session is None:
            return False
        visit = replace(stranger(request), session=session)
        check_csrf(request, visit)
        return True

    return judge


def error_page(server_name: str) -> Callable[[Request, PersonalServerError], Response]:
    """The page of an error that may not be redirected."""
    pages = Pages(server_name)

    def page(request: Request, error: PersonalServerError) -> Response:
        return pages.failure(stranger(request), error, as_json=False)

    return page
