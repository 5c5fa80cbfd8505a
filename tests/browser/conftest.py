"""One listening server and fresh browsers for the journeys."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.chromium import chromium, is_installed, kept_browsers
from tests.browser.site import Owner, Site, site

ABSENT = (
    "Chromium and its driver are not installed here (Debian: chromium chromium-driver); CI has them"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell, rather than fail, on a machine that has no browser."""
    if is_installed():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=ABSENT))


@pytest.fixture(scope="session", autouse=True)
def browsers() -> Generator[None]:
    """A worker starts a browser with scripts and one without, and empties them after each test."""
    with kept_browsers():
        yield


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
