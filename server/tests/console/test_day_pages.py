from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from pdpp_sources.apple_health.reader import DECLARATION as HEALTH
from personal_server.console.day_map import day_map
from personal_server.domain.declaration_document import parse_declaration
from personal_server.owner_locale import OwnerLocale
from server.tests.console.browsing import Browser, marked, numbers
from server.tests.console.household import HOME, Household
from server.tests.console.test_measurement_lines import ROWS, measured
from server.tests.console.test_presentations import read
from server.tests.console.test_record_lists import filled, put

DAYS = "/owner/days"


def test_a_year_counts_its_days_and_leads_to_those_that_have_records(
    house: Household, browser: Browser
) -> None:
    del house
    page = browser.get(DAYS)
    linked = set(re.findall(r'<a href="days/([0-9-]+)" tabindex', page.text))
    listed = set(re.findall(r'<li><a href="days/([0-9-]+)">', page.text))
    assert linked
    assert linked == listed
    assert numbers(page, "total")[-1] == 82
    for day in sorted(linked)[-2:]:
        assert marked(browser.get(f"{DAYS}/{day}"), "entry"), day
    assert len(page.html) < 100_000


def test_a_day_shows_all_sources_in_the_order_of_their_local_times(
    house: Household, browser: Browser
) -> None:
    linked = re.findall(r'<a href="days/([0-9-]+)" tabindex', browser.get(DAYS).text)
    found = {day: browser.get(f"{DAYS}/{day}") for day in linked}
    both = [
        page
        for page in found.values()
        if f"/owner/records/{HOME}/messages/" in page.text and "/transactions/" in page.text
    ]
    assert both
    utc = [re.findall(r'class="by">([^<]*)<', page.text) for page in found.values()]
    house.locale.known = OwnerLocale(time_zone="Asia/Kathmandu")
    local = [
        re.findall(r'class="by">([^<]*)<', browser.get(f"{DAYS}/{day}").text) for day in linked
    ]
    assert utc != local
    for times in local:
        clocks = [each for each in times if ":" in each]
        assert clocks == sorted(clocks)


def test_a_day_is_asked_for_by_a_form_and_says_where_none_is(browser: Browser) -> None:
    assert browser.get(f"{DAYS}?day=2026-02-28").headers["location"] == f"{DAYS}/2026-02-28"
    assert marked(browser.get(f"{DAYS}/1901-01-01"), "no-entries")
    for path in (f"{DAYS}?day=2026-02-30", f"{DAYS}?year=x", f"{DAYS}/2026-02-30?cursor=x"):
        assert browser.get(path).error in ("invalid_request", "not_found"), path
    assert browser.get(f"{DAYS}/9999-12-31").error == "not_found"
    assert browser.get(f"{DAYS}/2026-11-01?cursor=x").error == "invalid_cursor"
    assert marked(browser.get(f"{DAYS}?year=1950"), "no-days")


