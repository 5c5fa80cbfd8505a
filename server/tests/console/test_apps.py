from __future__ import annotations

import re
from typing import Any

import pytest

from personal_server.console.apps import CHANGED
from personal_server.storage.authorization_rows import AuditRow, ClientRow, FamilyRow, GrantRow
from server.tests.console.browsing import Browser, allow, marked, numbers, words
from server.tests.console.household import DAY, Household, mail_request


def reference(house: Household) -> str:
    return house.rows(ClientRow)[0].client_ref


def test_apps_are_listed_with_what_they_hold(house: Household, browser: Browser) -> None:
    assert marked(browser.get("/owner/clients"), "no-apps")
    allow(browser, house.ask(mail_request()))
    page = browser.get("/owner/clients")
    assert "Notes app" in words(page)
    assert numbers(page, "active-access") == [1]


def test_apps_that_never_got_access_are_folded_away(house: Household, browser: Browser) -> None:
    house.client()
    assert numbers(browser.get("/owner/clients"), "others") == [1]
    allow(browser, house.ask(mail_request()))
    assert not marked(browser.get("/owner/clients"), "others")


def test_many_apps_come_in_pages(house: Household, browser: Browser) -> None:
    for number in range(120):
        house.client(f"cli_{number}", client_ref=f"clr_{number}", name=f"App {number}")
    found: list[str] = []
    path: str | None = "/owner/clients/others"
    while path is not None:
        page = browser.get(path)
        assert len(page.text) < 100_000
        found += re.findall(r"<h2>(App [0-9]+)</h2>", page.text)
        link = re.search(r'data-field="older" href="([^"]+)"', page.text)
        path = None if link is None else link[1]
    assert len(found) == len(set(found)) == 120
    assert browser.get("/owner/clients").text.count('class="card row"') == 0


def test_a_device_that_acts_as_the_owner_is_shown_and_can_be_ended(
    house: Household, browser: Browser
) -> None:
    house.client("pdpp-owner-cli", registration="pre_registered", name="PDPP owner command line")
    assert "PDPP owner" not in words(browser.get("/owner/clients"))
    house.insert(owner_family(house, "fam_1"), owner_family(house, "fam_2", revoked_at_ns=1))
    page = browser.get("/owner/clients")
    assert numbers(page, "devices") == [1]
    assert browser.submit(page, f"/owner/clients/{reference(house)}/end-access").status == 303
    assert not marked(browser.get("/owner/clients"), "devices")
    assert all(row.revoked_at_ns is not None for row in house.rows(FamilyRow))


def test_a_device_that_was_idle_for_too_long_acts_no_more(
    house: Household, browser: Browser
) -> None:
    house.client("pdpp-owner-cli", registration="pre_registered", name="PDPP owner command line")
    house.insert(owner_family(house, "fam_1", idle_end_ns=house.clock.now_ns))
    assert not marked(browser.get("/owner/clients"), "devices")


def owner_family(house: Household, family_id: str, **over: Any) -> FamilyRow:
    facts: dict[str, Any] = {
        "family_id": family_id,
        "kind": "owner",
        "client_id": "pdpp-owner-cli",
        "origin": house.origin,
        "resource": f"{house.origin}/v1",
        "scope": "pdpp:owner",
        "last_used_at_ns": house.clock.now_ns,
        "idle_end_ns": house.clock.now_ns + DAY,
        "absolute_end_ns": house.clock.now_ns + DAY,
    }
    return FamilyRow(**{**facts, **over})


def test_all_access_of_an_app_can_be_ended(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    page = browser.get("/owner/clients")
    where = f"/owner/clients/{reference(house)}/end-access"
    assert browser.submit(page, where).status == 303
    assert house.rows(GrantRow)[0].reason == "owner"


def test_a_blocked_app_holds_nothing_and_may_not_ask(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    waiting = house.ask(mail_request())
    where = f"/owner/clients/{reference(house)}"
    browser.submit(browser.get("/owner/clients"), f"{where}/block")
    assert house.rows(GrantRow)[0].reason == "client_blocked"
    assert browser.get(waiting).error == "request_closed"
    page = browser.get("/owner/clients")
    assert "18 Nov 2026" in marked(page, "blocked")[0]
    browser.submit(page, f"{where}/unblock")
    assert browser.get(waiting).status == 200


def test_what_an_app_says_otherwise_is_shown(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    assert not marked(browser.get("/owner/clients"), "document-changed")
    for changed in (["redirect_uris"], ["keys", "name"]):
        row = AuditRow(
            event="client.metadata_changed",
            at_ns=house.clock.now_ns,
            actor="server",
            client_id="cli_notes",
            detail={"changed": changed},
        )
        with house.authorization.write() as writer:
            writer.insert(row)
    (said,) = marked(browser.get("/owner/clients"), "document-changed")
    assert "18 Nov 2026" in said
    assert all(str(CHANGED[part]) in said for part in ("keys", "name"))
    assert str(CHANGED["redirect_uris"]) not in said


@pytest.mark.parametrize("action", ["end-access", "block", "unblock"])
def test_an_unknown_app_is_not_found(browser: Browser, action: str) -> None:
    csrf = dict(browser.get("/owner/sign-ins").form("/owner/logout"))["_csrf"]
    refused = browser.post(f"/owner/clients/clr_x/{action}", [("_csrf", csrf)])
    assert (refused.status, refused.error) == (404, "not_found")
