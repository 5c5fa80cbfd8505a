from __future__ import annotations

import pytest

from personal_server.collecting.sample import NAMES
from personal_server.domain.hosts import FIRST_QUESTIONS
from personal_server.domain.stored import Rebuild
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import allow, marked, numbers, words
from server.tests.console.household import CHECKING, HOME, WORK, Household, mail_request
from server.tests.console.test_feed_pages import FakeSignUps


def test_the_overview_counts_what_there_is() -> None:
    house = Household()
    browser = house.signed_in()
    allow(browser, house.ask(mail_request()))
    house.collect()
    house.disclosures.append_disclosures([entry(1, record_count=7)])
    for path in ("/owner", "/owner/"):
        page = browser.get(path)
        text = words(page)
        assert numbers(page, "active-access") == [1]
        assert numbers(page, "records") == [82, 3]
        assert numbers(page, "read-lately") == [7]
        assert numbers(page, "browsers") == [1]
        assert numbers(page, "read")[-1] == 7
        assert len(marked(page, "connect-another")) == 1
        assert "claude mcp add" not in text
    apps = words(browser.get("/owner/clients"))
    assert "claude mcp add --transport http personal-data http://127.0.0.1:7662/mcp" in apps


def test_records_that_are_being_stored_anew_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    house = Household()
    under_way = (Rebuild("cin_home", "messages", 10, 40),)
    monkeypatch.setattr(house.records, "rebuilds", lambda: under_way)
    page = house.signed_in().get("/owner/")
    assert numbers(page, "rebuild") == [10, 40]
    assert "messages" in marked(page, "rebuild")[0]


def test_requests_that_wait_are_shown_but_unentered_device_codes_are_not() -> None:
    house = Household()
    browser = house.signed_in()
    assert not marked(browser.get("/owner/"), "waiting")
    path = house.ask(mail_request())
    house.ask(mail_request(), flow="device", redirect_uri=None)
    page = browser.get("/owner/")
    assert page.text.count('href="/consent/') == 1
    assert f'href="{path}"' in page.text
    (wants,) = marked(page, "wants")
    assert "E-mail" in wants
    house.ask(None)
    assert len(marked(browser.get("/owner/"), "picker")) == 1


def test_a_server_that_keeps_nothing_says_how_to_begin_and_offers_made_up_records() -> None:
    house = Household()
    for connection_id in (HOME, WORK, CHECKING):
        house.records.erase_connection(connection_id, house.clock.now_ns)
    browser = house.signed_in()
    assert not marked(browser.get("/owner/"), "add-feed")  # this server follows no accounts
    house.sign_ups = lambda: FakeSignUps(house.feeds)
    house.app = house.console()
    browser = house.signed_in()
    page = browser.get("/owner/")
    assert marked(page, "empty")
    assert "import FILE" in words(page)
    assert marked(page, "add-feed")
    assert not marked(page, "first-question")
    assert browser.submit(page, "/owner/sample").status == 303
    after = browser.get("/owner/")
    assert numbers(after, "records") == [130, 2]
    assert not marked(after, "empty")
    assert NAMES["mail"] in words(browser.get("/owner/records"))
    again = browser.post("/owner/sample", page.form("/owner/sample"))
    assert again.error == "invalid_state"


def test_before_the_first_app_it_says_what_to_ask_first() -> None:
    house = Household()
    browser = house.signed_in()
    page = browser.get("/owner/")
    assert FIRST_QUESTIONS["mail"] in marked(page, "first-question")[0]
    assert "<details open>" in page.text
    allow(browser, house.ask(mail_request()))
    assert "<details open>" in browser.get("/owner/").text
    house.collect()
    assert "<details open>" not in browser.get("/owner/").text


def test_without_a_model_it_says_how_search_finds_by_meaning() -> None:
    house = Household()
    assert "semantic install" in marked(house.signed_in().get("/owner/"), "no-meaning")[0]
