"""Requests that wait: named alike in two tabs, asked about in the one that is signed in."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from personal_server.storage.authorization_rows import RequestRow
from server.tests.console.browsing import SECOND, Browser, Page
from server.tests.console.household import Household, mail_request


def code_of(page: Page) -> list[str]:
    return re.findall(r'data-field="code">([0-9 ]+)<', page.text)


def asked(browser: Browser, destination: str) -> Page:
    return browser.get(f"/owner/asked?next={quote(destination, safe='')}")


@pytest.fixture
def owner(house: Household) -> Browser:
    return house.signed_in()


def test_the_tab_that_is_signed_in_asks_with_the_number_of_the_other(
    house: Household, owner: Browser
) -> None:
    path = house.ask(mail_request(), house.client())
    stranger = house.browser()
    login = stranger.get(stranger.get(path).headers["location"])
    (code,) = set(code_of(login))
    assert "script-src 'self';" in login.headers["content-security-policy"]
    question = asked(owner, path)
    assert code_of(question) == [code]
    assert f'href="{path}"' in question.text
    assert "Notes app" in question.text
    assert code_of(owner.get("/owner/")) == [code]  # where no script runs
    assert owner.place not in login.text


def test_the_code_of_a_device_stands_on_no_page_and_in_no_channel(house: Household) -> None:
    stranger = house.browser()
    login = stranger.get(stranger.get("/device?user_code=WDJB-MJHT").headers["location"])
    assert "WDJB" not in login.text
    assert "script-src" not in login.headers["content-security-policy"]


@pytest.mark.parametrize(
    "destination",
    [
        "/consent/ar_x",
        "/owner/access",
        "https://evil.example/consent/ar_0",
        "/device",
        "/device?user_code=WDJB-MJHT",
        "",
    ],
)
def test_nothing_else_is_asked_about(owner: Browser, destination: str) -> None:
    assert asked(owner, destination).status == 404


def test_only_the_owner_is_told_who_asks(house: Household) -> None:
    path = house.ask(mail_request(), house.client())
    assert asked(house.browser(), path).status == 303


def test_with_https_no_tab_needs_to_ask(house: Household) -> None:
    path = house.ask(mail_request(), house.client())
    stranger = house.browser("https://me.example")
    login = stranger.get(stranger.get(path).headers["location"])
    assert code_of(login) == []
    assert "script-src" not in login.headers["content-security-policy"]


def test_the_requests_of_one_app_are_one_line_and_go_by_one_click(
    house: Household, owner: Browser
) -> None:
    house.client()
    paths = [house.ask(mail_request()) for _ in range(3)]
    house.clock.now_ns += SECOND
    home = owner.get("/owner/")
    (dismissal,) = re.findall(r'action="([^"]+/dismiss)"', home.text)
    fields = [("_csrf", dict(home.form("/owner/logout"))["_csrf"])]
    assert owner.post(dismissal, fields).status == 303
    assert "/dismiss" not in owner.get("/owner/").text
    assert {row.status for row in house.rows(RequestRow)} == {"denied"}
    assert owner.get(paths[0]).status == 410
    unproven = [("_csrf", "x")]
    assert owner.post("/owner/requests/ar_0/dismiss", unproven).error == "csrf_failed"


def test_requests_go_by_themselves(house: Household, owner: Browser) -> None:
    house.ask(mail_request(), house.client())
    house.clock.now_ns += 24 * 3_600 * SECOND
    assert "/dismiss" not in house.signed_in().get("/owner/").text
