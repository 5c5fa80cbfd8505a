"""Lists that look like what they are, by the roles of a declaration."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pdpp_sources.browser.reader import DECLARATION as BROWSER
from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from pdpp_sources.whatsapp import DECLARATION as WHATSAPP
from personal_server.console.list_figures import SUMS_READ
from personal_server.domain.declaration_document import parse_declaration
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import CHECKING, HOME, Household
from server.tests.console.test_presentations import (
    CHAT,
    NAMES,
    OTHER_NAMES,
    OUTSIDE,
    chat,
    outsiders,
    put,
    read,
)

MESSAGES = f"/owner/records/{HOME}/messages"
PAYMENTS = f"/owner/records/{CHECKING}/transactions"


def filled(
    house: Household, raw: dict[str, Any], account: str, stream: str, rows: list[dict[str, Any]]
) -> str:
    """Records of an account; the path of their page."""
    declared = parse_declaration(raw)
    house.declare(raw)
    house.connect(account, declared.connector_key, declared.source_id, account)
    put(house, declared.streams[stream], account, rows)
    return f"/owner/records/{account}/{stream}"


def test_mails_stand_as_an_inbox_and_the_table_is_one_click_away(browser: Browser) -> None:
    page = read(browser, MESSAGES)
    assert page.all(".inbox .by")[0] == "Grace Hopper"
    assert page.all(".inbox .what a")[0] == "Lunch on Thursday?"
    assert page.all(".inbox .words")[0].startswith("Dear Ada, secret number 0")
    assert len(page.all(".inbox > li")) == 25
    (table,) = marked(browser.get(MESSAGES), "as-table", "href")
    shown = read(browser, table)
    assert shown.all(".inbox") == []
    assert len(shown.all("table.cells tbody tr")) == 25
    assert marked(browser.get(table), "as-list", "href") == [MESSAGES]
    assert browser.get(f"{MESSAGES}?as=list").error == "invalid_request"


def test_a_mail_without_a_subject_is_called_by_sender_and_day(
    house: Household, browser: Browser
) -> None:
    row = {
        "sent_at": "2026-11-18T09:30:00Z",
        "subject": "",
        "from_name": "דנה כהן",
        "body": "Hello",
    }
    house.fill(HOME, "messages", [{"id": "m900", **row}])
    page = read(browser, f"{MESSAGES}?filter[from_name]=דנה כהן")
    assert page.all(".inbox .what a") == ["דנה כהן, 18 Nov 2026"]
    assert page.all(".inbox .what a > bdi") == ["דנה כהן"]
    table = read(browser, f"{MESSAGES}?filter[from_name]=דנה כהן&as=table")
    assert table.all("tbody th") == ["דנה כהן, 18 Nov 2026"]


def paid(number: int, day: str, amount: float, currency: str) -> dict[str, Any]:
    return {
        "id": f"x{number}",
        "posted_on": day,
        "payee": f"Shop {number}",
        "amount": amount,
        "currency": currency,
    }


def test_payments_are_summed_by_month_and_never_across_currencies(
    house: Household, browser: Browser
) -> None:
    house.records.erase_connection(CHECKING, house.clock.now_ns)
    rows = [
        paid(1, "2026-11-20", -10.1, "EUR"),
        paid(2, "2026-11-02", -0.2, "EUR"),
        paid(3, "2026-11-02", -500, "JPY"),
        paid(4, "2026-10-31", 2650.0, "EUR"),
        *(paid(10 + n, "2026-09-15", -1.5, "EUR") for n in range(30)),  # more than a page
    ]
    house.connect("cin_bank", "bank", "https://registry.pdpp.dev/connectors/bank", "Bank")
    house.fill("cin_bank", "transactions", rows)
    path = "/owner/records/cin_bank/transactions"
    page = read(browser, path)
    assert page.all(".month th") == ["Nov 2026", "Oct 2026", "Sept 2026"]
    sums = [(each.split()[-1]) for each in page.all('[data-field="sum"]')]
    assert sums == ["-10.30", "-500", "2,650.00", "-45.00"]
    assert page.all(".month .currency") == ["EUR", "JPY", "EUR", "EUR"]
    assert page.all('[data-field="amount"]')[:3] == ["-10.10", "-500", "-0.20"]
    narrowed = read(browser, f"{path}?since=2026-11-01&until=2026-11-10")
    assert [e.split()[-1] for e in narrowed.all('[data-field="sum"]')] == ["-0.20", "-500"]


def test_payments_of_a_month_are_summed_by_category(house: Household, browser: Browser) -> None:
    house.connect("cin_bank", "bank", "https://registry.pdpp.dev/connectors/bank", "Bank")
    rows = [
        {**paid(1, "2026-11-20", -10.1, "EUR"), "category": "Food"},
        {**paid(2, "2026-11-02", -0.2, "EUR"), "category": "Food"},
        {**paid(3, "2026-11-02", -500, "JPY"), "category": "Food"},
        {**paid(4, "2026-11-03", -70, "EUR"), "category": "Rent"},
        paid(5, "2026-11-04", -1, "EUR"),
        {**paid(6, "2026-10-04", -9, "EUR"), "category": "Rent"},
    ]
    house.fill("cin_bank", "transactions", rows)
    path = "/owner/records/cin_bank/transactions"
    page = read(browser, path)
    assert page.all('[data-field="category"] th')[:2] == ["Rent", "Food"]
    cells = page.all('[data-field="category"] td')
    assert cells[::3] == ["-70.00", "-10.30", "-1.00", "-500"]
    assert cells[1::3] == ["EUR", "EUR", "EUR", "JPY"]
    assert cells[2::3] == ["1", "2", "1", "1"]
    links = page.page.css('[data-field="category"] a')
    food = read(browser, str(links[1].attributes["href"]))
    assert len(food.all('[data-field="amount"]')) == 3
    assert food.all('[data-field="category"]') == []
    without = read(browser, str(links[2].attributes["href"]))
    assert without.all('[data-field="amount"]') == ["-1.00"]


def test_more_categories_than_are_summed_are_said_to_be(house: Household, browser: Browser) -> None:
    house.connect("cin_bank", "bank", "https://registry.pdpp.dev/connectors/bank", "Bank")
    rows = [{**paid(n, "2026-11-20", -1, "EUR"), "category": f"C{n}"} for n in range(SUMS_READ + 1)]
    house.fill("cin_bank", "transactions", rows)
    page = read(browser, "/owner/records/cin_bank/transactions")
    assert page.all('[data-field="category"]') == []
    assert len(page.all('[data-field="unsummed"]')) == 1
    house.fill("cin_bank", "transactions", [{**rows[0], "category": "C1"}])
    page = read(browser, "/owner/records/cin_bank/transactions")
    assert len(page.all('[data-field="category"]')) == SUMS_READ
    assert page.all('[data-field="unsummed"]') == []


def test_payments_without_an_amount_of_any_size_and_of_the_last_month_are_listed(
    house: Household, browser: Browser
) -> None:
    house.connect("cin_bank", "bank", "https://registry.pdpp.dev/connectors/bank", "Bank")
    rows: list[dict[str, Any]] = [
        paid(1, "9999-12-31", 12e22, "EUR"),
        paid(2, "9999-12-31", -1.5e300, "XYZ"),
        {**paid(3, "9999-11-02", 0, "EUR"), "amount": None},
        {**paid(4, "9999-10-02", 1, "EUR"), "currency": None},
    ]
    house.fill("cin_bank", "transactions", rows)
    page = read(browser, "/owner/records/cin_bank/transactions")
    assert page.all(".month th") == ["Dec 9999", "Nov 9999", "Oct 9999"]
    amounts = [each.replace(",", "") for each in page.all('[data-field="amount"]')]
    assert amounts == [f"-15{'0' * 299}.00", f"12{'0' * 22}.00", "", "1.00"]


def test_sums_are_those_of_the_records(browser: Browser) -> None:
    page = read(browser, f"{PAYMENTS}?sort=posted_on")
    found = [Decimal(e.split()[-1].replace(",", "")) for e in page.all('[data-field="sum"]')]
    rows = [Decimal(e.replace(",", "")) for e in page.all('[data-field="amount"]')]
    assert len(rows) == 25
    assert found[0] == sum(
        rows[: len(page.page.css(".payments tbody")[0].css('[data-field="amount"]'))]
    )


def test_what_is_not_summed_in_time_is_said(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("personal_server.console.stream_pages.FIGURES_SECONDS", 0.0)
    page = browser.get(PAYMENTS)
    assert len(marked(page, "unsummed")) == 1
    assert len(marked(page, "amount")) == 25


def event(number: int, begins: str, ends: str | None, **members: Any) -> dict[str, Any]:
    facts = {"id": f"e{number}", "title": f"Event {number}", "calendar": "Home", "all_day": False}
    return {**facts, "starts_at": begins, "ends_at": ends, **members}


def test_events_are_an_agenda_by_the_owners_days(house: Household, browser: Browser) -> None:
    house.locale.keep("America/Los_Angeles", None)
    now = datetime.fromtimestamp(house.clock.now_ns // 10**9, UTC)
    assert f"{now:%Y-%m-%d}" == "2026-11-18"
    rows = [
        event(1, "2026-11-19T04:00:00Z", "2026-11-19T05:30:00Z"),  # the evening of the 18th there
        event(2, "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z", all_day=True),
        event(3, "2026-11-21T00:00:00Z", "2026-11-24T00:00:00Z", all_day=True),
        event(4, "2026-11-01T18:00:00Z", "2026-11-01T19:00:00Z"),
        event(5, "2026-11-22T18:00:00Z", "2026-11-23T18:00:00Z"),
    ]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, f"{path}?as=days")
    days = ["Wed, 18 Nov 2026", "Thu, 19 Nov 2026", "Sat, 21 Nov 2026", "Sun, 22 Nov 2026"]
    assert page.all(".day h3") == days
    times = ["20:00 – 21:30", "all day", "21–23 Nov 2026", "10:00 – 23 Nov 2026, 10:00"]
    assert page.all(".day .by") == times
    assert len(page.all('[data-field="from-today"]')) == 1
    earlier = read(browser, f"{path}?until=2026-11-18")
    assert earlier.all(".day .what a") == ["Event 4"]
    assert earlier.all('[data-field="from-today"]') == []
    narrowed = read(browser, f"{path}?filter[calendar]=Home&as=days")
    (link,) = narrowed.page.css('[data-field="from-today"] a')
    assert link.attributes["href"] == f"{path}?filter[calendar]=Home&until=2026-11-18&as=days"


def test_a_calendar_of_the_past_begins_with_the_newest(house: Household, browser: Browser) -> None:
    rows = [event(n, f"2020-01-0{n}T18:00:00Z", f"2020-01-0{n}T19:00:00Z") for n in (1, 2)]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, f"{path}?as=days")
    assert page.all(".day .what a") == ["Event 2", "Event 1"]


def test_events_without_a_time_and_at_the_ends_of_the_calendar_are_listed(
    house: Household, browser: Browser
) -> None:
    rows = [
        event(1, "9999-12-31T23:30:00Z", None),
        event(2, "0001-01-01T00:00:00Z", "9999-12-31T23:30:00Z"),
        {**event(3, "", None), "starts_at": None},
        event(4, "9999-12-31T00:00:00Z", None, all_day=True),
    ]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    for zone in ("Pacific/Auckland", "America/Los_Angeles"):
        house.locale.keep(zone, None)
        page = read(browser, f"{path}?sort=starts_at")
        assert sorted(page.all(".day .what a")) == [f"Event {n}" for n in (1, 2, 3, 4)]
        assert page.all(".day .what a")[-1] == "Event 3"
        for link in page.page.css(".day .what a"):
            read(browser, link.attributes["href"] or "")


def test_chats_are_conversations_with_their_messages_in_order(
    house: Household, browser: Browser
) -> None:
    chat(house, WHATSAPP, CHAT, NAMES)
    rows = [
        {
            "id": f"n{n}",
            "chat_id": "c9",
            "chat_name": "Family",
            "author": "Ada",
            "sent_at": f"2026-11-18T20:0{n}:00Z",
            "text": f"hello {n}",
        }
        for n in range(3)
    ]
    put(house, parse_declaration(WHATSAPP).streams["messages"], CHAT, rows)
    path = f"/owner/records/{CHAT}/messages"
    page = read(browser, path)
    (link, *_) = [a.attributes["href"] for a in page.page.css('[data-field="chats"] a')]
    assert page.all('[data-field="chats"] a')[0] == "Family"
    alone = read(browser, str(link))
    assert alone.all(".bubbles .said") == ["hello 0", "hello 1", "hello 2"]
    assert alone.all('[data-field="chats"]') == []
    newest = read(browser, path).all(".bubbles .said")
    assert newest[-1] == "hello 2"
    assert len(newest) == 25
    (earlier,) = marked(browser.get(path), "next", "href")
    assert len(read(browser, earlier).all(".bubbles .said")) == 18


def test_an_outsiders_chat_looks_like_one(house: Household, browser: Browser) -> None:
    chat(house, outsiders(), OUTSIDE, OTHER_NAMES)
    page = read(browser, f"/owner/records/{OUTSIDE}/posts")
    assert len(page.all(".bubbles .said")) == 25
    link = page.page.css('[data-field="conversation"] h3 a')[0].attributes["href"]
    assert len(read(browser, str(link)).all(".bubbles .said")) == 20


def test_pages_visited_stand_by_title_and_day(house: Household, browser: Browser) -> None:
    row = {"visited_at": "2026-11-18T09:30:00Z", "host": "weather.example"}
    rows = [
        {"id": "v1", "title": "Weather", "url": "https://weather.example/1", **row},
        {"id": "v2", "url": "https://weather.example/2", **row},
    ]
    page = read(browser, filled(house, BROWSER, "cin_web", "visits", rows))
    assert sorted(page.all(".inbox .what a")) == ["Weather", "https://weather.example/2"]
    assert page.all(".inbox .by") == ["weather.example"] * 2
    assert page.all(".inbox .at") == ["18 Nov 2026"] * 2
