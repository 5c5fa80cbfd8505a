"""On a loopback origin the cookie, which every port of the machine gets, is half a secret only."""

from __future__ import annotations

import re

import pytest

from personal_server.web.logs import mask_secrets
from server.tests.console.browsing import SECOND, Browser, allow
from server.tests.console.household import Household, mail_request

PAGES = ("/owner/", "/owner/access", "/owner/sign-ins", "/device")


def with_cookies_of(browser: Browser, place: str = "") -> Browser:
    """What another program of the machine has, once the browser visited its port."""
    return Browser(browser.app, browser.origin, dict(browser.cookies), place)


@pytest.mark.parametrize("place", ["", "/~AAAAAAAAAAAAAAAAAAAAAA", "/~short"])
def test_the_cookie_of_another_port_opens_nothing(house: Household, place: str) -> None:
    thief = with_cookies_of(house.signed_in(), place)
    for path in PAGES:
        page = thief.get(path)
        assert page.status in (303, 404), path
        assert "/owner/login" in page.headers.get("location", "/owner/login")


def test_the_place_alone_opens_nothing_either(house: Household) -> None:
    owner = house.signed_in()
    stranger = Browser(owner.app, owner.origin, {}, owner.place)
    assert stranger.get("/owner/").headers["location"].startswith("/owner/login")


def test_every_link_and_form_of_a_page_stays_in_its_place(house: Household) -> None:
    owner = house.signed_in()
    owner.place, place = "", owner.place
    for path in PAGES:
        page = owner.get(place + path)
        assert page.status == 200
        found = re.findall(r'(?:href|action|formaction)="(/[^"]*)"', page.text)
        inside = [one for one in found if not one.startswith(("/assets/", "/icon.svg"))]
        assert inside
        assert {one[: len(place)] for one in inside} == {place}


def test_with_https_there_is_no_place(house: Household) -> None:
    owner = house.signed_in("https://me.example")
    assert (owner.place, owner.get("/owner/").status) == ("", 200)


def test_a_request_that_comes_without_place_begins_with_a_sign_in(house: Household) -> None:
    owner = house.signed_in()
    path = house.ask(mail_request(), house.client())
    owner.place = ""
    to_login = owner.get(path)
    assert to_login.headers["location"].startswith("/owner/login?next=%2Fconsent%2F")
    owner.get(to_login.headers["location"])
    page = owner.get(f"/owner/enter?t={house.sign_in.make_link()}")
    entered = owner.submit(page, "/owner/enter")
    assert entered.headers["location"] == path
    assert owner.get(path).status == 200


def test_a_place_is_masked_in_logs(house: Household) -> None:
    place = house.signed_in().place
    assert place not in mask_secrets(f"GET {place}/owner/ 200")


def test_without_password_and_passkey_the_session_at_its_place_is_proof_enough(
    house: Household,
) -> None:
    owner = house.signed_in()
    house.clock.now_ns += 901 * SECOND
    assert allow(owner, house.ask(mail_request(), house.client())).status == 303
    public = house.signed_in("https://me.example")
    house.clock.now_ns += 901 * SECOND
    assert 'value="approve"' not in public.get(house.ask(mail_request())).text


def test_allowing_needs_a_fresh_sign_in(house: Household) -> None:
    house.sign_in.set_password("correct horse battery")
    owner = house.signed_in()
    house.clock.now_ns += 901 * SECOND
    path = house.ask(mail_request(), house.client())
    page = owner.get(path)
    assert 'value="approve"' not in page.text
    fields = [*page.form(path), ("action", "approve")]
    refused = owner.post(path, fields)
    assert (refused.status, refused.error) == (401, "owner_session_required")
    again = owner.post("/owner/logout", page.form(path))  # where its button leads
    owner.get(again.headers["location"])
    link = owner.get(f"/owner/enter?t={house.sign_in.make_link()}")
    assert owner.submit(link, "/owner/enter").headers["location"] == path
    assert allow(owner, path).status == 303
