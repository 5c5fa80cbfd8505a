from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.errors import CsrfFailed, InvalidRequest, PersonalServerError
from pdpp_kernel.oauth_errors import InvalidClient, InvalidRedirectUri
from personal_server.console.owner_session import error_page, owner_session
from personal_server.console.pages import NEXT_STEPS
from personal_server.web.requests import IncomingRequest
from server.tests.console.browsing import ORIGIN
from server.tests.console.household import Household


def request(**headers: str) -> IncomingRequest:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/grants/grt_1/revoke",
        "query_string": b"",
        "headers": raw,
        "state": {"origin": ORIGIN, "request_id": "req_1", "client_address": "203.0.113.7"},
    }
    return IncomingRequest(scope)


def cookie_of(house: Household) -> tuple[str, str, str]:
    """The cookie header, the place and the form secret of a signed-in browser."""
    browser = house.signed_in()
    csrf = dict(browser.get("/owner/sign-ins").form("/owner/logout"))["_csrf"]
    return "; ".join(f"{n}={v}" for n, v in browser.cookies.items()), browser.place, csrf


def test_a_signed_in_owner_with_the_form_secret_is_the_owner() -> None:
    house = Household()
    cookie, place, csrf = cookie_of(house)
    judge = owner_session(house.sign_in)
    proof = {"x_csrf_token": csrf, "origin": ORIGIN}
    assert judge(request(cookie=cookie, x_session_place=place, **proof))
    assert not judge(request(cookie=cookie, **proof))
    assert not judge(request(x_session_place=place, **proof))
    other = "pdpp_owner_7662=other"
    assert not judge(request(cookie=other, x_session_place=place, **proof))


def test_a_browser_that_was_made_to_send_it_is_refused() -> None:
    house = Household()
    cookie, place, csrf = cookie_of(house)
    judge = owner_session(house.sign_in)
    for headers in (
        {"x_csrf_token": csrf, "origin": "https://evil.example"},
        {"x_csrf_token": csrf},
        {"origin": ORIGIN},
        {"x_csrf_token": "x", "origin": ORIGIN},
    ):
        with pytest.raises(CsrfFailed):
            judge(request(cookie=cookie, x_session_place=place, **headers))


@pytest.mark.parametrize("error", [InvalidClient("x"), InvalidRedirectUri("x")])
def test_an_error_of_the_app_tells_the_person_what_to_do(error: PersonalServerError) -> None:
    page = bytes(error_page("Ada's server")(request(), error).body).decode()
    assert f'data-error="{error.code}"' in page
    assert str(NEXT_STEPS[error.code]) in page


def test_the_error_page_is_ours_with_its_code() -> None:
    response = error_page("Ada's server")(request(), InvalidRequest("No."))
    assert response.status_code == 400
    assert b'data-error="invalid_request"' in response.body
    assert response.headers["x-frame-options"] == "DENY"
