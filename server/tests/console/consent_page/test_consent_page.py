from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from personal_server.storage.authorization_rows import (
    GrantRow,
    PackageRow,
    ReadingLimitsRow,
    RequestRow,
    ReviewArtifactRow,
)
from server.tests.console.browsing import Browser, allow, marked, numbers, press, states, words
from server.tests.console.household import WORK, Household, bank_request, mail_request

TRAINING = "https://pdpp.dev/purpose/ai_training"


def test_without_a_session_the_owner_signs_in_first(house: Household) -> None:
    path = house.ask(mail_request())
    page = house.browser().get(path)
    assert page.headers["location"] == "/owner/login?next=%2Fconsent%2Far_0"


def test_allowing_goes_back_with_code_state_and_issuer(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    answer = allow(browser, path)
    assert answer.status == 303
    target = urlsplit(answer.headers["location"])
    query = parse_qs(target.query)
    assert target.netloc == "app.example"
    assert query["kept"] == ["1"]
    assert query["state"] == ["state-of-the-app"]
    assert query["iss"] == [house.origin]
    assert query["code"][0].startswith("pdpp_ac_")
    assert [row.access_mode for row in house.rows(GrantRow)] == ["continuous"]


def test_denying_goes_back_with_access_denied(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    answer = press(browser, browser.get(path), path, "deny")
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == ["access_denied"]
    assert house.rows(GrantRow) == []


def test_a_device_request_ends_with_a_page(house: Household, browser: Browser) -> None:
    path = house.ask(
        mail_request(), flow="device", redirect_uri=None, address="198.51.100.4", user_agent="tool"
    )
    page = browser.get(path)
    assert "198.51.100.4" in page.text
    assert "18 Nov 2026, 11:06 UTC" in words(page)
    assert states(allow(browser, path)) == ["allowed"]


def test_the_form_may_be_redirected_to_the_app_and_nowhere_else(
    house: Household, browser: Browser
) -> None:
    page = browser.get(house.ask(mail_request()))
    policy = page.headers["content-security-policy"]
    assert "form-action 'self' https://app.example;" in policy
    page = browser.get(house.ask(mail_request(), redirect_uri="cursor://any.where/cb"))
    assert "form-action 'self' cursor:;" in page.headers["content-security-policy"]


def test_the_preview_shows_the_result_of_the_choices(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    fields = [(n, v) for n, v in page.form(path) if n != "field.0.messages" or v == "subject"]
    narrowed = browser.post(path, [*fields, ("action", "preview")])
    chips = re.findall(r"<li( class=\"fixed\")?>([a-z ]+)", narrowed.text)
    assert [name.strip() for _, name in chips] == ["id", "sent at", "subject"]
    assert press(browser, narrowed, path, "approve").status == 303
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["fields"] == ["id", "sent_at", "subject"]


def test_a_decided_request_is_closed(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert press(browser, page, path, "approve").status == 303
    again = press(browser, page, path, "approve")
    assert (again.status, again.error) == (409, "approval_conflict")
    closed = browser.get(path)
    assert (closed.status, closed.error) == (410, "request_closed")


def test_an_expired_request_leads_back_to_the_app(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    house.clock.now_ns += 16 * 60 * 10**9
    closed = browser.get(path)
    assert (closed.status, closed.error) == (410, "request_closed")
    assert 'href="https://app.example/cb?kept=1&amp;error=access_denied' in closed.text


def test_an_unknown_request_is_not_found(browser: Browser) -> None:
    page = browser.get("/consent/ar_unknown")
    assert (page.status, page.error) == (404, "not_found")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"action": "approve", "expiry": "7y"}, "not_a_narrowing"),
        ({"action": "approve", "field.0.messages": "nothing"}, "not_a_narrowing"),
        ({"action": "approve", "stream.0.nothing": "1"}, "not_a_narrowing"),
        ({"action": "approve", "conn.0": "cin_work"}, "not_a_narrowing"),
        ({"action": "approve", "keep.7": "1"}, "not_a_narrowing"),
        ({"action": "approve", "since.0.messages": "yesterday"}, "not_a_narrowing"),
        ({"action": "approve", "end": "grt_x"}, "not_a_narrowing"),
        ({"action": "grant"}, "invalid_request"),
        ({}, "invalid_request"),
        ({"quick": "9999"}, "not_a_narrowing"),
    ],
)
def test_a_form_that_asks_for_more_is_refused(
    house: Household, browser: Browser, changes: dict[str, str], code: str
) -> None:
    path = house.ask(mail_request())
    refused = browser.submit(browser.get(path), path, **changes)
    assert (refused.status, refused.error) == (400, code)
    assert house.rows(GrantRow) == []
    if code == "not_a_narrowing":
        mended = press(browser, refused, path, "preview", **{"since.0.messages": ""})
        assert press(browser, mended, path, "approve").status == 303


def test_training_needs_its_own_tick(house: Household, browser: Browser) -> None:
    request = mail_request()
    request[0]["purpose_code"] = TRAINING
    path = house.ask(request)
    page = browser.get(path)
    assert not re.search(r'name="ai_training" value="yes" checked', page.text)
    refused = press(browser, page, path, "approve")
    assert (refused.status, refused.error) == (400, "ai_training_consent_required")
    assert house.rows(GrantRow) == []
    assert press(browser, refused, path, "approve", ai_training="yes").status == 303


def test_other_purposes_have_no_training_box_and_ignore_what_is_posted(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert "ai_training" not in page.text
    assert press(browser, page, path, "approve", ai_training="yes").status == 303
    (row,) = house.rows(ReviewArtifactRow)
    assert json.loads(row.artifact)["ai_training_consented"] is False


def test_several_accounts_must_be_chosen_among(house: Household, browser: Browser) -> None:
    request = mail_request()
    del request[0]["streams"][0]["instance_ids"]  # type: ignore[index]
    path = house.ask(request)
    page = browser.get(path)
    assert 'value="approve"' not in page.text
    assert any("E-mail" in each for each in marked(page, "missing"))
    chosen = press(browser, page, path, "preview", **{"conn.0": WORK})
    assert numbers(chosen, "figure")[0] == 12
    assert press(browser, chosen, path, "approve").status == 303


def test_accounts_that_several_kinds_wait_for_are_one_choice(
    house: Household, browser: Browser
) -> None:
    path = house.ask(None)
    kinds = {"stream.1.messages": "1", "stream.1.attachments": "1"}
    page = press(browser, browser.get(path), path, "preview", **kinds)
    assert len(marked(page, "missing")) == 1


def test_an_app_that_asks_for_nothing_gets_a_picker(house: Household, browser: Browser) -> None:
    path = house.ask(None)
    page = browser.get(path)
    assert 'value="approve"' not in page.text
    assert not re.search(r'name="(keep|stream)\.[^>]* checked', page.text)
    ticks = {"keep.0": "1", "stream.0.transactions": "1"}
    chosen = press(browser, page, path, "preview", **ticks)
    assert numbers(chosen, "figure")[0] == 30
    assert press(browser, chosen, path, "approve").status == 303
    assert len(house.rows(GrantRow)) == 1
    assert house.rows(PackageRow) == []


def test_to_be_told_is_ticked_where_it_was_asked_and_stands_beside_the_grant(
    house: Household, browser: Browser
) -> None:
    path = house.ask([{**mail_request()[0], "events": True}, *bank_request()])
    assert re.search(r'name="events" value="yes" checked', browser.get(path).text)
    assert allow(browser, path).status == 303
    (package,) = house.rows(PackageRow)
    (limits,) = house.rows(ReadingLimitsRow)
    assert (limits.held_id, limits.events) == (package.package_id, True)


def test_to_be_told_can_be_left_out(house: Household, browser: Browser) -> None:
    path = house.ask([{**mail_request()[0], "events": True}])
    page = browser.get(path)
    fields = [(name, value) for name, value in page.form(path) if name != "events"]
    browser.post(path, [*fields, ("action", "approve")])
    assert len(house.rows(GrantRow)) == 1
    assert house.rows(ReadingLimitsRow) == []


def test_who_did_not_ask_is_not_told(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert 'name="events"' not in page.text
    refused = press(browser, page, path, "approve", events="yes")
    assert (refused.status, refused.error) == (400, "not_a_narrowing")
    assert house.rows(GrantRow) == []


def test_a_picker_offers_to_be_told_and_does_not_tick_it(
    house: Household, browser: Browser
) -> None:
    path = house.ask(None)
    page = browser.get(path)
    assert re.search(r'name="events" value="yes">', page.text)
    ticks = {"keep.0": "1", "stream.0.transactions": "1", "events": "yes"}
    chosen = press(browser, page, path, "preview", **ticks)
    assert press(browser, chosen, path, "approve").status == 303
    assert [limits.events for limits in house.rows(ReadingLimitsRow)] == [True]


def test_two_kept_entries_make_a_package_and_none_a_denial(
    house: Household, browser: Browser
) -> None:
    path = house.ask([*mail_request(), *bank_request()])
    assert allow(browser, path).status == 303
    assert len(house.rows(PackageRow)) == 1
    path = house.ask([*mail_request(), *bank_request()])
    page = browser.get(path)
    fields = [(n, v) for n, v in page.form(path) if not n.startswith("keep.")]
    denied = browser.post(path, [*fields, ("action", "approve")])
    assert "error=access_denied" in denied.headers["location"]
    assert len(house.rows(PackageRow)) == 1


def test_what_cannot_be_given_is_said_in_words_with_one_way_back(
    house: Household, browser: Browser
) -> None:
    request = mail_request()
    request[0]["source"] = {"id": "https://registry.pdpp.dev/connectors/health"}
    path = house.ask(request)
    page = browser.get(path)
    assert marked(page, "impossible")
    assert page.text.count("<button") == 1
    back = press(browser, page, path, "deny")
    assert "error=access_denied" in back.headers["location"]


def test_earlier_access_is_shown_and_can_be_replaced(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(fields=["subject"])))
    (first,) = house.rows(GrantRow)
    path = house.ask(mail_request())
    page = browser.get(path)
    assert marked(page, "already")
    assert not re.search(r'name="end"[^>]* checked', page.text)
    like = browser.get(f"{path}?like={first.grant_id}")
    assert re.search(r'value="subject" checked', like.text)
    assert not re.search(r'value="body" checked', like.text)
    shown = press(browser, like, path, "preview", end=first.grant_id)
    assert press(browser, shown, path, "approve").status == 303
    reasons = {row.grant_id: row.reason for row in house.rows(GrantRow)}
    assert reasons[first.grant_id] == "replaced"


def test_the_request_stays_pending_until_a_button_is_pressed(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    for _ in range(3):
        browser.get(path)
    assert [row.status for row in house.rows(RequestRow)] == ["pending"]
