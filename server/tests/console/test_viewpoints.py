from __future__ import annotations

import pytest

from personal_server.storage.authorization import GrantRow, PackageRow
from server.tests.console.browsing import Browser, allow, words
from server.tests.console.household import (
    CHECKING,
    HOME,
    WORK,
    Household,
    bank_request,
    mail_request,
)
from server.tests.console.test_browse import links, rows

FIELDS = ["subject", "from_name", "thread_id"]


def given(house: Household, browser: Browser) -> str:
    """What the pages of a grant of a few fields begin with."""
    allow(browser, house.ask(mail_request(fields=FIELDS)))
    (grant,) = house.rows(GrantRow)
    return f"/owner/access/{grant.grant_id}"


def test_the_page_of_an_access_leads_to_what_it_sees(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    assert links(browser.get(root), "See what it sees") == [f"{root}/records"]
    page = browser.get(f"{root}/records")
    assert "Through the eyes of Notes app" in words(page)
    assert rows(page) == []
    assert f"{root}/records/{HOME}/messages" in page.text
    assert WORK not in page.text
    assert CHECKING not in page.text


def test_every_link_stays_in_the_view(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    table = browser.get(f"{root}/records/{HOME}/messages")
    assert "40 records" in words(table)
    (link, *_) = rows(table)
    shown = [table, browser.get(link), browser.get(f"{root}/search?q=lunch")]
    shown += [browser.get(each) for each in links(shown[1], "Thread")]
    for page in shown:
        assert page.status == 200
        assert "Through the eyes of Notes app" in words(page)
        assert f'"/owner/records/{HOME}/messages"' not in page.text
        assert "secret number" not in page.text


def test_masked_fields_are_opened_in_the_view_of_the_owner(
    house: Household, browser: Browser
) -> None:
    root = given(house, browser)
    page = browser.get(f"{root}/records/{HOME}/messages/m004")
    assert "secret number 4" not in page.text
    opened = links(page, "Open it in your own view")
    assert f"/owner/records/{HOME}/messages/m004#field-body" in opened
    assert not [each for each in opened if each.endswith("#field-subject")]
    own = browser.get(f"/owner/records/{HOME}/messages/m004")
    assert 'id="field-body"' in own.text
    assert "Masked, since it does not get them" in words(
        browser.get(f"{root}/records/{HOME}/messages")
    )


def test_what_only_the_owner_is_told_is_not_in_the_view(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    text = words(browser.get(f"{root}/records/{HOME}/messages/m004"))
    assert "Where it came from" not in text
    assert "Who was given it" not in text


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
    assert "Nothing has been read yet." in words(browser.get("/owner/disclosures"))
    assert "Last used never" in words(browser.get(root))


def test_an_access_that_ended_sees_nothing(house: Household, browser: Browser) -> None:
    root = given(house, browser)
    browser.post(f"{root}/revoke", browser.get(root).form(f"{root}/revoke"))
    page = browser.get(f"{root}/records")
    assert "It is given nothing: this access is revoked." in words(page)
    assert HOME not in page.text
    assert browser.get(f"{root}/records/{HOME}/messages").error == "not_found"
    assert "No record holds these words" in words(browser.get(f"{root}/search?q=lunch"))


def test_an_access_that_is_paused_sees_nothing_until_it_goes_on(
    house: Household, browser: Browser
) -> None:
    root = given(house, browser)
    browser.submit(browser.get(root), f"{root}/pause")
    assert "It is given nothing: this access is paused." in words(browser.get(f"{root}/records"))
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
    (link,) = links(page, "See the very records that it asks for")
    seen = browser.get(link)
    assert "What Notes app asks to see" in words(seen)
    assert "Nothing is given yet." in words(seen)
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
