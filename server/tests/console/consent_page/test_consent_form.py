from __future__ import annotations

import json

import pytest

from pdpp_kernel.oauth_errors import NotANarrowing
from personal_server.consent.choices import Choices, EntryChoice
from personal_server.console import consent_page
from personal_server.granting.audit import Acting
from personal_server.granting.decisions import Granting
from personal_server.granting.reviews import Review
from personal_server.storage.authorization_rows import ReviewArtifactRow
from server.tests.console.browsing import Browser, marked, numbers, press
from server.tests.console.household import Household, bank_request, mail_request

OWNER = Acting("owner")
ENDS = ("since", "until")


def reviewed(house: Household, request: list[dict[str, object]]) -> Review:
    granting = Granting(house.authorization, house.store.catalogs, house.clock, house.random_bytes)
    return granting.view(house.ask(request).removeprefix("/consent/"), OWNER)


def test_last_days_begin_at_midnight_and_only_where_there_is_a_time() -> None:
    house = Household()
    review = reviewed(house, [*mail_request(), *bank_request()])
    choices = consent_page.with_last_days(review, "30", house.clock())
    assert choices.entry(0).stream("messages").since == "2026-10-19"
    assert choices.entry(1).stream("transactions").since == "2026-10-19"


def test_last_days_leave_a_window_that_ended_before_as_it_is() -> None:
    house = Household()
    review = reviewed(house, mail_request(time_range={"until": "2026-06-01"}))
    choices = consent_page.with_last_days(review, "30", house.clock())
    assert choices.entry(0).stream("messages").since == ""


@pytest.mark.parametrize("days", ["", "31", "-1", "x"])
def test_only_the_offered_shortcuts_exist(days: str) -> None:
    house = Household()
    with pytest.raises(NotANarrowing):
        consent_page.with_last_days(reviewed(house, mail_request()), days, house.clock())


def test_a_view_keeps_the_floor_and_what_was_asked() -> None:
    house = Household()
    review = reviewed(house, mail_request(fields=["subject", "from_address"]))
    choices = consent_page.with_view(review, "0.messages.traffic")
    assert choices.entry(0).stream("messages").fields == {"id", "sent_at", "from_address"}


@pytest.mark.parametrize("name", ["", "0", "0.messages", "0.messages.x", "7.messages.traffic"])
def test_a_view_that_does_not_exist_changes_nothing(name: str) -> None:
    house = Household()
    review = reviewed(house, mail_request())
    assert consent_page.with_view(review, name).entry(0).stream("messages").fields is None


def test_everything_left_out_is_a_denial_only_where_there_are_several() -> None:
    none = Choices(entries={0: EntryChoice(), 1: EntryChoice()})
    some = Choices(entries={0: EntryChoice(keep=True)})
    several = (("several", "1"),)
    assert consent_page.leaves_all_out(several, none)
    assert not consent_page.leaves_all_out(several, some)
    assert not consent_page.leaves_all_out((), none)


def test_a_shortcut_fills_in_recent_days(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.submit(browser.get(path), path, quick="30")
    assert numbers(page, "figure")[0] == 7
    assert 'value="2026-10-19"' in page.text
    press(browser, page, path, "approve")
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["time_constraint"] == {"field": "sent_at", "since": "2026-10-19T00:00:00Z"}


def test_a_shortcut_never_reaches_further_back_than_the_request(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request(time_range={"since": "2026-11-01"}))
    page = browser.submit(browser.get(path), path, quick="365")
    assert page.status == 200
    press(browser, page, path, "approve")
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["time_constraint"]["since"] == "2026-11-01T00:00:00Z"


def test_once_and_standing_can_be_changed_to_and_fro(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    once = press(browser, browser.get(path), path, "preview", mode="single_use")
    assert "19 Nov 2026" in marked(once, "ends")[0]
    standing = press(browser, once, path, "preview", mode="continuous")
    assert standing.status == 200
    assert "16 Feb 2027" in marked(standing, "ends")[0]
    hour = press(browser, once, path, "preview", expiry="1h")
    assert press(browser, hour, path, "approve").status == 303
    (row,) = house.rows(ReviewArtifactRow)
    assert json.loads(row.artifact)["access_mode"] == "single_use"


def test_a_mistyped_time_keeps_the_other_choices(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    chosen = browser.submit(browser.get(path), path, view="0.messages.traffic")
    times = {"since.0.messages": "2026-11-01", "until.0.messages": "2026-10-01"}
    refused = press(browser, chosen, path, "approve", expiry="30d", **times)
    assert (refused.status, refused.error) == (400, "not_a_narrowing")
    assert 'name="since.0.messages" value="2026-11-01"' in refused.text
    typed = 'name="until.0.messages" value="2026-10-01" aria-invalid="true"'
    assert typed in refused.text
    assert refused.text.count("autofocus") == 1
    mended = press(browser, refused, path, "preview", **{f"{end}.0.messages": "" for end in ENDS})
    assert press(browser, mended, path, "approve").status == 303
    (row,) = house.rows(ReviewArtifactRow)
    artifact = json.loads(row.artifact)
    assert artifact["sources"][0]["streams"][0]["fields"] == ["id", "sent_at", "from_address", "to"]
    assert artifact["expires_at"].startswith("2026-12-18")


def test_a_declared_view_is_a_shortcut_too(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.submit(browser.get(path), path, view="0.messages.traffic")
    press(browser, page, path, "approve")
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["fields"] == ["id", "sent_at", "from_address", "to"]
