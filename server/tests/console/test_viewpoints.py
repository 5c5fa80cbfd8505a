from __future__ import annotations

import re

import pytest

from personal_server.storage.authorization_rows import GrantRow, PackageRow
from server.tests.console.browsing import Browser, allow, marked, numbers, states
from server.tests.console.household import (
    CHECKING,
    HOME,
    WORK,
    Household,
    bank_request,
    mail_request,
)
from server.tests.console.test_record_pages import links, rows

FIELDS = ["subject", "from_name", "thread_id"]


def given(house: Household, browser: Browser) -> str:
    """What the pages of a grant of a few fields begin with."""
    allow(browser, house.ask(mail_request(fields=FIELDS)))
    (grant,) = house.rows(GrantRow)
    return f"/owner/access/{grant.grant_id}"


def test_the_page_of_an_access_leads_to_what_it_sees(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    assert f'href="{root}/records"' in browser.get(root).text
    page = browser.get(f"{root}/records")
    assert "Notes app" in marked(page, "view-of")[0]
    assert rows(page) == []
    assert f"{root}/records/{HOME}/messages" in page.text
    assert WORK not in page.text
    assert CHECKING not in page.text


def test_every_link_stays_in_the_view(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    table = browser.get(f"{root}/records/{HOME}/messages")
    assert numbers(table, "total") == [40]
    (link, *_) = rows(table)
    shown = [table, browser.get(link), browser.get(f"{root}/search?q=lunch")]
    shown += [browser.get(each) for each in links(shown[1], "Thread")]
    for page in shown:
        assert page.status == 200
        assert "Notes app" in marked(page, "view-of")[0]
        assert f'"/owner/records/{HOME}/messages"' not in page.text
        assert "secret number" not in page.text


def test_masked_fields_are_opened_in_the_view_of_the_owner(
    house: Household, browser: Browser
) -> None:
    root = given(house, browser)
    page = browser.get(f"{root}/records/{HOME}/messages/m004")
    assert "secret number 4" not in page.text
    opened = marked(page, "unmask", "href")
    assert f"/owner/records/{HOME}/messages/m004#field-body" in opened
    assert not [each for each in opened if each.endswith("#field-subject")]
    own = browser.get(f"/owner/records/{HOME}/messages/m004")
    assert 'id="field-body"' in own.text
    (masked,) = marked(browser.get(f"{root}/records/{HOME}/messages"), "masked")
    assert "body" in masked


def test_what_only_the_owner_is_told_is_not_in_the_view(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    page = browser.get(f"{root}/records/{HOME}/messages/m004")
    own = browser.get(f"/owner/records/{HOME}/messages/m004")
    for name in ("origin", "readers"):
        assert (len(marked(own, name)), len(marked(page, name))) == (1, 0)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (f"/records/{WORK}/messages", "not_found"),
        (f"/records/{HOME}/attachments", "not_found"),
        (f"/records/{HOME}/messages?filter[body]=x", "invalid_request"),
        (f"/records/{HOME}/messages?sort=size_bytes", "invalid_request"),
        (f"/records/{HOME}/messages/m004/text/body", "not_found"),
        (f"/records/{HOME}/messages/m004/files/body", "not_found"),
        (f"/records/{WORK}/messages/m004/json", "not_found"),
        ("/search?q=lunch&stream=transactions", "invalid_request"),
    ],
)
def test_what_it_does_not_get_is_not_there(
    house: Household, browser: Browser, path: str, error: str
) -> None:
    assert browser.get(given(house, browser) + path).error == error


def test_looking_is_not_recorded_as_reading(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    for path in ("/records", f"/records/{HOME}/messages", "/search?q=lunch"):
        assert browser.get(root + path).status == 200
    assert marked(browser.get("/owner/disclosures"), "no-reads")
    assert marked(browser.get(root), "never-used")


def test_an_access_that_ended_sees_nothing(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    browser.post(f"{root}/revoke", browser.get(root).form(f"{root}/revoke"))
    page = browser.get(f"{root}/records")
    assert marked(page, "nothing-given")
    assert states(browser.get(root)) == ["revoked"]
    assert HOME not in page.text
    assert browser.get(f"{root}/records/{HOME}/messages").error == "not_found"
    assert marked(browser.get(f"{root}/search?q=lunch"), "no-results")


def test_an_access_that_is_paused_sees_nothing_until_it_goes_on(
    house: Household, browser: Browser
) -> None:
    root = given(house, browser)
    browser.submit(browser.get(root), f"{root}/pause")
    assert marked(browser.get(f"{root}/records"), "nothing-given")
    browser.submit(browser.get(root), f"{root}/resume")
    assert browser.get(f"{root}/records/{HOME}/messages").status == 200


def test_a_package_sees_what_its_grants_give(house: Household, browser: Browser) -> None:
    allow(browser, house.ask([*mail_request(fields=FIELDS), *bank_request()]))
    (package,) = house.rows(PackageRow)
    root = f"/owner/access/{package.package_id}"
    page = browser.get(f"{root}/records")
    assert f"{root}/records/{HOME}/messages" in page.text
    assert f"{root}/records/{CHECKING}/transactions" in page.text
    found = browser.get(f"{root}/search?q=bakery")
    assert f"{root}/records/{CHECKING}/transactions/" in found.text


def test_what_is_asked_is_seen_before_it_is_given(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request(fields=FIELDS))
    page = browser.get(path)
    (link,) = re.findall('href="(/owner/requests/[^"]+)"', page.text)
    seen = browser.get(link)
    assert "Notes app" in marked(seen, "asked-view")[0]
    assert house.rows(GrantRow) == []
    place = f"records/{HOME}/messages/m004/json"
    before = browser.get(f"{link.removesuffix('records')}{place}")
    assert "body" not in before.text
    assert browser.submit(page, path, action="approve").status == 303
    (grant,) = house.rows(GrantRow)
    assert browser.get(f"/owner/access/{grant.grant_id}/{place}").text == before.text
    assert browser.get(link).error == "request_closed"


def test_nobody_elses_view_is_shown(house: Household, browser: Browser) -> None:
    assert browser.get("/owner/access/grt_none/records").error == "not_found"
    assert browser.get("/owner/requests/ar_none/records").error == "not_found"
    unopened = house.ask(mail_request(fields=FIELDS)).rpartition("/")[2]
    assert browser.get(f"/owner/requests/{unopened}/records").error == "not_found"
    root = given(house, browser)
    for path in (f"{root}/records", f"{root}/search", f"/owner/requests/{unopened}/records"):
        page = house.browser().get(path)
        assert page.status == 303
        assert "/owner/login" in page.headers["location"]
