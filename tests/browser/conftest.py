"""One listening server and fresh browsers for the journeys."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site, site


@pytest.fixture
def running(tmp_path: Path) -> Generator[Site]:
    with site(tmp_path) as found:
        yield found


@pytest.fixture
def browser() -> Generator[webdriver.Chrome]:
    """Chromium with scripts switched off."""
    with chromium(scripts=False) as driver:
        yield driver


@pytest.fixture
def owner(browser: webdriver.Chrome, running: Site) -> Owner:
    made = Owner(browser, running)
    made.sign_in()
    return made
