from __future__ import annotations

import re

from personal_server.collecting.persons import turn_on
from server.tests.console.browsing import Browser, marked, numbers
from server.tests.console.household import HOME, Household

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