def test_a_map_has_every_day_once_and_four_steps_of_what_is_there() -> None:
    first = (datetime(2024, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
    shown = day_map(2024, {first + place: place for place in range(366)})
    cells = [cell for month in shown.months for cell in month.days]
    assert [cell.day for cell in cells] == sorted({cell.day for cell in cells})
    assert len({(cell.x, cell.y) for cell in cells}) == len(cells) == 366
    assert {cell.level for cell in cells} == {0, 1, 2, 3, 4}
    assert shown.total == sum(range(366))
    assert {cell.level for month in day_map(2023, {}).months for cell in month.days} == {0}


def test_a_year_counts_by_the_days_of_the_owners_zone(house: Household, browser: Browser) -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        house.locale.known = OwnerLocale(time_zone=zone)
        page = browser.get(DAYS)
        counted = re.findall(r'<a href="days/([0-9-]+)">[0-9]+ <i>([0-9]+)</i>', page.text)
        assert counted
        for day, count in counted:
            entries = marked(browser.get(f"{DAYS}/{day}"), "entry")
            assert len(entries) == int(count), (zone, day)


HEALTH_STREAMS = parse_declaration(HEALTH).streams
WALKED = {"file": "walk.gpx", "latitude": 45.4, "longitude": 9.2}
POINTS = [{"id": f"p{n}", "recorded_at": f"2026-11-18T06:{n:02}:00Z", **WALKED} for n in range(3)]
WORKOUT = {
    "id": "w1",
    "started_at": "2026-11-18T06:00:00Z",
    "ended_at": "2026-11-18T06:30:00Z",
    "kind": "running",
    "minutes": 30.0,
}


def test_what_was_measured_on_a_day_is_a_card_and_no_row(
    house: Household, browser: Browser
) -> None:
    house.locale.keep("Europe/Rome", None)
    filled(house, HEALTH, "cin_health", "measurements", ROWS)
    put(house, HEALTH_STREAMS["route_points"], "cin_health", POINTS)
    put(house, HEALTH_STREAMS["workouts"], "cin_health", [WORKOUT])
    page = browser.get(f"{DAYS}/2026-11-18")
    (workout,) = [each for each in marked(page, "entry") if "cin_health" in each]
    assert "running" in workout
    assert numbers(page, "measured-records") == [3, 3]
    assert sorted(marked(page, "measure")) == [
        "heart rate 1 record 61 count/min",
        "step count 2 records 1,234 count",
    ]
    links = marked(page, "measured-records", "href")
    tables = [len(read(browser, link).all("table.cells tbody tr")) for link in links]
    assert sorted(tables) == [0, 3]
    (on_map,) = [link for link in links if "route_points" in link]
    assert marked(browser.get(on_map), "map")
    before = browser.get(f"{DAYS}/2026-11-17")  # the night of Rome, the 16th in UTC
    assert marked(before, "measure") == ["heart rate 1 record 50 count/min"]
    (link,) = marked(before, "measured-records", "href")
    assert len(read(browser, link).all("table.cells tbody tr")) == 1


def test_what_was_measured_in_several_units_has_no_figure(
    house: Household, browser: Browser
) -> None:
    at = "2026-11-18T09:00:00Z"
    rows = [
        measured(1, at, "body_mass", 80.0, "kg"),
        measured(2, at, "body_mass", 176.0, "lb"),
        measured(3, at, "step_count", 80.0, "count"),
        measured(4, at, "step_count", 2.0, "1000 steps"),
        measured(5, at, "heart_rate", 76.0, "count/min"),
    ]
    filled(house, HEALTH, "cin_health", "measurements", rows)
    assert sorted(marked(browser.get(f"{DAYS}/2026-11-18"), "measure")) == [
        "body mass 2 records",
        "heart rate 1 record 76 count/min",
        "step count 2 records",
    ]


def test_a_measure_with_a_name_too_long_for_a_link_has_none(
    house: Household, browser: Browser
) -> None:
    rows = [measured(1, "2026-11-18T09:00:00Z", "m" * 700, 80.0, "kg"), ROWS[3]]
    filled(house, HEALTH, "cin_health", "measurements", rows)
    page = browser.get(f"{DAYS}/2026-11-18")
    assert len(marked(page, "measure")) == 2
    (link,) = marked(page, "measure-records", "href")
    assert len(read(browser, link).all("table.cells tbody tr")) == 1


def test_cards_stand_on_the_first_page_of_a_day_and_say_what_was_not_counted(
    house: Household, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(house, HEALTH, "cin_health", "measurements", ROWS)
    runs = [WORKOUT | {"id": f"w{number}"} for number in range(60)]
    put(house, HEALTH_STREAMS["workouts"], "cin_health", runs)
    page = browser.get(f"{DAYS}/2026-11-18")
    assert len(marked(page, "measured")) == 1
    assert not marked(browser.get(marked(page, "next", "href")[0]), "measured")
    monkeypatch.setattr("personal_server.console.day_pages.FIGURES_SECONDS", 0.0)
    assert len(marked(browser.get(f"{DAYS}/2026-11-18"), "uncounted")) == 1
