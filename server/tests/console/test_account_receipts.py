"""Receipts stand at addresses of their own, and only those that this server made."""

from __future__ import annotations

from server.tests.console.browsing import Browser, numbers, words
from server.tests.console.household import HOME, Household

ROOT = "/owner/receipts"


def erase(browser: Browser) -> str:
    """Erase an account; the address of the receipt."""
    page = browser.get(f"/owner/sources/{HOME}")
    done = browser.submit(page, f"/owner/sources/{HOME}/erase", confirm=HOME)
    return done.headers["location"]


def test_a_receipt_can_be_loaded_again_also_by_another_browser_and_process(
    house: Household, browser: Browser
) -> None:
    place = erase(browser)
    assert place.startswith(f"{ROOT}/")
    told = words(browser.get(place))
    assert numbers(browser.get(place), "erase") == [40]
    assert "Home mailbox" in told
    house.clock.now_ns += 1_000_000_000
    house.app = house.console()
    assert words(house.signed_in().get(place)) == told


def test_its_address_tells_nothing_of_what_was_erased(browser: Browser) -> None:
    place = erase(browser)
    assert HOME not in place
    assert "Home" not in place


def test_nothing_but_what_this_server_sealed_is_a_receipt(
    house: Household, browser: Browser
) -> None:
    place = erase(browser)
    for other in (f"{ROOT}/none", place[:-2], f"{ROOT}/{'r' * 9_000}"):
        assert browser.get(other).error == "not_found"
    assert house.browser().get(place).status == 303  # a sign-in first
