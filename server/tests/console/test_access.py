from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from personal_server.domain.disclosure import DENIED
from personal_server.storage.authorization_rows import (
    AuditRow,
    EventRow,
    GrantRow,
    PackageRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import (
    Browser,
    Page,
    allow,
    marked,
    numbers,
    press,
    states,
    words,
)
from server.tests.console.household import Household, bank_request, mail_request


def test_nobody_has_access_at_first(browser: Browser) -> None:
    assert marked(browser.get("/owner/access"), "no-access")


def test_a_grant_is_listed_shown_and_ended(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(fields=["subject"])))
    (row,) = house.rows(GrantRow)
    shown = browser.get("/owner/access")
    assert "Notes app" in words(shown)
    (stream,) = marked(shown, "stream")
    assert stream.startswith("Your e-mails E-mail, Home mailbox ")
    assert numbers(shown, "stream") == [3]
    assert "16 Feb 2027" in words(shown)
    assert marked(shown, "never-used")
    page = browser.get(f"/owner/access/{row.grant_id}")
    text = words(page)
    assert "Your e-mails" in text
    assert "Home mailbox" in text
    assert "request.approved" in marked(page, "history", "data-event")
    assert "pdpp.review/1" in text
    ended = browser.submit(page, f"/owner/access/{row.grant_id}/revoke")
    assert ended.headers["location"] == f"/owner/access/{row.grant_id}"
    assert states(browser.get(f"/owner/access/{row.grant_id}")) == ["revoked"]
    assert numbers(browser.get("/owner/access"), "ended-count") == [1]


