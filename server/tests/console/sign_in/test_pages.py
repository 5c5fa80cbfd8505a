"""Guessing is slowed for everybody at once, as a page and as JSON; the owner's links still work."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from server.tests.console.browsing import ORIGIN, SECOND, Browser, Page
from server.tests.console.household import Household


@dataclass
class At:
    """The pages as the outermost application calls them: with where the browser is."""

    app: Any
    address: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = {"client_address": self.address, "request_id": "req_1", "origin": ORIGIN}
        await self.app({**scope, "state": state}, receive, send)


PASSWORD = "a password of the owner"
HOUR = 3_600 * SECOND


def refused(browser: Browser, page: Page, path: str, **fields: str) -> int:
    """The seconds to wait, told alike as a page and as JSON."""
    shown = browser.submit(page, path, **fields)
    assert (shown.status, shown.error) == (429, "rate_limit_exceeded")
    form = [(n, v) for n, v in page.form(path) if n not in fields]
    told = browser.post(path, [*form, *fields.items()], accept="application/json")
    assert (told.status, json.loads(told.text)["error"]["code"]) == (429, "rate_limit_exceeded")
    assert told.headers["retry-after"] == shown.headers["retry-after"]
    return int(shown.headers["retry-after"])


def test_sixty_wrong_passwords_an_hour_stop_everybody_but_whoever_has_a_link() -> None:
    house = Household()
    house.sign_in.set_password(PASSWORD)
    for number in range(15):
        browser = Browser(At(house.app, f"198.51.100.{number}"))
        page = browser.get("/owner/login")
        for _ in range(4):
            assert browser.submit(page, "/owner/login", password="no").status == 401
    browser = Browser(At(house.app, "198.51.100.99"))
    page = browser.get("/owner/login")
    assert refused(browser, page, "/owner/login", password=PASSWORD) == 3_600
    assert house.signed_in().get("/owner/").status == 200
    house.clock.now_ns += HOUR
    assert browser.submit(page, "/owner/login", password=PASSWORD).status == 303


def test_twenty_wrong_codes_an_hour_stop_every_session() -> None:
    house = Household()
    for _ in range(4):
        browser = house.signed_in()
        page = browser.get("/device")
        for _ in range(5):
            assert browser.submit(page, "/device", user_code="BBBB-BBBB").status == 400
    fresh = house.signed_in()
    page = fresh.get("/device")
    wait_seconds = refused(fresh, page, "/device", user_code="BBBB-BBBB")
    assert wait_seconds == 3_600
    house.clock.now_ns += HOUR
    assert fresh.submit(page, "/device", user_code="BBBB-BBBB").status == 400
