from __future__ import annotations

from typing import Any

import pytest

from server.tests.console.browsing import Browser, Page, allow, press, words
from server.tests.console.household import HOME, WORK, Household, bank_request, mail_request


def adds(page: Page) -> str:
    """What the page says that the request adds."""
    return words(page).split("What it has already ")[1].split(" E-mail since")[0]


NARROW: dict[str, Any] = {"fields": ["subject"], "time_range": {"since": "2026-08-01"}}
NOTHING = "This request adds nothing that it could not read already."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"time_range": {"since": "2026-09-01"}, "fields": ["subject"]}, NOTHING),
        (NARROW, NOTHING),
        ({**NARROW, "fields": ["subject", "body"]}, "messages of E-mail: the fields body"),
        ({**NARROW, "instance_ids": [HOME, WORK]}, "messages of E-mail: the account Work mailbox"),
        ({"fields": ["subject"]}, "messages of E-mail: older records"),
        (
            {"fields": ["to", "subject"], "time_range": {"since": "2026-07-01"}},
            "messages of E-mail: the fields to, older records",
        ),
    ],
)
def test_what_reaches_further_than_an_earlier_grant_is_named(
    house: Household, browser: Browser, asked: dict[str, Any], said: str
) -> None:
    allow(browser, house.ask(mail_request(**NARROW)))
    shown = adds(browser.get(house.ask(mail_request(**asked))))
    assert shown.removeprefix("This request adds: ") == said


def test_an_end_and_named_records_are_limits_too(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(time_range={"until": "2026-08-01"})))
    assert "newer records" in adds(browser.get(house.ask(mail_request())))
    allow(browser, house.ask(mail_request(resources=["m001"])))
    assert adds(browser.get(house.ask(mail_request(resources=["m001"])))) == NOTHING
    allow(browser, house.ask(mail_request()))
    assert adds(browser.get(house.ask(mail_request()))) == NOTHING


def test_records_that_were_not_named_before_are_an_addition(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request(resources=["m001", "m002"])))
    assert adds(browser.get(house.ask(mail_request(resources=["m002"])))) == NOTHING
    for asked in ({"resources": ["m002", "m003"]}, {}):
        shown = adds(browser.get(house.ask(mail_request(**asked))))
        assert "records that were not named before" in shown


def test_another_purpose_is_an_addition(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    training = mail_request()
    training[0]["purpose_code"] = "https://pdpp.dev/purpose/ai_training"
    shown = adds(browser.get(house.ask(training)))
    assert shown == "This request adds: E-mail: another purpose"


def test_another_source_is_an_addition_and_nothing_chosen_is_none(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    assert "transactions of Bank statements" in adds(browser.get(house.ask(bank_request())))
    path = house.ask(None)
    page = browser.get(path)
    assert adds(page) == "Nothing is chosen yet."
    ticks = {"keep.0": "1", "stream.0.transactions": "1"}
    assert "transactions of Bank statements" in adds(press(browser, page, path, "preview", **ticks))


def test_what_was_ended_counts_for_nothing(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    allow(browser, house.ask([*mail_request(fields=["subject"]), *bank_request()]))
    first = browser.get("/owner/access").text.split('href="/owner/access/grt_')[1].split('"')[0]
    where = f"/owner/access/grt_{first}"
    browser.submit(browser.get(where), f"{where}/revoke")
    page = browser.get(house.ask(mail_request(fields=["subject", "body"])))
    assert "the fields body" in words(page)