def test_the_list_says_what_an_app_read_last(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    given = entry(1, grant_id=row.grant_id, record_count=7)
    refused = entry(2, grant_id=row.grant_id, outcome=DENIED)
    house.disclosures.append_disclosures([given, refused])
    listed = browser.get("/owner/access")
    assert numbers(listed, "last-read")[0] == 7
    assert "messages" in marked(listed, "last-read")[0]
    assert not marked(listed, "never-used")


def test_what_it_is_told_is_shown_paused_and_deleted(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    path = f"/owner/access/{row.grant_id}"
    assert not marked(browser.get(path), "notifications")
    made = SubscriptionRow(
        subscription_id="sub_1",
        client_id=row.client_id,
        grant_id=row.grant_id,
        callback_url="https://app.example/hooks",
        status="active",
        secret=b"sealed",
        seen=0,
        created_at_ns=row.issued_at_ns,
        updated_at_ns=row.issued_at_ns,
    )
    event = EventRow(
        event_id="evt_1",
        subscription_id="sub_1",
        type="pdpp.records.changed",
        connection_id="cin_home",
        stream="messages",
        since=0,
        created_at_ns=row.issued_at_ns,
        attempts=2,
        outcome="timed_out",
    )
    with house.store.authorization.write() as writer:
        writer.insert(made)
        writer.insert(event)
    page = browser.get(path)
    assert states(page)[1:] == ["active"]
    assert "https://app.example/hooks" in words(page)
    (event,) = marked(page, "event")
    assert {"messages:", "timed", "out,", "2"} <= set(event.split())
    button = f"{path}/subscriptions/sub_1"
    browser.submit(page, button, action="pause")
    page = browser.get(path)
    assert states(page)[1:] == ["disabled"]
    browser.submit(page, button, action="resume")
    assert house.rows(SubscriptionRow)[0].status == "active"
    browser.submit(browser.get(path), f"{path}/limits", events="yes")
    assert house.rows(SubscriptionRow)[0].status == "active"
    fields = [each for each in browser.get(path).form(f"{path}/limits") if each[0] != "events"]
    browser.post(f"{path}/limits", fields)
    assert house.rows(SubscriptionRow)[0].status == "disabled"
    browser.submit(browser.get(path), button, action="delete")
    assert house.rows(SubscriptionRow) == []
    gone = browser.submit(page, button, action="pause")
    assert gone.status == 404


def test_ending_a_package_ends_all_of_it(house: Household, browser: Browser) -> None:
    allow(browser, house.ask([*mail_request(), *bank_request()]))
    (package,) = house.rows(PackageRow)
    page = browser.get(f"/owner/access/{package.package_id}")
    assert "Bank statements" in words(page)
    browser.submit(page, f"/owner/access/{package.package_id}/revoke")
    assert {row.reason for row in house.rows(GrantRow)} == {"owner"}


def test_an_unreadable_grant_is_shown_and_can_be_ended(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    with house.authorization.write() as writer:
        writer.change(GrantRow, [GrantRow.grant.to(b"{}")], GrantRow.grant_id.equals(row.grant_id))
    page = browser.get(f"/owner/access/{row.grant_id}")
    assert marked(page, "unreadable")
    assert browser.get("/owner/access").status == 200
    fields = [("_csrf", _csrf(browser))]
    assert browser.post(f"/owner/access/{row.grant_id}/revoke", fields).status == 303
    assert house.rows(GrantRow)[0].reason == "owner"


def _csrf(browser: Browser) -> str:
    return dict(browser.get("/owner/sign-ins").form("/owner/logout"))["_csrf"]


def test_unknown_access_is_not_found(browser: Browser) -> None:
    assert browser.get("/owner/access/grt_x").error == "not_found"
    refused = browser.post("/owner/access/grt_x/revoke", [("_csrf", _csrf(browser))])
    assert (refused.status, refused.error) == (404, "not_found")


def copies(house: Household, count: int, **members: Any) -> None:
    """As many more grants as that, like the only one, newer one by one."""
    (row,) = house.rows(GrantRow)
    for number in range(1, count + 1):
        facts = {"grant_id": f"grt_{number}", "issued_at_ns": row.issued_at_ns + number // 2}
        house.insert(replace(row, **{**facts, **members}))


def walk(browser: Browser, path: str) -> list[str]:
    """What every page of a list links to, page after page by the link it has."""
    found: list[str] = []
    older: str | None = path
    while older is not None:
        page = browser.get(older)
        assert page.status == 200
        assert len(page.text) < 100_000
        found += re.findall(r'<h2><a href="/owner/access/([^"]+)"', page.text)
        link = re.search(r'data-field="older" href="([^"]+)"', page.text)
        older = None if link is None else unescape(link[1])
    return found


def test_a_long_list_comes_in_pages_that_are_the_list(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    house.collect()
    copies(house, 119)
    listed = walk(browser, "/owner/access")
    assert sorted(listed) == sorted(row.grant_id for row in house.rows(GrantRow))
    assert browser.get("/owner/access").text.count('class="card row"') == 50
    assert "120" in words(browser.get("/owner/"))
    assert walk(browser, "/owner/access/ended") == []


def test_ended_access_has_pages_of_its_own(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    copies(house, 60, reason="owner", revoked_at_ns=house.clock.now_ns)
    assert len(walk(browser, "/owner/access")) == 1
    assert len(walk(browser, "/owner/access/ended")) == 60
    assert numbers(browser.get("/owner/access"), "ended-count") == [60]


@pytest.mark.parametrize("place", ["x", "-1-grt_1", "1-", "1-gr t", "9" * 30 + "-grt_1"])
def test_a_link_to_no_place_is_refused(browser: Browser, place: str) -> None:
    assert browser.get(f"/owner/access?before={quote(place)}").error == "invalid_request"


def test_a_long_history_comes_in_pages(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    for number in range(120):
        event = AuditRow(
            event="refresh.rotated", at_ns=number, actor="client", grant_id=row.grant_id
        )
        house.insert(event)
    path: str | None = f"/owner/access/{row.grant_id}"
    lines = 0
    while path is not None:
        page = browser.get(path)
        lines += marked(page, "history", "data-event").count("refresh.rotated")
        assert set(marked(page, "history", "data-actor")) <= {"client", "owner"}
        link = re.search(r'data-field="older" href="([^"]+)"', page.text)
        path = None if link is None else unescape(link[1])
    assert lines == 120


def test_the_pages_show_references_and_no_secret(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    page = browser.get(f"/owner/access/{row.grant_id}")
    assert "pdpp_at_" not in page.text
    assert "pdpp_ac_" not in page.text


def test_what_was_never_collected_is_not_access(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    assert numbers(browser.get("/owner/"), "active-access") == [0]
    assert states(browser.get("/owner/access")) == ["waiting"]
    page = f"/owner/access/{row.grant_id}"
    assert states(browser.get(page)) == ["waiting"]
    house.collect()
    assert numbers(browser.get("/owner/"), "active-access") == [1]
    assert states(browser.get("/owner/access")) == states(browser.get(page)) == ["active"]


def test_it_is_paused_goes_on_and_has_a_name(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request()))
    (row,) = house.rows(GrantRow)
    path = f"/owner/access/{row.grant_id}"
    browser.submit(browser.get(path), f"{path}/pause")
    page = browser.get(path)
    assert states(page) == ["paused"]
    browser.submit(page, f"{path}/resume")
    assert house.rows(GrantRow)[0].hold == "none"
    browser.submit(browser.get(path), f"{path}/name", name="Grandma's <b>tablet</b>")
    assert "Grandma's <b>tablet</b> Notes app" in words(browser.get("/owner/access"))
    assert "Notes app" in words(browser.get(path))
    refused = browser.submit(browser.get(path), f"{path}/name", name="x" * 81)
    assert (refused.status, refused.error) == (400, "invalid_request")
    for action in ("pause", "name", "change"):
        sent = browser.get(path).form(f"{path}/{action}")
        gone = browser.post(f"/owner/access/grt_none/{action}", sent)
        assert gone.status == 404


def choose(
    browser: Browser, page: Page, path: str, action: str, *, drop: str = "", **fields: str
) -> Page:
    """Press a button of a page after a tick was taken away and fields were set."""
    shown = [each for each in page.form(path) if each[1] != drop and each[0] not in fields]
    return browser.post(path, [*shown, *fields.items(), ("action", action)])


def begin_change(browser: Browser, held_id: str) -> str:
    """The path of the page of a change."""
    path = f"/owner/access/{held_id}"
    return browser.submit(browser.get(path), f"{path}/change").headers["location"]


def test_an_access_is_narrowed_on_a_page(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(fields=["subject", "body"])))
    (before,) = house.rows(GrantRow)
    house.collect()
    path = begin_change(browser, before.grant_id)
    page = browser.get(path)
    assert marked(page, "reads-no-more")
    assert "16 Feb 2027" in words(page)
    shown = choose(browser, page, path, "preview", drop="body")
    done = press(browser, shown, path, "approve")
    assert done.status == 303
    (after,) = [row for row in house.rows(GrantRow) if row.reason is None]
    assert done.headers["location"] == f"/owner/access/{after.grant_id}"
    now = browser.get(f"/owner/access/{after.grant_id}")
    assert len(marked(now, "earlier")) == 1
    history = zip(*(marked(now, "history", f"data-{of}") for of in ("event", "actor")), strict=True)
    assert ("grant.changed", "owner") in list(history)
    assert marked(browser.get(f"/owner/access/{before.grant_id}"), "changed-since")
    assert [row.grant_id for row in house.rows(TokenRow)] == [after.grant_id]


@pytest.mark.parametrize(
    ("action", "column", "value"),
    [("revoke", "reason", "owner"), ("pause", "hold", "owner"), ("name", "name", "Tax office")],
)
def test_the_page_of_before_a_change_acts_on_the_access_that_lives(
    house: Household, browser: Browser, action: str, column: str, value: str
) -> None:
    allow(browser, house.ask(mail_request(fields=["subject", "body"])))
    (before,) = house.rows(GrantRow)
    house.collect()
    old = f"/owner/access/{before.grant_id}"
    stale = browser.get(old)
    path = begin_change(browser, before.grant_id)
    press(
        browser, choose(browser, browser.get(path), path, "preview", drop="body"), path, "approve"
    )
    (after,) = [row for row in house.rows(GrantRow) if row.reason is None]
    done = browser.submit(stale, f"{old}/{action}", **({"name": value} if action == "name" else {}))
    assert done.headers["location"] == f"/owner/access/{after.grant_id}"
    (row,) = [row for row in house.rows(GrantRow) if row.grant_id == after.grant_id]
    assert getattr(row, column) == value


def test_to_give_more_needs_a_fresh_sign_in(house: Household) -> None:
    house.sign_in.set_password("correct horse battery")
    browser = house.signed_in()
    allow(browser, house.ask(mail_request(fields=["subject"])))
    (before,) = house.rows(GrantRow)
    path = begin_change(browser, before.grant_id)
    house.clock.now_ns += 16 * 60 * 10**9
    page = browser.get(path)
    assert 'value="approve"' in page.text
    shown = choose(browser, page, path, "preview", expiry="none")
    assert marked(shown, "reads-longer")
    assert 'value="approve"' not in shown.text
    refused = press(browser, shown, path, "approve")
    assert (refused.status, refused.error) == (401, "owner_session_required")
    assert len(house.rows(GrantRow)) == 1


def test_an_access_that_changed_meanwhile_is_told_with_the_choices_kept(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request(fields=["subject", "body"])))
    (first,) = house.rows(GrantRow)
    one, other = (begin_change(browser, first.grant_id) for _ in range(2))
    shown = choose(browser, browser.get(one), one, "preview", drop="body")
    sooner = choose(browser, browser.get(other), other, "preview", expiry="30d")
    assert press(browser, sooner, other, "approve").status == 303
    stale = press(browser, shown, one, "approve")
    assert (stale.status, stale.error) == (409, "review_stale")
    assert len(marked(stale, "difference")) == 2
    assert press(browser, stale, one, "approve").status == 303
    (row,) = [row for row in house.rows(GrantRow) if row.reason is None]
    assert b"body" not in row.grant
    closed = browser.get(begin_change(browser, row.grant_id))
    assert closed.status == 200
    path = f"/owner/access/{row.grant_id}"
    browser.submit(browser.get(path), f"{path}/revoke")
    assert house.rows(GrantRow)[0].reason is not None
