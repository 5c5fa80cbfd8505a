from __future__ import annotations

from typing import Any

import pytest

from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import RequestRow
from server.tests.console.browsing import SECOND, Browser, allow, marked, numbers, states
from server.tests.console.household import Household, mail_request

CODE = "WDJBMJHT"


def ask(house: Household, flow: str = "device") -> str:
    details = None if flow == "owner_device" else mail_request()
    facts: dict[str, Any] = {"picker": False} if flow == "owner_device" else {}
    return house.ask(
        details,
        flow=flow,
        redirect_uri=None,
        state=None,
        code_challenge=None,
        user_code_hash=secret_hash(CODE),
        device_code_hash=secret_hash("pdpp_dc_x"),
        expires_at_ns=house.clock.now_ns + 600 * SECOND,
        **facts,
    )


@pytest.mark.parametrize("typed", ["WDJB-MJHT", "wdjb mjht", " wdjbmjht "])
def test_a_right_code_leads_to_the_request(house: Household, browser: Browser, typed: str) -> None:
    path = ask(house)
    page = browser.submit(browser.get("/device"), "/device", user_code=typed)
    assert page.headers["location"] == path
    assert states(allow(browser, path)) == ["allowed"]


def test_a_code_in_the_address_is_shown_and_never_sent_by_itself(
    house: Household, browser: Browser
) -> None:
    ask(house)
    page = browser.get("/device?user_code=wdjb-mjht")
    assert page.status == 200
    assert 'value="WDJB-MJHT"' in page.text
    assert [row.opened_at_ns for row in house.rows(RequestRow)] == [None]


def test_the_code_needs_a_signed_in_owner(house: Household) -> None:
    page = house.browser().get("/device?user_code=WDJB-MJHT")
    assert page.headers["location"] == "/owner/login?next=%2Fdevice%3Fuser_code%3DWDJB-MJHT"


@pytest.mark.parametrize("typed", ["", "BBBB-BBBB", "WDJB", "<script>"])
def test_a_wrong_code_is_refused_in_one_wording(
    house: Household, browser: Browser, typed: str
) -> None:
    ask(house)
    page = browser.submit(browser.get("/device"), "/device", user_code=typed)
    assert (page.status, page.error) == (400, "invalid_user_code")


def test_an_expired_code_is_wrong_too(house: Household, browser: Browser) -> None:
    ask(house)
    house.clock.now_ns += 601 * SECOND
    page = browser.submit(browser.get("/device"), "/device", user_code=CODE)
    assert page.error == "invalid_user_code"


def test_five_wrong_codes_stop_the_guessing(house: Household, browser: Browser) -> None:
    ask(house)
    page = browser.get("/device")
    for _ in range(5):
        assert browser.submit(page, "/device", user_code="BBBBBBBB").status == 400
    refused = browser.submit(page, "/device", user_code=CODE)
    assert (refused.status, refused.error) == (429, "rate_limit_exceeded")
    assert numbers(refused, "wait") == [10]
    assert refused.headers["retry-after"] == "600"


def test_acting_as_the_owner_needs_a_tick(house: Household, browser: Browser) -> None:
    ask(house, "owner_device")
    sent = browser.submit(browser.get("/device"), "/device", user_code=CODE)
    where = sent.headers["location"]
    assert where == "/device/ar_0"
    page = browser.get(where)
    assert marked(page, "whole-access")
    assert "checked" not in page.text
    assert browser.submit(page, where, action="approve").status == 400
    done = browser.submit(page, where, action="approve", understood="yes")
    assert states(done) == ["allowed"]
    assert house.rows(RequestRow)[0].status == "approved"


def test_acting_as_the_owner_needs_a_fresh_sign_in(house: Household, browser: Browser) -> None:
    ask(house, "owner_device")
    page = browser.get("/device/ar_0")
    house.clock.now_ns += 301 * SECOND
    stale = browser.submit(page, "/device/ar_0", action="approve", understood="yes")
    assert 'action="/owner/logout"' in stale.text
    assert house.rows(RequestRow)[0].status == "pending"
    out = browser.submit(stale, "/owner/logout")
    assert out.headers["location"] == "/owner/login?next=%2Fdevice%2Far_0"


def test_acting_as_the_owner_can_be_denied(house: Household, browser: Browser) -> None:
    ask(house, "owner_device")
    denied = browser.submit(browser.get("/device/ar_0"), "/device/ar_0", action="deny")
    assert states(denied) == ["denied"]
    assert house.rows(RequestRow)[0].status == "denied"
    assert browser.get("/device/ar_0").error == "request_closed"


def test_an_owner_request_grants_nothing_on_the_consent_page(
    house: Household, browser: Browser
) -> None:
    path = ask(house, "owner_device")
    page = browser.get(path)
    assert 'value="approve"' not in page.text


def test_a_client_request_is_no_owner_request(house: Household, browser: Browser) -> None:
    ask(house)
    assert browser.get("/device/ar_0").error == "not_found"


@pytest.mark.parametrize("action", ["preview", "approve"])
def test_letting_a_device_act_as_the_owner_never_goes_through_the_consent_page(
    house: Household, browser: Browser, action: str
) -> None:
    path = ask(house, "owner_device")
    assert browser.get(path).error == "not_found"
    csrf = dict(browser.get("/owner/sign-ins").form("/owner/logout"))["_csrf"]
    page = browser.post(path, [("_csrf", csrf), ("action", action)])
    assert page.error == "not_found"
    assert [row.status for row in house.rows(RequestRow)] == ["pending"]
