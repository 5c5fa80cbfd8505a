from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.texts import CatalogueText
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.console import consent_changes
from personal_server.domain.connection import ConnectionStatus
from personal_server.storage.authorization_rows import ClientRow, GrantRow, RequestRow
from server.tests.console.browsing import Browser, marked, press
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


ARTIFACT_CHANGES: list[dict[str, Any]] = [
    {"access_mode": "single_use"},
    {"expires_at": None},
    {"expires_at": "2027-01-19T21:00:00Z"},
    {"ends": ["grt_1"]},
]
STREAM_CHANGES: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"fields": ["id"]}, {"fields": "subject"}),
    ({"fields": ["id", "subject", "sent_at"]}, {"fields": "sent at"}),
    ({"instance_ids": ["a"]}, {"now": "1 account", "before": "2"}),
    ({"time_constraint": {"field": "at"}}, {}),
    ({"resources": ["1"]}, {}),
    ({"only": {"from": ["a"]}}, {}),
]


def difference(before: dict[str, Any], after: dict[str, Any]) -> CatalogueText:
    """The only difference, as a text with its values."""
    (only,) = consent_changes.differences(before, after)
    assert isinstance(only, CatalogueText)
    return only


def changed(change: dict[str, Any]) -> dict[str, Any]:
    """What was chosen before, with a change of its first stream."""
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"][0].update(change)
    return after


def shown_values(text: CatalogueText) -> dict[str, str]:
    return {name: str(value) for name, value in text.values.items()}


@pytest.mark.parametrize(("change", "values"), STREAM_CHANGES)
def test_each_difference_of_a_stream_names_it_and_what_changed(
    change: dict[str, Any], values: dict[str, str]
) -> None:
    shown = shown_values(difference(BEFORE, changed(change)))
    assert shown == {"what": "messages of mail", **values}


def test_of_many_new_fields_five_are_named_and_the_others_counted() -> None:
    more = changed({"fields": ["id", "subject", *"abcdefg"]})
    named = shown_values(difference(BEFORE, more))["fields"]
    assert named.startswith("a, b, c, d, e ")
    assert "2" in named.split()


def test_each_difference_has_a_sentence_of_its_own() -> None:
    afters = [{**BEFORE, **change} for change in ARTIFACT_CHANGES]
    afters += [changed(change) for change, _ in STREAM_CHANGES]
    texts = [difference(BEFORE, after).text for after in afters]
    assert len(set(texts)) == len(texts)


def test_a_stream_that_comes_or_goes_is_named() -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"].pop()
    gone, come = difference(BEFORE, after), difference(after, BEFORE)
    assert gone.text != come.text
    assert str(gone.values["what"]) == str(come.values["what"]) == "attachments of mail"


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
    again = press(browser, page, path, "approve", expiry="30d")
    assert (again.status, again.error) == (409, "review_changed")
    assert "18 Dec 2026" in marked(again, "difference")[0]
    assert house.rows(GrantRow) == []
    assert press(browser, again, path, "approve").status == 303


def test_the_differences_are_told_after_a_restart_too(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    browser.app = house.console()
    kept = [(n, v) for n, v in page.form(path) if (n, v) != ("field.0.messages", "body")]
    again = browser.post(path, [*kept, ("action", "approve")])
    assert (again.status, again.error) == (409, "review_changed")
    (shown,) = marked(again, "difference")
    assert shown.startswith("messages of mail ")
    assert "body" in shown
    assert marked(again, "changed")
    assert not marked(press(browser, again, path, "preview"), "changed")


def test_another_tab_that_showed_something_else_last_is_told_apart(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    first = browser.get(path)
    press(browser, first, path, "preview", expiry="30d")
    again = press(browser, first, path, "approve")
    assert (again.status, again.error) == (409, "review_changed")
    assert "16 Feb 2027" in marked(again, "difference")[0]


def another_version(house: Household) -> None:
    raw = json.loads(json.dumps(MAIL))
    raw["declaration_version"] = "2099-01-01"
    house.declare(raw)


def another_account(house: Household) -> None:
    house.connect("cin_club", "mail", MAIL_SOURCE, "Club mailbox")


def fewer_accounts(house: Household) -> None:
    house.records.update_connection(WORK, lambda c: replace(c, status=ConnectionStatus.REVOKED))


def no_accounts(house: Household) -> None:
    for connection_id in (HOME, WORK):
        house.records.update_connection(
            connection_id, lambda c: replace(c, status=ConnectionStatus.REVOKED)
        )


def another_name(house: Household) -> None:
    with house.authorization.write() as writer:
        writer.change(
            ClientRow, [ClientRow.name.to("Another app")], ClientRow.client_id.equals("cli_notes")
        )


UNDERNEATH = [
    (another_version, "mail: "),
    (another_account, "mail: you can choose 1 "),
    (fewer_accounts, "mail: 1 account can no longer be chosen"),
    (no_accounts, "mail: "),
    (another_name, ""),
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
    assert any(shown.startswith(said) for shown in marked(stale, "difference"))
    assert house.rows(GrantRow) == []
    assert [row.status for row in house.rows(RequestRow)] == ["pending"]


def test_a_decided_request_keeps_no_copy_of_the_page(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert [row.shown is None for row in house.rows(RequestRow)] == [False]
    press(browser, page, path, "deny")
    assert [row.shown for row in house.rows(RequestRow)] == [None]
