from __future__ import annotations

from typing import Any

import pytest

from server.tests.console.browsing import Browser, Page, allow, marked, press
from server.tests.console.household import HOME, WORK, Household, bank_request, mail_request


def gains(page: Page) -> list[str]:
    """In what the request reaches further than what the app has, as the page marks it."""
    (found,) = marked(page, "already", "data-gains")
    assert bool(found) is bool(marked(page, "adds"))
    return found.split()


def adds(page: Page) -> str:
    """What the page says that the request adds."""
    return "; ".join(marked(page, "adds"))


NARROW: dict[str, Any] = {"fields": ["subject"], "time_range": {"since": "2026-08-01"}}


@pytest.mark.parametrize(
    ("asked", "gained", "name"),
    [
        ({"time_range": {"since": "2026-09-01"}, "fields": ["subject"]}, [], ""),
        (NARROW, [], ""),
        ({**NARROW, "fields": ["subject", "body"]}, ["fields"], "body"),
        ({**NARROW, "instance_ids": [HOME, WORK]}, ["accounts"], "Work mailbox"),
        ({"fields": ["subject"]}, ["older"], ""),
        (
            {"fields": ["to", "subject"], "time_range": {"since": "2026-07-01"}},
            ["fields", "older"],
            "to",
        ),
    ],
)
def test_what_reaches_further_than_an_earlier_grant_is_named(
    house: Household, browser: Browser, asked: dict[str, Any], gained: list[str], name: str
) -> None:
    allow(browser, house.ask(mail_request(**NARROW)))
    page = browser.get(house.ask(mail_request(**asked)))
    assert gains(page) == gained
    if gained:
        assert adds(page).startswith("messages of E-mail: ")
    assert name in adds(page)


def test_an_end_and_named_records_are_limits_too(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(time_range={"until": "2026-08-01"})))
    assert gains(browser.get(house.ask(mail_request()))) == ["newer"]
    allow(browser, house.ask(mail_request(resources=["m001"])))
    assert gains(browser.get(house.ask(mail_request(resources=["m001"])))) == []
    allow(browser, house.ask(mail_request()))
    assert gains(browser.get(house.ask(mail_request()))) == []


def test_records_that_were_not_named_before_are_an_addition(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request(resources=["m001", "m002"])))
    assert gains(browser.get(house.ask(mail_request(resources=["m002"])))) == []
    for asked in ({"resources": ["m002", "m003"]}, {}):
        assert gains(browser.get(house.ask(mail_request(**asked)))) == ["records"]


def test_another_purpose_is_an_addition(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    training = mail_request()
    training[0]["purpose_code"] = "https://pdpp.dev/purpose/ai_training"
    page = browser.get(house.ask(training))
    assert gains(page) == ["purpose"]
    assert adds(page).startswith("E-mail: ")


def test_another_source_is_an_addition_and_nothing_chosen_is_none(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    asked = browser.get(house.ask(bank_request()))
    assert gains(asked) == ["stream"]
    assert "transactions" in adds(asked)
    path = house.ask(None)
    page = browser.get(path)
    assert (gains(page), len(marked(page, "nothing-chosen"))) == ([], 1)
    ticks = {"keep.0": "1", "stream.0.transactions": "1"}
    assert gains(press(browser, page, path, "preview", **ticks)) == ["stream"]


def test_what_was_ended_counts_for_nothing(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    allow(browser, house.ask([*mail_request(fields=["subject"]), *bank_request()]))
    first = browser.get("/owner/access").text.split('href="/owner/access/grt_')[1].split('"')[0]
    where = f"/owner/access/grt_{first}"
    browser.submit(browser.get(where), f"{where}/revoke")
    page = browser.get(house.ask(mail_request(fields=["subject", "body"])))
    assert gains(page) == ["fields"]
