from __future__ import annotations

import pytest

from personal_server.collecting.sample import NAMES
from personal_server.storage.ports import Rebuild
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import allow, words
from server.tests.console.household import CHECKING, HOME, WORK, Household, mail_request


def test_the_overview_counts_what_there_is() -> None:
    house = Household()
    browser = house.signed_in()
    allow(browser, house.ask(mail_request()))
    house.collect()
    house.disclosures.append_disclosures([entry(1, record_count=7)])
    for path in ("/owner", "/owner/"):
        text = words(browser.get(path))
        assert "1 app has access now" in text
        assert "82 records from 3 accounts" in text
        assert "7 records read in seven days" in text
        assert "1 browser is signed in as you" in text
        assert "claude mcp add --transport http personal-data http://127.0.0.1:7662/mcp" in text


def test_records_that_are_being_stored_anew_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    house = Household()
    under_way = (Rebuild("cin_home", "messages", 10, 40),)
    monkeypatch.setattr(house.records, "rebuilds", lambda: under_way)
    assert "Records of “messages” are being stored anew: 10 of 40." in words(
        house.signed_in().get("/owner/")
    )


def test_requests_that_wait_are_shown_but_unentered_device_codes_are_not() -> None:
    house = Household()
    browser = house.signed_in()
    assert "Waiting for your decision" not in words(browser.get("/owner/"))
    path = house.ask(mail_request())
    house.ask(mail_request(), flow="device", redirect_uri=None)
    page = browser.get("/owner/")
    assert page.text.count("Look at it") == 1
    assert f'href="{path}"' in page.text
    assert "Wants to read: E-mail" in words(page)
    house.ask(None)
    assert "Lets you choose what to give" in words(browser.get("/owner/"))


def test_a_server_that_keeps_nothing_says_how_to_begin_and_offers_made_up_records() -> None:
    house = Household()
    for connection_id in (HOME, WORK, CHECKING):
        house.records.erase_connection(connection_id, house.clock.now_ns)
    browser = house.signed_in()
    page = browser.get("/owner/")
    assert "nothing is kept yet" in words(page)
    assert "import FILE" in words(page)
    assert "ask it:" not in words(page)
    assert browser.submit(page, "/owner/sample").status == 303
    after = browser.get("/owner/")
    assert "130 records from 2 accounts" in words(after)
    assert "nothing is kept yet" not in words(after)
    assert NAMES["mail"] in words(browser.get("/owner/sources"))
    again = browser.post("/owner/sample", page.form("/owner/sample"))
    assert again.error == "invalid_state"


def test_before_the_first_app_it_says_what_to_ask_first() -> None:
    house = Household()
    browser = house.signed_in()
    page = browser.get("/owner/")
    assert "Which mails of the last month still wait for an answer from me?" in words(page)
    assert "<details open>" in page.text
    allow(browser, house.ask(mail_request()))
    assert "<details open>" in browser.get("/owner/").text
    house.collect()
    assert "<details open>" not in browser.get("/owner/").text
