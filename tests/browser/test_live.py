"""The log as it is read, in a browser that runs scripts."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.support.wait import WebDriverWait

from server.tests.cli.test_disclosures import entry
from tests.browser.chromium import chromium
from tests.browser.site import SECONDS, Owner, Site

pytestmark = pytest.mark.browser

KEPT = "return document.querySelector('h1').dataset.kept"
FOCUSED = "return document.activeElement.getAttribute('href')"


def test_the_log_shows_by_itself_what_was_read_and_keeps_the_place(running: Site) -> None:
    log = running.server.stores.disclosures
    subject = running.server.stores.records.subject_id
    log.append_disclosures([entry(1, subject_id=subject, client_id="first")])
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/disclosures")
        driver.execute_script("document.querySelector('h1').dataset.kept = 'yes'")
        link = owner.find("#lines a")
        driver.execute_script("arguments[0].focus()", link)
        held: Any = driver.execute_script(FOCUSED)
        log.append_disclosures([entry(2, subject_id=subject, client_id="second")])
        soon = WebDriverWait(driver, SECONDS)
        soon.until(lambda _: "second" in owner.find("#just-now").text)
        assert "second" in owner.find("#lines").text
        assert "second" in owner.find("#overview").text
        assert driver.execute_script(KEPT) == "yes"  # no new page
        assert driver.execute_script(FOCUSED) == held
        log.append_disclosures([entry(3, subject_id=subject, client_id="third")])
        soon.until(lambda _: "third" in owner.find("#just-now").text)
        assert "second" in owner.find("#just-now").text
