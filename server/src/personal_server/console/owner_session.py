"""The owner's session and the error page, for the authorization server.

Source: docs/contract/authorization-server.md 0, 5.1, 10.3, 13.3.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import PersonalServerError
from personal_server.console.pages import Templates
from personal_server.console.session import (
    anonymous_request,
    check_csrf,
    session_cookie,
    session_secret,
)
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.owner_locale import OwnerLocale
from personal_server.web.requests import IncomingRequest

PLACE_HEADER = "x-session-place"


def owner_session(sign_in: OwnerSignIn) -> Callable[[IncomingRequest], bool]:
    """Whether a request comes from a signed-in owner; form secret and place travel in headers.

    Raises: CsrfFailed if a signed-in browser was made to send it.
    """

    def judge(request: IncomingRequest) -> bool:
        sent = request.cookies.get(session_cookie(request.origin))
        cookie = session_secret(request.origin, sent, request.headers.get(PLACE_HEADER, ""))
        session = None if cookie is None else sign_in.session(cookie)
        if session is None:
            return False
        visit = replace(anonymous_request(request), session=session)
        check_csrf(request, visit)
        return True

    return judge


def error_page(
    server_name: str, locale: Callable[[], OwnerLocale] = OwnerLocale
) -> Callable[[IncomingRequest, PersonalServerError], Response]:
    """The page of an error that may not be redirected."""
    pages = Templates(server_name, locale)

    def page(request: IncomingRequest, error: PersonalServerError) -> Response:
        return pages.failure(anonymous_request(request), error, as_json=False)

    return page
