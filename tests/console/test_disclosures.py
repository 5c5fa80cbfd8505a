from __future__ import annotations

from personal_server.domain.disclosure import DENIED
from personal_server.sources.bank.reader import DECLARATION as BANK
from tests.cli.test_disclosures import entry
from tests.console.browsing import Browser, allow, words
from tests.console.household import DAY, Household, mail_request


def test_sources_tell_what_is_kept_per_account_and_who_reads_it(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    text = words(browser.get("/owner/sources"))
    assert "Home mailbox active 40 records" in text
    assert "Work mailbox active 12 records" in text
    assert "Your payments transactions 30" in text
    assert "Read by Notes app." in text
    assert "No app may read it." in text
    assert "Lunch" not in text


def test_disclosures_are_a_table_with_a_plot(house: Household, browser: Browser) -> None:
    house.disclosures.append_disclosures(
        [
            entry(1, record_count=7),
            entry(2, at_ns=house.clock.now_ns - DAY, record_count=14),
            entry(3, outcome=DENIED, error_code="field_not_granted", record_count=0),
            entry(4, at_ns=house.clock.now_ns - 40 * DAY, record_count=500),
        ]
    )
    page = browser.get("/owner/disclosures")
    text = words(page)
    assert "21 records read in 30 days" in text
    assert "at most 14 a day" in text
    assert page.text.count("<rect") == 2
    assert "refused: field not granted" in text
    assert "listed records" in text


def test_older_disclosures_are_a_page_further(house: Household, browser: Browser) -> None:
    house.disclosures.append_disclosures([entry(number) for number in range(1, 61)])
    page = browser.get("/owner/disclosures")
    assert 'href="/owner/disclosures?before=11"' in page.text
    older = browser.get("/owner/disclosures?before=11")
    assert older.text.count('<th scope="row"') == 10
    assert browser.get("/owner/disclosures?before=x").error == "invalid_request"


def test_an_empty_log_says_so(browser: Browser) -> None:
    assert "Nothing has been read yet." in words(browser.get("/owner/disclosures"))


def test_sources_tell_what_their_description_says_otherwise(
    house: Household, browser: Browser
) -> None:
    streams = [{**BANK["streams"][0], "semantics": "append"}, *BANK["streams"][1:]]
    house.declare(
        {**BANK, "declaration_version": "2", "streams": streams, "profiles": ["https://x.example"]}
    )
    text = words(browser.get("/owner/sources"))
    assert "/streams/0/semantics Read as append_only." in text
    assert "Kept, and not interpreted: /profiles" in text
