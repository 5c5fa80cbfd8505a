"""The console as an ASGI application: routes, who visits, and the one place errors become pages.

Rule: an endpoint is a plain function from console and visit to a response; it runs in a worker
thread, after session, query and form secret were judged here.
"""

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

from personal_server.console.pages import Pages
from personal_server.console.visits import (
    Visit,
    check_csrf,
    check_version,
    entry_cookie,
    known_query,
    next_cookie,
    prefers_json,
    session_cookie,
)
from personal_server.errors import (
    InternalError,
    MethodNotAllowed,
    NotFound,
    OwnerSessionRequired,
    PersonalServerError,
)
from personal_server.granting.owner_sessions import OwnerSignIn, Visitor
from personal_server.web.bodies import read_form

Endpoint = Callable[[Visit], Response]
SEGMENTS = frozenset({"consent", "device", "owner", "assets", "icon.svg"})
_log = logging.getLogger("personal_server.console")


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One page.  `open_to_all` pages are reached without a session."""

    method: str
    path: str
    endpoint: Endpoint
    query: frozenset[str] = frozenset()
    open_to_all: bool = False


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


def stranger(request: Request) -> Visit:
    """A visit of which nothing is known but the request."""
    state = request.scope.get("state", {})
    query = request.url.query
    return Visit(
        method=request.method,
        origin=origin_of(request),
        request_id=state.get("request_id", "req_unknown"),
        visitor=Visitor(state.get("client_address"), request.headers.get("user-agent")),
        path={},
        query={},
        target=request.url.path + (f"?{query}" if query and request.method != "POST" else ""),
    )


def origin_of(request: Request) -> str:
    """The origin the request was made on, as the outermost application settled it."""
    settled: object = request.scope.get("state", {}).get("origin")
    return settled if isinstance(settled, str) else str(request.base_url).rstrip("/")


def _methods(routes: Sequence[PageRoute], path: str) -> list[str]:
    return [route.method for route in routes if route.path == path]


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive, send
    raise NotFound("There is no such page.")


def _log_failure(error: Exception) -> None:
    """Where it failed and how, without the error's text: that may hold a stored value."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    _log.error("A page failed: %s at %s", type(error).__name__, " < ".join(reversed(places[-6:])))
