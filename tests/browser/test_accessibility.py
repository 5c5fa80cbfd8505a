"""Every page by axe-core (npm, locked): nothing that it knows of keeps anybody out."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest
from selenium import webdriver

from tests.browser.chromium import chromium
from tests.browser.page_facts import NARROWEST, OPEN_ALL, assert_page_fits
from tests.browser.site import Owner, Site
from tests.browser.visits import PAGES, STATES, prepare, show
from tests.conformance.suite import INSTALLED, needs_suite

pytestmark = [pytest.mark.browser, pytest.mark.conformance, needs_suite]

AXE = INSTALLED / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(
  (found) => done(found.violations.map((v) => [v.id, ...v.nodes.map((n) => n.target.join(' '))])),
  (error) => done([['axe', String(error)]]));
"""
SCRIPT_SECONDS = 240  # one, but on a machine that is busy with much else
DESKTOP = (1280, 1, "light")
TWICE_AS_LARGE = (640, 2, "light")  # the same at 200 %: half as many pixels of CSS
PHONE = (NARROWEST, 1, "dark")
LIGHT_PHONE = (NARROWEST, 1, "light")
VIEWS = (
    pytest.param(DESKTOP, id="desktop", marks=pytest.mark.long),
    pytest.param(TWICE_AS_LARGE, id="twice-as-large", marks=pytest.mark.long),
    pytest.param(PHONE, id="phone"),
)


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_on_any_page_at_any_size_and_each_fits_a_phone(
    running: Site, view: tuple[int, int, str]
) -> None:
    axe, width = AXE.read_text(encoding="utf-8"), view[0]
    found: list[tuple[str, int, object]] = []
    with chromium() as driver:
        driver.set_script_timeout(SCRIPT_SECONDS)
        owner = Owner(driver, running)
        owner.sign_in()
        addresses = prepare(running)
        for name in (*PAGES, *STATES):
            show(owner, name, addresses)
            driver.execute_script(OPEN_ALL)
            if view == PHONE:
                look_at(driver, *LIGHT_PHONE)
                assert_page_fits(owner, name, running.origin)
            driver.execute_script(axe)
            look_at(driver, *view)
            violations: Any = driver.execute_async_script(RUN)
            found += [(name, width, each) for each in violations]
            wide: Any = driver.execute_script("return document.documentElement.scrollWidth")
            if wide > width:
                found.append((name, width, f"{wide} pixels wide"))
            look_at(driver, *DESKTOP)
    assert found == [], "\n".join(map(str, found))


def look_at(driver: webdriver.Chrome, width: int, scale: int, scheme: str) -> None:
    """The same page as another screen shows it."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": scale, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},  # no colour between two others
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
