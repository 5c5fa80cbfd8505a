"""Events as a month, in the days of the owner's zone."""

from __future__ import annotations

from typing import Any

from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import Household
from server.tests.console.test_presentations import Words, read
from server.tests.console.test_record_lists import event, filled


def on_days(page: Words) -> dict[str, list[str]]:
    """The events of each day that has some."""
    cells = page.page.css("td[data-day]")
    found = {
        str(cell.attributes["data-day"]): [
            " ".join(each.text().split()) for each in cell.css('[data-field="event"] a')
        ]
        for cell in cells
    }
    return {day: events for day, events in found.items() if events}


def test_events_stand_on_each_of_their_days_where_the_owner_lives(
    house: Household, browser: Browser
) -> None:
    house.locale.keep("America/Los_Angeles", None)
    rows = [
        event(1, "2026-11-19T04:00:00Z", "2026-11-19T05:30:00Z"),  # the evening of the 18th there
        event(2, "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z", all_day=True),
        event(3, "2026-10-30T00:00:00Z", "2026-11-03T00:00:00Z", all_day=True),
        event(4, "2026-11-22T18:00:00Z", "2026-11-24T08:00:00Z"),  # until midnight of the 24th
        event(5, "2026-12-01T07:30:00Z", None),  # the 30th there
        event(6, "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", all_day=True),
        {**event(7, "", None), "starts_at": None},
    ]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, path)
    assert page.all('[data-field="month"]') == ["Nov 2026"]
    assert on_days(page) == {
        "2026-11-01": ["… Event 3"],
        "2026-11-02": ["… Event 3"],
        "2026-11-18": ["20:00 – 21:30 Event 1"],
        "2026-11-19": ["all day Event 2"],
        "2026-11-22": ["10:00 – 24 Nov 2026, 00:00 Event 4"],
        "2026-11-23": ["… Event 4"],
        "2026-11-30": ["23:30 Event 5"],
    }
    assert [c.attributes["data-day"] for c in page.page.css(".today")] == ["2026-11-18"]
    (later,) = marked(browser.get(path), "later-month", "href")
    assert on_days(read(browser, later)) == {"2026-12-01": ["all day Event 6"]}
    (earlier,) = marked(browser.get(later), "earlier-month", "href")
    assert marked(browser.get(later), "this-month", "href") == [earlier]
    assert on_days(read(browser, earlier)) == on_days(page)
    (days,) = marked(browser.get(path), "as-days", "href")
    assert read(browser, days).all(".day .what a")[0] == "Event 1"
    assert marked(browser.get(days), "as-month", "href") == [path]
    assert len(marked(browser.get(path), "as-table", "href")) == 1


def test_a_day_on_which_clocks_change_keeps_its_events(house: Household, browser: Browser) -> None:
    house.locale.keep("Europe/Rome", None)
    rows = [
        event(1, "2026-10-24T22:30:00Z", None),
        event(2, "2026-10-25T01:30:00Z", None),
        event(3, "2026-10-25T22:59:00Z", None),
        event(4, "2026-10-25T23:00:00Z", None),
    ]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, f"{path}?since=2026-10-01&until=2026-11-01")
    assert on_days(page) == {
        "2026-10-25": ["00:30 Event 1", "02:30 Event 2", "23:59 Event 3"],
        "2026-10-26": ["00:00 Event 4"],
    }


def test_a_calendar_opens_where_there_is_something(house: Household, browser: Browser) -> None:
    rows = [event(1, "2019-05-03T18:00:00Z", None), event(2, "2020-02-03T18:00:00Z", None)]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    assert read(browser, path).all('[data-field="month"]') == ["Feb 2020"]
    empty = read(browser, f"{path}?since=2020-01-01&until=2020-02-01")
    assert len(empty.all('[data-field="no-events"]')) == 1
    narrowed = read(browser, f"{path}?filter[title]=Event 1")
    assert narrowed.all('[data-field="month"]') == ["May 2019"]


