"""Nothing that the owner chose is lost: by a reload, a mistake, a sign-in, a change elsewhere."""

from __future__ import annotations

import json
import re

import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.storage.authorization_rows import RequestRow
from server.tests.console.browsing import Browser, Page, marked, numbers, press
from server.tests.console.household import MAIL_SOURCE, WORK, Household, bank_request, mail_request

SENDER = "0.messages/from_address"
CHOSEN = {"expiry": "30d", "records_per_day": "50", f"others.{SENDER}": "alan@example.org"}


def holds_what_was_chosen(page: Page) -> bool:
    """Whether everything of `CHOSEN` stands in the form."""
    said = page.text
    return (
        '<option value="30d" selected>' in said
        and 'name="records_per_day" inputmode="numeric" value="50"' in said
        and re.search(rf'(only.{SENDER}" value="alan@example.org" checked|>alan@)', said)
        is not None
        and numbers(page, "figure")[:1] == [8]
    )


def with_password(house: Household) -> Browser:
    """An owner whose sign-in grows old: without a password a session is proof enough."""
    house.sign_in.set_password("correct horse battery")
    return house.signed_in()


def test_a_reload_shows_what_was_chosen(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    previewed = press(browser, browser.get(path), path, "preview", **CHOSEN)
    assert holds_what_was_chosen(previewed)
    reloaded = browser.get(path)
    assert holds_what_was_chosen(reloaded)
    assert press(browser, reloaded, path, "approve").status == 303


def test_a_new_sign_in_finds_what_was_chosen(house: Household) -> None:
    browser = with_password(house)
    path = house.ask(mail_request(), expires_at_ns=house.clock.now_ns + 10**13)
    press(browser, browser.get(path), path, "preview", **CHOSEN)
    house.clock.now_ns += 16 * 60 * 10**9
    late = browser.get(path)
    assert 'value="again"' in late.text
    assert 'value="approve"' not in late.text
    press(browser, late, path, "preview", expiry="1y")
    again = house.signed_in().get(path)
    assert '<option value="1y" selected>' in again.text
    assert numbers(again, "figure")[0] == 8


def test_signing_in_again_keeps_what_was_ticked_just_before(house: Household) -> None:
    browser = with_password(house)
    path = house.ask(mail_request(), expires_at_ns=house.clock.now_ns + 10**13)
    page = browser.get(path)
    house.clock.now_ns += 16 * 60 * 10**9
    refused = press(browser, page, path, "approve", **CHOSEN)
    assert (refused.status, refused.error) == (401, "owner_session_required")
    assert holds_what_was_chosen(refused)
    gone = browser.submit(refused, path, action="again", expiry="1y")
    assert (gone.status, gone.headers["location"]) == (307, "/owner/logout")
    onward = browser.post("/owner/logout", refused.form(path))
    assert onward.headers["location"] == "/owner/login?next=%2Fconsent%2Far_0"
    assert '<option value="1y" selected>' in house.signed_in().get(path).text


def test_what_is_mistyped_stays_where_it_was_typed(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    wrong = {"records_per_day": "many", "since.0.messages": "yesterday", "expiry": "30d"}
    refused = press(browser, browser.get(path), path, "preview", **wrong)
    assert (refused.status, refused.error) == (400, "not_a_narrowing")
    for box, typed in (("records_per_day", "many"), ("since.0.messages", "yesterday")):
        assert re.search(rf'name="{box}"[^>]* value="{typed}" aria-invalid="true"', refused.text)
    assert re.search(r'<details class="narrow-box" id="less-0.messages" open>', refused.text)
    assert refused.text.count("autofocus") == 1
    assert '<option value="30d" selected>' in refused.text


@pytest.mark.parametrize("ticked", [(), ("grace@example.org",)])
def test_a_limit_that_cannot_be_meant_keeps_what_was_typed_and_ticked(
    house: Household, browser: Browser, ticked: tuple[str, ...]
) -> None:
    path = house.ask(mail_request())
    fields = [
        (name, value) for name, value in browser.get(path).form(path) if "others." not in name
    ]
    limits = [*((f"only.{SENDER}", each) for each in ticked), (f"others.{SENDER}", "x" * 201)]
    refused = browser.post(path, [*fields, *limits, ("action", "preview")])
    assert (refused.status, refused.error) == (400, "not_a_narrowing")
    assert f"{'x' * 201}</textarea>" in refused.text
    for value in ticked:
        assert f'name="only.{SENDER}" value="{value}" checked' in refused.text


def test_choices_that_a_source_no_longer_has_give_way_to_those_of_the_request(
    house: Household, browser: Browser
) -> None:
    request = mail_request()
    del request[0]["streams"][0]["instance_ids"]  # type: ignore[index]
    path = house.ask(request)
    press(browser, browser.get(path), path, "preview", **{"conn.0": WORK, "expiry": "30d"})
    raw = json.loads(json.dumps(MAIL))
    raw["declaration_version"] = "2099-01-01"
    house.declare(raw)
    assert re.search(rf'value="{WORK}" checked', browser.get(path).text)
    house.connect("cin_third", "mail", MAIL_SOURCE, "Third mailbox")
    assert re.search(rf'value="{WORK}" checked', browser.get(path).text)
    with house.authorization.write() as writer:
        writer.change(RequestRow, [RequestRow.choices.to('{"entries": {"0": 1}}')])
    assert marked(browser.get(path), "missing")


def test_what_was_chosen_is_forgotten_when_it_is_decided(
    house: Household, browser: Browser
) -> None:
    for action in ("approve", "deny"):
        path = house.ask([*mail_request(), *bank_request()])
        page = press(browser, browser.get(path), path, "preview", expiry="30d")
        assert house.rows(RequestRow)[-1].choices is not None
        press(browser, page, path, action)
        assert house.rows(RequestRow)[-1].choices is None


def test_a_source_that_was_left_out_again_stays_out_while_others_are_chosen(
    house: Household, browser: Browser
) -> None:
    path = house.ask(None)
    ticks = {"keep.0": "1", "stream.0.transactions": "1"}
    chosen = press(browser, browser.get(path), path, "preview", **ticks)
    fields = [(name, value) for name, value in chosen.form(path) if name != "keep.0"]
    without = browser.post(path, [*fields, ("action", "preview")])
    other = {"keep.1": "1", "stream.1.messages": "1", "conn.1": WORK}
    both = press(browser, without, path, "preview", **other)
    assert not re.search(r'name="(keep\.0|stream\.0\.[a-z]+)"[^>]* checked', both.text)
    assert numbers(both, "figure")[0] == 12
    assert press(browser, both, path, "approve").status == 303
