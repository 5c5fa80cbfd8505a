"""The owner limits what is given to some values, seen with their counts."""

from __future__ import annotations

import html

import pytest

from personal_server.domain.grant import Grant, parse_grant
from personal_server.storage.authorization_rows import GrantRow
from server.tests.console.browsing import Browser, marked, numbers, press, words
from server.tests.console.household import HOME, Household, mail_request

SENDER = "0.messages/from_address"


def granted(house: Household) -> Grant:
    """The last grant."""
    return parse_grant(house.rows(GrantRow)[-1].grant)


def test_values_stand_there_with_their_counts(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(mail_request()))
    assert "grace@example.org 8" in words(page)
    assert f'name="only.{SENDER}" value="grace@example.org"' in page.text


def test_what_is_ticked_and_typed_is_granted_and_shown(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    ticked = {f"only.{SENDER}": "grace@example.org", f"others.{SENDER}": "\n ALAN@example.org \n\n"}
    page = press(browser, browser.get(path), path, "preview", **ticked)
    assert numbers(page, "figure")[0] == 16
    (limit,) = marked(page, "limit")
    assert limit.endswith("from address: grace@example.org, ALAN@example.org")
    assert "ALAN@example.org</textarea>" in page.text
    press(browser, page, path, "approve")
    (stream,) = granted(house).streams
    limits = {limit.field: limit.values for limit in stream.only}
    assert limits == {"from_address": ("grace@example.org", "ALAN@example.org")}
    held = browser.get(f"/owner/access/{granted(house).grant_id}")
    assert marked(held, "limit") == [limit]


def test_a_kind_that_the_limit_of_another_does_not_hold_for_says_so(
    house: Household, browser: Browser
) -> None:
    file = {"id": "a1", "message_id": "m1", "sent_at": "2026-11-01T00:00:00Z", "filename": "a.pdf"}
    house.fill(HOME, "attachments", [file])
    (asked,) = mail_request()
    both = [{"name": name, "instance_ids": [HOME]} for name in ("messages", "attachments")]
    path = house.ask([{**asked, "streams": both}])
    page = browser.get(path)
    assert not marked(page, "unlimited")
    page = press(browser, page, path, "preview", **{f"only.{SENDER}": "grace@example.org"})
    (unlimited,) = marked(page, "unlimited")
    assert "Your e-mails" in unlimited


def test_a_value_that_nobody_has_says_0_records_before_it_is_allowed(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    typed = {f"others.{SENDER}": "nobody@example.org"}
    page = press(browser, browser.get(path), path, "preview", **typed)
    assert numbers(page, "figure")[0] == 0


def test_of_what_an_app_asks_for_fewer_values_may_be_kept(
    house: Household, browser: Browser
) -> None:
    wanted = {"from_address": ["grace@example.org", "emmy@example.org"]}
    path = house.ask(mail_request(only=wanted))
    page = browser.get(path)
    assert marked(page, "asked-only")
    assert f"others.{SENDER}" not in page.text
    wider = press(browser, page, path, "preview", **{f"only.{SENDER}": "alan@example.org"})
    assert wider.status == 400
    press(browser, page, path, "approve")
    assert granted(house).streams[0].only[0].values == tuple(wanted["from_address"])


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", '"><b>', "\u202eevil@example.org", "a\u2028b"]
)
def test_hostile_values_stay_values(house: Household, browser: Browser, value: str) -> None:
    house.fill(HOME, "messages", [hostile("h1", value), hostile("h2", "x" * 1_000_000)])
    path = house.ask(mail_request())
    page = browser.get(path)
    assert "<script>alert" not in page.text
    assert html.escape(value, quote=True).replace("&quot;", "&#34;") in page.text
    assert len(page.text) < 200_000
    ticked = {f"only.{SENDER}": value}
    press(browser, press(browser, page, path, "preview", **ticked), path, "approve")
    assert granted(house).streams[0].only[0].values == (value,)
    told = browser.get(f"/owner/access/{granted(house).grant_id}")
    assert "<script>alert" not in told.text


@pytest.mark.parametrize(
    "typed",
    ["x" * 201, "\n".join(f"n{number}@example.org" for number in range(1_001)), "y" * 10**5],
)
def test_too_much_is_refused_and_nothing_is_stored(
    house: Household, browser: Browser, typed: str
) -> None:
    path = house.ask(mail_request())
    page = press(browser, browser.get(path), path, "approve", **{f"others.{SENDER}": typed})
    assert (page.status, page.error) == (400, "not_a_narrowing")
    assert house.rows(GrantRow) == []


def test_a_thousand_values_are_shown_in_part(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    typed = "\n".join(f"n{number}@example.org" for number in range(1_000))
    page = press(browser, browser.get(path), path, "preview", **{f"others.{SENDER}": typed})
    press(browser, page, path, "approve")
    held = browser.get(f"/owner/access/{granted(house).grant_id}")
    assert numbers(held, "limit")[-1] == 995


def hostile(key: str, sender: str) -> dict[str, object]:
    return {
        "id": key,
        "thread_id": key,
        "sent_at": "2026-01-01T00:00:00Z",
        "subject": "s",
        "from_address": sender,
        "to": [],
        "body": "b",
        "is_reply": False,
        "size_bytes": 1,
    }
