"""An app opens its request in a browser whose owner is signed in, in another tab."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import pytest
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import chromium
from tests.browser.site import SECONDS, Owner, Site
from tests.browser.visits import prepare

pytestmark = pytest.mark.browser


def test_the_signed_in_tab_asks_and_one_click_opens_the_request(running: Site) -> None:
    pages = prepare(running)
    address = pages["consent"]
    with chromium() as driver:
        owner, soon = Owner(driver, running), WebDriverWait(driver, SECONDS)
        owner.sign_in()
        signed_in = driver.current_window_handle
        driver.switch_to.new_window("tab")
        opened_by_app = driver.current_window_handle
        for opened in (pages["package"], pages["picker"], pages["training"], address):
            driver.get(opened)
            assert "/owner/login" in driver.current_url
            soon.until(lambda _: owner.find("[data-state=asked]").is_displayed())
        code = owner.find("[data-state=asked] strong").text
        driver.switch_to.window(signed_in)
        assert len(owner.all("[data-asked]")) == 3  # the newest of the four, and first the last
        question = owner.find("[data-asked]")
        assert code in question.text
        assert question.get_attribute("data-asked") == address.removeprefix(running.origin)
        question.find_element("css selector", "a").click()
        soon.until(lambda _: len(driver.window_handles) == 3)
        driver.switch_to.window(driver.window_handles[-1])
        soon.until(lambda _: owner.all('button[value="approve"]'))
        assert driver.current_url.startswith(f"{running.origin}/~")
        driver.switch_to.window(opened_by_app)
        soon.until(lambda _: owner.find("[data-state=taken]").is_displayed())
        assert "/~" not in driver.page_source  # the place of the session is told to no other tab
