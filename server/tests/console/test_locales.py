"""Time and language: asked once, kept, changed, and never taken from the environment."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import InvalidState
from personal_server.console.locales import UnsetLocale, zones_by_region
from personal_server.owner_locale import OwnerLocale
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import Household


def test_the_overview_asks_until_it_was_answered(house: Household, browser: Browser) -> None:
    assert marked(browser.get("/owner/"), "no-time-zone")
    page = browser.get("/owner/locale")
    assert "<script" in page.text
    answer = browser.submit(page, "/owner/locale", time_zone="Europe/Berlin", language="de")
    assert (answer.status, answer.headers["location"]) == (303, "/owner/")
    assert house.locale.known == OwnerLocale("Europe/Berlin", "de")
    assert '<html lang="de">' in browser.get("/owner/").text
    again = browser.get("/owner/locale")
    assert "<script" not in again.text
    assert 'value="Europe/Berlin" selected' in again.text
    browser.submit(again, "/owner/locale", time_zone="UTC", language="")
    assert house.locale.known == OwnerLocale("UTC", None)
    assert not marked(browser.get("/owner/"), "no-time-zone")


@pytest.mark.parametrize(
    ("time_zone", "language"),
    [("Europe/Atlantis", ""), ("", ""), ("../UTC", ""), ("UTC", "xx"), ('UTC"\nx', "")],
)
def test_what_is_not_offered_is_refused(
    house: Household, browser: Browser, time_zone: str, language: str
) -> None:
    page = browser.get("/owner/locale")
    answer = browser.submit(page, "/owner/locale", time_zone=time_zone, language=language)
    assert (answer.status, answer.error) == (400, "invalid_request")
    assert house.locale.known == OwnerLocale()


def test_what_the_environment_sets_stays(house: Household, browser: Browser) -> None:
    fixed = OwnerLocale("Asia/Tokyo", "de", frozenset({"time_zone", "language"}))
    house.locale.known = fixed
    page = browser.get("/owner/locale")
    assert "PDPP_TIME_ZONE" in page.text
    assert "<select" not in page.text
    browser.submit(page, "/owner/locale", time_zone="UTC", language="en")
    assert house.locale.known == fixed


def test_a_server_that_keeps_nothing_says_so() -> None:
    with pytest.raises(InvalidState):
        UnsetLocale().keep("UTC", None)
    assert UnsetLocale()().zone == OwnerLocale("Europe/Nowhere").zone == "UTC"


def test_zones_stand_by_region_as_people_name_them() -> None:
    regions = zones_by_region()
    assert ("America/New_York", "New York") in regions["America"]
    assert not {"Etc", "US", "SystemV"} & set(regions)
