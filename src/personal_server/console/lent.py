"""What the console lends to the authorization server: the owner's session and the error page.

Source: AS contract 0, 5.1, 10.3, 13.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from personal_server.console.frame import origin_of, stranger
from personal_server.console.pages import Pages
from personal_server.console.visits import check_csrf, session_cookie
from personal_server.errors import PersonalServerError
from personal_server.granting.owner_sessions import OwnerSignIn


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
