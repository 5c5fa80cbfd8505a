"""Every page by axe-core (npm, locked): nothing that it knows of keeps anybody out."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest
from selenium import webdriver

from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site
from tests.browser.visits import PAGES, STATES, prepare, show
from tests.conformance.suite import INSTALLED, needs_suite

pytestmark = [pytest.mark.browser, pytest.mark.conformance, needs_suite]

AXE = INSTALLED / "node_modules" / "axe-core" / "axe.min.js"
OPEN_ALL = "for (const d of document.querySelectorAll('details')) d.open = true"
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(
  (found) => done(found.violations.map((v) => [v.id, ...v.nodes.map((n) => n.target.join(' '))])),
  (error) => done([['axe', String(error)]]));
"""
# A desktop, the same at 200 % (half as many pixels of CSS), and the narrowest phone, in the dark.
VIEWS = ((1280, 1, "light"), (640, 2, "light"), (320, 1, "dark"))


def test_axe_finds_nothing_on_any_page_at_any_size(running: Site) -> None:
    axe = AXE.read_text(encoding="utf-8")
    found: list[tuple[str, int, object]] = []
    with chromium() as driver:
        driver.set_script_timeout(60)
        owner = Owner(driver, running)
        owner.sign_in()
        addresses = prepare(running)
        for name in (*PAGES, *STATES):
            show(owner, name, addresses)
            driver.execute_script(OPEN_ALL)
            driver.execute_script(axe)
            for width, scale, scheme in VIEWS:
                look_at(driver, width, scale, scheme)
                violations: Any = driver.execute_async_script(RUN)
                found += [(name, width, each) for each in violations]
                wide: Any = driver.execute_script("return document.documentElement.scrollWidth")
                if wide > width:
                    found.append((name, width, f"{wide} pixels wide"))
            look_at(driver, *VIEWS[0])
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
