from __future__ import annotations

import re

from personal_server.delivery.notice_channels import row_of
from personal_server.delivery.web_push import parse_keys
from personal_server.domain.notices import KINDS, Cause, NoticeKind, StandingNotice
from personal_server.storage.notice_rows import NoticeChannelRow, NoticeSettingsRow
from server.tests.console.browsing import Page, marked
from server.tests.console.household import Household
from server.tests.delivery.browser_keys import browser as push_browser
from server.tests.delivery.browser_keys import text_of

PATH = "/owner/notices"


def stands(house: Household, kind: NoticeKind, name: str, about: str = "id_1") -> None:
    house.insert(row_of(StandingNotice(Cause(kind, about, name, 1), 1)))


def kinds(page: Page) -> list[str]:
    return marked(page, "notice", "data-kind")


def test_the_desktop_is_added_tested_and_removed_where_a_program_is() -> None:
    house = Household()
    browser = house.signed_in()
    page = browser.get(PATH)
    assert f"{PATH}/desktop" not in page.text
    house.has_desktop = True
    assert browser.submit(browser.get(PATH), f"{PATH}/desktop").status == 303
    (row,) = house.rows(NoticeChannelRow)
    page = browser.get(PATH)
    assert f"{PATH}/desktop" not in page.text
    assert len(marked(page, "notice-channel")) == 1
    assert browser.submit(page, f"{PATH}/test").status == 303
    assert [each.test_asked for each in house.rows(NoticeChannelRow)] == [True]
    remove = f"{PATH}/channels/{row.channel_id}/remove"
    assert browser.submit(page, remove).status == 303
    assert house.rows(NoticeChannelRow) == []
    assert browser.submit(page, remove).status == 404


def test_what_stands_is_one_line_for_each_kind_and_names_are_escaped() -> None:
    house = Household()
    browser = house.signed_in()
    assert kinds(browser.get(PATH)) == []
    stands(house, NoticeKind.OLD_SOURCE, "Chats")
    stands(house, NoticeKind.REQUEST, "<b>One</b>", "ar_1")
    stands(house, NoticeKind.REQUEST, "Two", "ar_2")
    page = browser.get(PATH)
    assert kinds(page) == ["request_waits", "source_old"]
    assert "<b>One</b>" not in page.text
    # the overview shows a request by itself, and a missing first backup after a week
    noticed_ns = house.clock.now_ns
    cause = Cause(NoticeKind.NO_BACKUP, "backup", "", 0)
    house.insert(row_of(StandingNotice(cause, noticed_ns)))
    assert kinds(browser.get("/owner/")) == ["source_old"]
    house.clock.now_ns += KINDS[NoticeKind.NO_BACKUP].after_ns
    browser = house.signed_in()
    assert kinds(browser.get("/owner/")) == ["no_backup", "source_old"]


def test_quiet_hours_and_kinds_are_kept_and_shown() -> None:
    house = Household()
    browser = house.signed_in()
    fields = [("_csrf", dict(browser.get(PATH).form(f"{PATH}/settings"))["_csrf"])]
    fields += [("quiet_from", "22:30"), ("quiet_until", "07:00"), ("told", "feed_stale")]
    assert browser.post(f"{PATH}/settings", fields).status == 303
    (row,) = house.rows(NoticeSettingsRow)
    assert (row.quiet_from, row.quiet_until) == (22 * 60 + 30, 7 * 60)
    assert set(row.kinds_off) == set(NoticeKind) - {NoticeKind.FEED}
    form = browser.get(PATH).form(f"{PATH}/settings")
    assert [pair for pair in form if pair[0] != "_csrf"] == fields[1:]
    for wrong in (("told", "weather"), ("quiet_from", "soon")):
        assert browser.post(f"{PATH}/settings", [fields[0], wrong]).error == "invalid_request"
    assert browser.post(f"{PATH}/settings", fields[:1]).status == 303
    (row,) = house.rows(NoticeSettingsRow)
    assert row.quiet_from is None


def test_a_form_without_its_secret_does_nothing() -> None:
    house = Household(has_desktop=True)
    browser = house.signed_in()
    for path in ("desktop", "test", "settings"):
        assert browser.post(f"{PATH}/{path}", []).error == "csrf_failed"
    assert house.rows(NoticeChannelRow) == house.rows(NoticeSettingsRow) == []


def test_a_browser_is_added_with_its_keys_and_the_page_can_be_installed() -> None:
    house = Household()
    browser = house.signed_in()
    page = browser.get(PATH)
    policy = page.headers["content-security-policy"]
    assert all(f"{name} 'self'" in policy for name in ("script-src", "worker-src", "manifest-src"))
    assert "connect-src" not in policy
    known_by = re.search(r'data-push-key="([\w-]{87})"', page.text)
    assert known_by
    assert known_by[0] in browser.get(PATH).text
    _, keys = push_browser()
    parts = {"endpoint": "https://push.example/1", "p256dh": text_of(keys.point)}
    path = f"{PATH}/browser"
    refused = browser.submit(page, path, **parts, auth="short")
    assert refused.error == "invalid_request"
    assert browser.submit(page, path, **parts, auth=text_of(keys.auth)).status == 303
    assert house.called == ["https://push.example/1"]
    (row,) = house.rows(NoticeChannelRow)
    assert (row.kind, row.address) == ("push", "https://push.example/1")
    assert parse_keys(parts["p256dh"], text_of(keys.auth)) == keys
    # where a browser is reached is for the server alone
    assert "push.example" not in browser.get(PATH).text


def test_worker_and_manifest_are_public_and_tell_nothing_of_the_owner() -> None:
    house = Household()
    for name, kind in (("notices-worker.js", "javascript"), ("manifest.webmanifest", "manifest")):
        page = house.browser().get(f"/assets/{name}")
        assert page.status == 200
        assert kind in page.headers["content-type"]
        assert "Ada" not in page.text
