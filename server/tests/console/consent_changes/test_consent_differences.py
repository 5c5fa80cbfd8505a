from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.console import consent_changes
from personal_server.domain.connection import ConnectionStatus
from personal_server.storage.authorization import ClientRow, GrantRow, RequestRow
from server.tests.console.browsing import Browser, press, words
from server.tests.console.household import HOME, MAIL_SOURCE, WORK, Household, mail_request

BEFORE: dict[str, Any] = {
    "client": {"client_id": "cli_1"},
    "access_mode": "continuous",
    "expires_at": "2027-02-19T21:00:00Z",
    "ends": [],
    "sources": [
        {
            "source": {"id": "https://registry.pdpp.dev/connectors/mail"},
            "streams": [
                {"name": "messages", "instance_ids": ["a", "b"], "fields": ["id", "subject"]},
                {"name": "attachments", "instance_ids": ["a"], "fields": ["id"]},
            ],
        }
    ],
}


def test_equal_artifacts_have_no_differences() -> None:
    assert consent_changes.differences(BEFORE, BEFORE) == []
    assert consent_changes.changed_streams(BEFORE, BEFORE) == frozenset()


ARTIFACT_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"access_mode": "single_use"}, "Access is now for one use."),
    ({"expires_at": None}, "Access now has no end."),
    ({"ends": ["grt_1"]}, "What ends on approval changed."),
]
STREAM_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"fields": ["id"]}, "messages of mail: now without subject."),
    ({"fields": ["id", "subject", "sent_at"]}, "messages of mail: now with sent at."),
    (
        {"fields": ["id", "subject", *"abcdefg"]},
        "messages of mail: now with a, b, c, d, e and 2 more.",
    ),
    ({"instance_ids": ["a"]}, "messages of mail: 1 account, before 2."),
    ({"time_constraint": {"field": "at"}}, "messages of mail: another time window."),
    ({"resources": ["1"]}, "messages of mail: other named records."),
    ({"only": {"from": ["a"]}}, "messages of mail: limited to other values."),
]


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The differences in the language of the source."""
    return list(map(str, consent_changes.differences(before, after)))


@pytest.mark.parametrize(("change", "said"), ARTIFACT_CHANGES)
def test_each_difference_of_the_whole_is_said_in_words(change: dict[str, Any], said: str) -> None:
    assert told(BEFORE, {**BEFORE, **change}) == [said]


@pytest.mark.parametrize(("change", "said"), STREAM_CHANGES)
def test_each_difference_of_a_stream_is_said_in_words(change: dict[str, Any], said: str) -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"][0].update(change)
    assert told(BEFORE, after) == [said]


def test_a_stream_that_comes_or_goes_is_said() -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"].pop()
    assert told(BEFORE, after) == ["Left out: attachments of mail."]
    assert told(after, BEFORE) == ["Added: attachments of mail."]


def test_a_changed_stream_is_marked() -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"][0]["fields"] = ["id"]
    place = ("https://registry.pdpp.dev/connectors/mail", "messages")
    assert consent_changes.changed_streams(BEFORE, after) == {place}


def test_choices_made_after_the_preview_are_shown_again_with_what_changed(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    changed = press(browser, page, path, "approve", expiry="30d")
    assert (changed.status, changed.error) == (409, "review_changed")
    assert "Access now ends 18 Dec 2026." in words(changed)
    assert house.rows(GrantRow) == []
    assert press(browser, changed, path, "approve").status == 303


def test_the_differences_are_told_after_a_restart_too(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    browser.app = house.console()
    fields = [(n, v) for n, v in page.form(path) if (n, v) != ("field.0.messages", "body")]
    changed = browser.post(path, [*fields, ("action", "approve")])
    assert (changed.status, changed.error) == (409, "review_changed")
    assert "messages of mail: now without body." in words(changed)
    assert "Changed since you looked" in words(changed)
    assert "Changed since you looked" not in words(press(browser, changed, path, "preview"))


def test_another_tab_that_showed_something_else_last_is_told_apart(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    first = browser.get(path)
    press(browser, first, path, "preview", expiry="30d")
    again = press(browser, first, path, "approve")
    assert (again.status, again.error) == (409, "review_changed")
    assert "Access now ends 16 Feb 2027." in words(again)


def another_version(house: Household) -> None:
    raw = json.loads(json.dumps(MAIL))
    raw["declaration_version"] = "2099-01-01"
    house.declare(raw)


def another_account(house: Household) -> None:
    house.connect("cin_club", "mail", MAIL_SOURCE, "Club mailbox")


def fewer_accounts(house: Household) -> None:
    house.records.update_connection(
        WORK, lambda c: dataclasses.replace(c, status=ConnectionStatus.REVOKED)
    )


def no_accounts(house: Household) -> None:
    for connection_id in (HOME, WORK):
        house.records.update_connection(
            connection_id, lambda c: dataclasses.replace(c, status=ConnectionStatus.REVOKED)
        )


def another_name(house: Household) -> None:
    with house.authorization.write() as writer:
        writer.change(
            ClientRow, [ClientRow.name.to("Another app")], ClientRow.client_id.equals("cli_notes")
        )


UNDERNEATH = [
    (another_version, "mail: the source describes its records anew."),
    (another_account, "mail: 1 account more to choose from."),
    (fewer_accounts, "mail: 1 account can no longer be chosen."),
    (no_accounts, "mail: it can no longer be given."),
    (another_name, "What is known of the app changed."),
]


@pytest.mark.parametrize(("change", "said"), UNDERNEATH)
def test_what_changed_underneath_is_named_and_nothing_is_written(
    house: Household, browser: Browser, change: Callable[[Household], None], said: str
) -> None:
    request = mail_request()
    del request[0]["streams"][0]["instance_ids"]  # type: ignore[index]
    path = house.ask(request)
    page = press(browser, browser.get(path), path, "preview", **{"conn.0": WORK})
    change(house)
    browser.app = house.console()
    stale = press(browser, page, path, "approve")
    assert (stale.status, stale.error) == (409, "review_stale")
    assert said in words(stale)
    assert house.rows(GrantRow) == []
    assert [row.status for row in house.rows(RequestRow)] == ["pending"]


def test_a_decided_request_keeps_no_copy_of_the_page(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert [row.shown is None for row in house.rows(RequestRow)] == [False]
    press(browser, page, path, "deny")
    assert [row.shown for row in house.rows(RequestRow)] == [None]