def test_a_month_before_the_day_of_an_event_is_empty(house: Household, browser: Browser) -> None:
    house.locale.keep("America/Los_Angeles", None)
    rows = [event(1, "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", all_day=True)]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, f"{path}?since=2026-11-01&until=2026-12-01")
    assert on_days(page) == {}
    assert len(page.all('[data-field="no-events"]')) == 1


def test_what_does_not_fit_a_day_is_one_click_away(house: Household, browser: Browser) -> None:
    rows = [event(n, f"2026-11-18T1{n}:00:00Z", None) for n in range(7)]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, path)
    assert len(on_days(page)["2026-11-18"]) == 3
    assert page.all('[data-field="more-events"]') == ["4 more"]
    (link,) = marked(browser.get(path), "more-events", "href")
    assert len(read(browser, link).all(".day .what a")) == 7


def test_days_at_the_ends_of_the_calendar_have_pages(house: Household, browser: Browser) -> None:
    rows = [event(1, "9999-12-31T23:30:00Z", None), event(2, "0001-01-01T00:00:00Z", None)]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    for zone in ("Pacific/Auckland", "America/Los_Angeles"):
        house.locale.keep(zone, None)
        for days in (
            "",
            "?since=0001-01-01&until=0001-02-01",
            "?since=9999-11-01&until=9999-12-01",
        ):
            read(browser, path + days)


def test_what_lasts_into_a_month_of_long_ago_is_in_it(house: Household, browser: Browser) -> None:
    rows = [
        event(1, "1950-01-30T00:00:00Z", "1950-02-03T00:00:00Z", all_day=True),
        event(2, "0900-01-30T00:00:00Z", "0900-02-02T00:00:00Z", all_day=True),
        event(3, "0001-01-30T00:00:00Z", "0001-02-02T00:00:00Z", all_day=True),
    ]
    path = filled(house, CALENDAR, "cin_calendar", "events", rows)
    page = read(browser, f"{path}?since=1950-02-01&until=1950-03-01")
    assert on_days(page) == {"1950-02-01": ["… Event 1"], "1950-02-02": ["… Event 1"]}
    for year, number in (("0900", 2), ("0001", 3)):
        page = read(browser, f"{path}?since={year}-02-01&until={year}-03-01")
        assert on_days(page) == {f"{year}-02-01": [f"… Event {number}"]}


def trips() -> dict[str, Any]:
    """What lasts, as an outsider declares it."""
    properties: dict[str, Any] = {
        "id": {"type": "string"},
        "what": {"type": "string", "x_pdpp_role": "primary-title"},
        "from": {"type": "string", "format": "date", "x_pdpp_role": "event-time"},
        "to": {"type": "string", "format": "date", "x_pdpp_role": "event-end"},
    }
    stream = {
        "name": "trips",
        "semantics": "append_only",
        "display": {"label": "Trips"},
        "schema": {"type": "object", "properties": properties, "required": ["id", "from"]},
        "primary_key": ["id"],
        "cursor_field": "from",
        "consent_time_field": "from",
        "selection": {"fields": True, "resources": True},
        "query": {"range_filters": {"to": ["gte"]}},
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://trips.example/connectors/trips"},
        "connector_key": "trips",
        "declaration_version": "1",
        "display": {"name": "Trips"},
        "streams": [stream],
    }


def test_an_outsiders_days_are_a_month_too(house: Household, browser: Browser) -> None:
    rows = [
        {"id": "t1", "what": "Rome", "from": "2026-10-30", "to": "2026-11-02"},
        {"id": "t2", "what": "Ghent", "from": "2026-11-18"},
    ]
    page = read(browser, filled(house, trips(), "cin_trips", "trips", rows))
    assert on_days(page) == {
        "2026-11-01": ["… Rome"],
        "2026-11-02": ["… Rome"],
        "2026-11-18": ["all day Ghent"],
    }
