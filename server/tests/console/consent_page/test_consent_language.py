"""The consent page in its reader's language: every text of ours is of the catalogue."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.console.consent_words import HIDDEN
from personal_server.console.words import field_words
from server.tests.console.browsing import Page, allow, press, words
from server.tests.console.household import Household, bank_request, mail_request
from server.tests.console.test_languages import DATA, marked_browser, unmarked

# Names of accounts, and what the records hold in the fields that can be limited by.
HELD = ("Home mailbox", "Work mailbox", "Checking account", "app.example", "example.org")
VALUES = ("Bakery", "Rent", "Pharmacy", "Railway", "EUR", "out", "true", "false")


def data() -> list[str]:
    """What sources call their kinds, fields and views, in the pieces that are looked at."""
    named: list[str] = [*DATA, *HELD, *VALUES]
    raws: tuple[Any, ...] = (MAIL, BANK)
    for raw in raws:
        named.append(raw["display"]["name"])
        for stream in raw["streams"]:
            named += [stream["name"], *map(field_words, stream["schema"]["properties"])]
            said = [*stream["display"].values(), *(v["label"] for v in stream.get("views", ()))]
            named += [part.strip() for text in said for part in re.split(r"[,;:()]", text)]
    return named


def unsaid(page: Page) -> list[str]:
    """What a page says that no catalogue holds, but for data and masked data."""
    return [text for text in unmarked(page, *data()) if HIDDEN not in text]


def test_a_consent_page_says_nothing_that_no_catalogue_holds() -> None:
    house, browser = marked_browser()
    allow(browser, house.ask(mail_request(fields=["subject"])))
    narrow: dict[str, Any] = {"time_range": {"since": "2026-08-01"}}
    pages = {
        "picker": browser.get(house.ask(None)),
        "package": browser.get(house.ask([*mail_request(**narrow), *bank_request()])),
    }
    path = house.ask([{**mail_request()[0], "events": True}])
    page = browser.get(path)
    wrong = {
        "since.0.messages": "2099-01-01",
        "others.0.messages/from_address": "grace@example.org",
    }
    pages["nothing"] = press(browser, page, path, "preview", **wrong)
    for name, shown in pages.items():
        assert unsaid(shown) == [], name


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "approve", "expiry": "7y"},
        {"action": "preview", "only.0.messages/subject": "x"},
        {"action": "preview", "others.0.messages/from_address": "a" * 3_000},
        {"action": "preview", "since.0.messages": "yesterday"},
        {"action": "preview", "until.0.messages": "1999-01-01", "since.0.messages": "2001-01-01"},
        {"action": "preview", "records_per_day": "many"},
        {"action": "preview", "field.0.messages": "nothing"},
        {"action": "preview", "stream.0.nothing": "1"},
        {"action": "preview", "conn.0": "cin_gone"},
        {"action": "approve", "review": "another"},
        {"action": "nothing"},
        {"quick": "9999"},
    ],
)
def test_what_consent_refuses_is_said_in_the_readers_language(fields: dict[str, str]) -> None:
    house, browser = marked_browser()
    path = house.ask(mail_request())
    page = browser.submit(browser.get(path), path, **fields)
    assert page.error is not None
    assert [text for text in unsaid(page) if text not in fields.values()] == []


def test_a_german_reader_decides_in_german() -> None:
    house = Household()
    page = house.signed_in().get(house.ask(mail_request()), accept_language="de")
    for said in ("Eine App möchte Ihre Datensätze lesen", "40 Datensätze", "Erlauben", "Ablehnen"):
        assert said in words(page)
    assert "16. Feb. 2027" in words(page)
