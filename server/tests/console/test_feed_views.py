"""What pages say of feeds: on the account they fill, and on the overview where one is stale."""

from __future__ import annotations

import pytest

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.feeds.feed_sentences import advice
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import HOME, WORK, Household
from server.tests.feeds.test_feed_states import NOW, a_feed


def test_an_account_shows_the_feeds_that_fill_it(house: Household, browser: Browser) -> None:
    house.feeds.append(a_feed(connection_ids=(HOME,), succeeded_at_ns=NOW))
    (shown,) = marked(browser.get(f"/owner/sources/{HOME}"), "feed")
    assert "Downloads" in shown
    assert "/home/ada/Downloads" in shown
    assert marked(browser.get(f"/owner/sources/{WORK}"), "feed") == []
    assert marked(browser.get("/owner/"), "stale-feed") == []


@pytest.mark.parametrize(
    ("state", "failures", "told"), [("needs_you", 1, 1), ("resting", 3, 1), ("resting", 2, 0)]
)
def test_the_overview_names_what_is_stale(
    house: Household, browser: Browser, state: str, failures: int, told: int
) -> None:
    house.feeds.append(
        a_feed(state=state, failures=failures, code="folder_gone", failing_since_ns=NOW)
    )
    assert len(marked(browser.get("/owner/"), "stale-feed")) == told


def test_the_overview_names_what_is_silent(house: Household, browser: Browser) -> None:
    arrived = NOW - 30 * DAY_NANOSECONDS
    silent = a_feed(arrivals=9, brought_at_ns=arrived, succeeded_at_ns=NOW)
    house.feeds.append(silent)
    (shown,) = marked(browser.get("/owner/"), "stale-feed")
    assert str(advice(silent)) in shown


def test_the_owner_has_a_feed_of_the_account_look_now(house: Household, browser: Browser) -> None:
    house.feeds.append(a_feed(connection_ids=(HOME,)))
    page, check = browser.get(f"/owner/sources/{HOME}"), f"/owner/sources/{HOME}/check"
    action = f"{browser.place}{check}" if f"{browser.place}{check}" in page.text else check
    assert browser.submit(page, action).status == 303
    assert house.asked == ["fee_1"]
    assert browser.submit(page, action, feed="fee_2").status == 404
    assert browser.submit(page, action, _csrf="wrong").error == "csrf_failed"
    other = [*page.form(action)]
    assert browser.post(f"/owner/sources/{WORK}/check", other).status == 404
    assert house.asked == ["fee_1"]


@pytest.mark.parametrize(
    ("state", "code"), [("paused", None), ("running", None), ("needs_you", "sign_in_refused")]
)
def test_one_that_is_paused_runs_or_wants_a_password_has_no_button(
    house: Household, browser: Browser, state: str, code: str | None
) -> None:
    house.feeds.append(a_feed(connection_ids=(HOME,), state=state, code=code))
    assert "/check" not in browser.get(f"/owner/sources/{HOME}").text
