"""A household and its signed-in owner."""

from __future__ import annotations

import pytest

from server.tests.console.browsing import Browser
from server.tests.console.household import Household


@pytest.fixture
def house() -> Household:
    return Household()


@pytest.fixture
def browser(house: Household) -> Browser:
    return house.signed_in()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts beside a list are given up after a fifth of a second: here a busy machine has more."""
    monkeypatch.setattr("personal_server.console.record_pages.FIGURES_SECONDS", 60.0)
    monkeypatch.setattr("personal_server.console.stream_pages.FIGURES_SECONDS", 60.0)
    monkeypatch.setattr("personal_server.console.search_chips.FIGURES_SECONDS", 60.0)
