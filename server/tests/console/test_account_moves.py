"""Accounts joined and parted on pages: counted before, agreed to, and told after."""

from __future__ import annotations

import pytest

from personal_server.console import account_moves
from server.tests.console.browsing import Browser, Page, allow, marked, numbers, words
from server.tests.console.household import CHECKING, HOME, WORK, Household, mail_request

MERGE, SPLIT = f"/owner/sources/{HOME}/merge", f"/owner/sources/{HOME}/split"


def look(browser: Browser, place: str, other: str = WORK) -> Page:
    page = browser.get(f"{place}?other={other}")
    assert page.status == 200, page.text
    return page


def held(house: Household, connection_id: str) -> int:
    with house.records.snapshot() as snapshot:
        stored = snapshot.stored_streams()
    return sum(each.record_count for each in stored if each.connection_id == connection_id)


def test_the_page_of_an_account_leads_to_those_of_its_source(browser: Browser) -> None:
    page = browser.get(f"/owner/sources/{HOME}").text
    assert f'href="{MERGE}?other={WORK}"' in page
    assert f'href="{SPLIT}?other={WORK}"' in page
    assert f"other={CHECKING}" not in page


def test_merging_counts_names_who_reads_and_tells_what_was_done(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    house.collect()
    page = look(browser, MERGE)
    assert (numbers(page, "moves"), numbers(page, "shared")) == ([28], [12])
    assert marked(page, "readers") == ["Notes app"]
    assert held(house, HOME) == 40
    done = browser.follow(browser.submit(page, MERGE, confirm=HOME))
    assert done.status == 200
    assert numbers(done, "merge") == [28]
    assert (held(house, HOME), held(house, WORK)) == (0, 40)
    assert browser.get(f"/owner/sources/{HOME}").status == 404


def test_whoever_reads_the_account_that_stays_reads_what_comes(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    house.collect()
    page = look(browser, f"/owner/sources/{WORK}/merge", HOME)
    assert marked(page, "other-readers") == ["Notes app"]


def test_splitting_takes_out_what_the_other_holds(house: Household, browser: Browser) -> None:
    page = look(browser, SPLIT)
    assert numbers(page, "moves") == [12]
    done = browser.follow(browser.submit(page, SPLIT, confirm=HOME))
    assert numbers(done, "split") == [12]
    assert (held(house, HOME), held(house, WORK)) == (28, 12)
    assert marked(look(browser, SPLIT), "nothing-shared")


@pytest.mark.parametrize("place", [MERGE, SPLIT])
def test_nothing_moves_unless_it_was_agreed_to_as_it_is_now(
    house: Household, browser: Browser, place: str
) -> None:
    page = look(browser, place)
    assert browser.submit(page, place).error == "confirmation_required"
    assert browser.submit(page, place, confirm=WORK).error == "confirmation_required"
    assert browser.submit(page, place, confirm=HOME, count="1 1").error == "invalid_state"
    for connection_id in (HOME, WORK):
        house.fill(connection_id, "messages", [{"id": "new", "sent_at": "2026-01-01T00:00:00Z"}])
    assert browser.submit(page, place, confirm=HOME).error == "invalid_state"
    assert browser.post(place, [("other", WORK), ("confirm", HOME)]).status == 403
    assert (held(house, HOME), held(house, WORK)) == (41, 13)


def test_two_accounts_of_one_source_are_needed(browser: Browser) -> None:
    for place in (MERGE, SPLIT):
        assert browser.get(place).error == "invalid_request"
        assert browser.get(f"{place}?other=cin_nothing").error == "invalid_request"
        for other in (HOME, CHECKING):
            assert browser.get(f"{place}?other={other}").error == "invalid_state"
    assert browser.get(f"/owner/sources/cin_x/merge?other={HOME}").error == "connection_not_found"


def test_what_a_page_cannot_wait_for_is_left_to_the_command(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = look(browser, MERGE)
    monkeypatch.setattr(account_moves, "MOST_MOVED", 39)
    assert f"connection merge {HOME} {WORK}" in words(look(browser, MERGE))
    assert browser.submit(page, MERGE, confirm=HOME).error == "invalid_state"
    monkeypatch.setattr(account_moves, "MOST_MOVED", 11)
    assert f"connection split {HOME} --from {WORK}" in words(look(browser, SPLIT))
