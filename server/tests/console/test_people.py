from __future__ import annotations

import re
from functools import partial
from html import unescape

from pdpp_kernel.person_fields import identity_of
from pdpp_kernel.persons import merged
from personal_server.collecting.persons import turn_on
from server.tests.console.browsing import Browser, marked, numbers
from server.tests.console.household import HOME, Household, mails

PEOPLE = "/owner/people"


def test_where_persons_are_off_the_page_says_how_to_turn_them_on(browser: Browser) -> None:
    assert marked(browser.get(PEOPLE), "persons-off")
    assert browser.get(f"{PEOPLE}/prs_x").error == "not_found"


def test_a_page_of_a_person_says_what_they_wrote_when_and_where(
    house: Household, browser: Browser
) -> None:
    turn_on(house.records, house.clock(), house.random_bytes)
    page = browser.get(PEOPLE)
    lines = marked(page, "person")
    assert len(lines) > 2
    links = re.findall(rf'href="({PEOPLE}/[^"]+)"', page.text)
    (alan,) = [link for link, line in zip(links, lines, strict=True) if "Alan Turing" in line]
    shown = browser.get(alan)
    assert "alan@example.org" in marked(shown, "identity")
    places = marked(shown, "place")
    assert any("Home mailbox" in place for place in places)
    written = re.findall(rf'<a href="(/owner/records/{HOME}/messages/m\d+)"', shown.text)
    assert written == sorted(written)  # the newest mail has the lowest number
    opened = browser.get(written[0])
    assert "Alan Turing" in opened.text
    assert numbers(shown, "mentions")
    assert browser.get(f"{PEOPLE}/prs_x").error == "not_found"


def test_a_person_with_many_addresses_loses_none_of_their_records(
    house: Household, browser: Browser
) -> None:
    addresses = [f"maria-{'m' * 40}{number}@example.org" for number in range(9)]
    (like,) = mails(house.clock(), 1)
    of_her = [
        like | {"id": f"maria{number}", "from_name": "Maria", "from_address": address}
        for number, address in enumerate(addresses)
    ]
    house.fill(HOME, "messages", of_her)
    turn_on(house.records, house.clock(), house.random_bytes)
    first, *others = (identity_of(address) for address in addresses)
    for other in others:
        assert first is not None
        assert other is not None
        house.records.correct_persons(partial(merged, one=first, other=other))
    links = re.findall(rf'href="({PEOPLE}/[^"]+)"', browser.get(PEOPLE).text)
    found = (browser.get(link) for link in links)
    shown = next(page for page in found if addresses[0] in marked(page, "identity"))
    (place,) = marked(shown, "place")
    assert f" {len(addresses)} " in place
    rest = re.findall(r'data-field="all-written" href="([^"]+)"', shown.text)
    listed = [re.findall(r"/messages/(maria\d+)", browser.get(unescape(e)).text) for e in rest]
    assert {key for keys in listed for key in keys} == {mail["id"] for mail in of_her}
