"""What was measured as a line, by what its declaration says of it."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_sources.apple_health.reader import DECLARATION as HEALTH
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import Household
from server.tests.console.test_presentations import Words, read
from server.tests.console.test_record_lists import filled

PATH = "/owner/records/cin_health/measurements"


def measured(number: int, at: str, kind: str, value: float, unit: str) -> dict[str, Any]:
    return {"id": f"h{number}", "started_at": at, "kind": kind, "value": value, "unit": unit}


ROWS = [
    measured(1, "2026-11-16T09:00:00Z", "heart_rate", 60.0, "count/min"),
    measured(2, "2026-11-16T10:00:00Z", "heart_rate", 71.0, "count/min"),
    measured(3, "2026-11-16T23:30:00Z", "heart_rate", 50.0, "count/min"),  # the 17th in Rome
    measured(4, "2026-11-18T09:00:00Z", "heart_rate", 61.0, "count/min"),
    measured(5, "2026-11-18T09:00:00Z", "step_count", 1000.0, "count"),
    measured(6, "2026-11-18T19:00:00Z", "step_count", 234.0, "count"),
    measured(7, "2026-10-01T19:00:00Z", "step_count", 7.0, "count"),
]


def buckets(page: Words) -> list[list[str]]:
    """The cells of each, of the last the number alone."""
    rows = page.page.css('[data-field="bucket"]')
    cells = ([" ".join(cell.text().split()) for cell in row.css("th, td")] for row in rows)
    return [[*figures, records.split()[0]] for *figures, records in cells]


def test_a_state_has_means_and_what_adds_up_has_sums(house: Household, browser: Browser) -> None:
    house.locale.keep("Europe/Rome", None)
    page = read(browser, filled(house, HEALTH, "cin_health", "measurements", ROWS))
    assert page.all('[data-field="line"]') == ["heart rate count/min"]
    assert page.all('[data-field="kinds"] a') == ["heart rate 4", "step count 3"]
    assert buckets(page) == [
        ["18 Nov 2026", "61.0", "61.0", "61.0", "1"],
        ["17 Nov 2026", "50.0", "50.0", "50.0", "1"],
        ["16 Nov 2026", "65.5", "60.0", "71.0", "2"],
    ]
    assert len(page.page.css("svg.line circle")) == 3
    assert len(page.page.css("svg.line path.run")) == 1
    steps = str(page.page.css('[data-field="kinds"] a')[1].attributes["href"])
    summed = read(browser, steps)
    assert buckets(summed) == [["18 Nov 2026", "1,234", "2"]]
    by_month = [a.attributes["href"] for a in summed.page.css('[data-field="steps"] a')][2]
    assert buckets(read(browser, str(by_month))) == [
        ["Nov 2026", "1,234", "2"],
        ["Oct 2026", "7", "1"],
    ]


def test_a_bucket_leads_to_its_records(house: Household, browser: Browser) -> None:
    house.locale.keep("Europe/Rome", None)
    page = read(browser, filled(house, HEALTH, "cin_health", "measurements", ROWS))
    links = [str(a.attributes["href"]) for a in page.page.css('[data-field="bucket"] a')]
    assert [len(read(browser, link).all("tbody tr")) for link in links] == [1, 1, 2]
    drawn = [str(a.attributes["href"]) for a in page.page.css("svg.line a")]
    assert drawn == links[::-1]


def test_weeks_begin_on_monday_and_days_before_are_one_click_away(
    house: Household, browser: Browser
) -> None:
    path = filled(house, HEALTH, "cin_health", "measurements", ROWS)
    weeks = read(browser, f"{path}?by=week")
    assert buckets(weeks)[0] == ["16 Nov 2026", "60.5", "50.0", "71.0", "4"]
    steps = browser.get(f"{path}?filter[kind]=step_count")
    (earlier,) = marked(steps, "earlier-days", "href")
    page = read(browser, earlier)
    assert buckets(page) == [["1 Oct 2026", "7", "1"]]
    (later,) = marked(browser.get(earlier), "later-days", "href")
    assert buckets(read(browser, later)) == [["18 Nov 2026", "1,234", "2"]]
    (before,) = marked(browser.get(earlier), "earlier-days", "href")
    assert len(marked(browser.get(before), "nothing-measured")) == 1


def test_what_was_measured_is_a_table_one_click_away(house: Household, browser: Browser) -> None:
    path = filled(house, HEALTH, "cin_health", "measurements", ROWS)
    (table,) = marked(browser.get(path), "as-table", "href")
    assert len(read(browser, table).all("table.cells tbody tr")) == 7
    assert marked(browser.get(table), "as-lines", "href") == [path]


def test_figures_that_take_too_long_are_said_to(
    house: Household, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(house, HEALTH, "cin_health", "measurements", ROWS)
    monkeypatch.setattr("personal_server.console.stream_pages.FIGURES_SECONDS", 0.0)
    page = browser.get(f"{path}?of=value&by=week")
    assert len(marked(page, "unmeasured")) == 1
    assert marked(page, "bucket") == []
    (link,) = {
        str(a.attributes["href"])
        for a in read(browser, f"{path}?of=value&by=week").page.css('[data-field="uncounted"] a')
    }
    assert link == f"{path}?figures=all&of=value&by=week"
    assert buckets(read(browser, link))[0][0] == "16 Nov 2026"


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_what_was_measured_at_an_end_of_the_calendar_has_a_page(
    house: Household, browser: Browser, at: str
) -> None:
    rows = [measured(1, at, "body_mass", 1e300, "kg")]
    path = filled(house, HEALTH, "cin_health", "measurements", rows)
    for by in ("day", "week", "month"):
        read(browser, f"{path}?by={by}")
        read(browser, f"{path}?by={by}&since={at[:10]}&until={at[:10]}")


@pytest.mark.parametrize("kind", ["heart_rate", "step_count"])
@pytest.mark.parametrize(
    "figures", [(1.7e308, 1.7e308), (1.7e308, -1.7e308), (5e-324, 0.0), (-1e-320, 1e-320)]
)
def test_figures_of_any_size_that_json_has_are_drawn(
    house: Household, browser: Browser, kind: str, figures: tuple[float, float]
) -> None:
    at = [f"2026-11-{day}T09:00:00Z" for day in (16, 16, 17, 17)]
    rows = [
        measured(number, at[number], kind, value, "x")
        for number, value in enumerate((*figures, *figures[::-1]))
    ]
    rows.append(measured(9, "2026-11-18T09:00:00Z", kind, figures[1], "x"))
    path = filled(house, HEALTH, "cin_health", "measurements", rows)
    page = read(browser, path)
    assert len(buckets(page)) == len(page.page.css("svg.line circle")) == 3
    (table,) = marked(browser.get(path), "as-table", "href")
    for other in ("/owner/days/2026-11-16", "/owner/days", table):
        read(browser, other)


def garden() -> dict[str, Any]:
    """What an outsider measures: rain, which adds up, and warmth, which does not."""
    rain = {"type": "number", "x_pdpp_unit": "mm", "x_pdpp_total": True}
    properties: dict[str, Any] = {
        "id": {"type": "string"},
        "on": {"type": "string", "format": "date", "x_pdpp_role": "event-time"},
        "rain": rain,
        "warmth": {"type": "number", "x_pdpp_unit": "°C"},
    }
    stream = {
        "name": "weather",
        "semantics": "append_only",
        "display": {"label": "Weather"},
        "schema": {"type": "object", "properties": properties, "required": ["id", "on"]},
        "primary_key": ["id"],
        "cursor_field": "on",
        "consent_time_field": "on",
        "selection": {"fields": True, "resources": True},
        "query": {
            "range_filters": {"on": ["gte", "lt"]},
            "aggregations": {
                "count": True,
                "sum": ["rain"],
                "min": ["warmth"],
                "max": ["warmth"],
                "group_by_time": ["on"],
            },
        },
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://garden.example/connectors/garden"},
        "connector_key": "garden",
        "declaration_version": "1",
        "display": {"name": "Garden"},
        "streams": [stream],
    }


def test_an_outsiders_figures_are_lines_too(house: Household, browser: Browser) -> None:
    rows = [
        {"id": f"w{n}", "on": f"2026-11-1{n % 3}", "rain": 1.5, "warmth": float(n)}
        for n in range(6)
    ]
    path = filled(house, garden(), "cin_garden", "weather", rows)
    page = read(browser, path)
    assert page.all('[data-field="figures"] a') == ["rain", "warmth"]
    assert buckets(page)[0] == ["12 Nov 2026", "3", "2"]
    assert page.all('[data-field="unit"]') == ["mm"]
    warmth = read(browser, f"{path}?of=warmth")
    assert buckets(warmth)[0] == ["12 Nov 2026", "3.5", "2.0", "5.0", "2"]
    assert warmth.all('[data-field="unit"]') == ["°C"]


def test_a_time_without_ranges_has_the_figures_of_the_days_drawn(
    house: Household, browser: Browser
) -> None:
    declaration = garden()
    del declaration["streams"][0]["query"]["range_filters"]
    rows = [
        {"id": f"w{n}", "on": on, "rain": 1.5, "warmth": 4.0}
        for n, on in enumerate(("2026-11-12", "2026-11-10", "2026-08-01"))
    ]
    path = filled(house, declaration, "cin_garden", "weather", rows)
    page = read(browser, path)
    assert [row[0] for row in buckets(page)] == ["12 Nov 2026", "10 Nov 2026"]
    assert len(page.page.css("svg.line circle")) == 2


def test_values_in_several_units_are_no_figure_of_one(house: Household, browser: Browser) -> None:
    rows = [
        measured(1, "2026-11-16T09:00:00Z", "body_mass", 80.0, "kg"),
        measured(2, "2026-11-17T09:00:00Z", "body_mass", 80.0, "kg"),
        measured(3, "2026-11-17T10:00:00Z", "body_mass", 176.0, "lb"),
        measured(4, "2026-11-18T09:00:00Z", "body_mass", 81.0, "kg"),
        measured(5, "2026-11-19T09:00:00Z", "body_mass", 177.0, "lb"),
        measured(6, "2026-11-20T09:00:00Z", "body_mass", 81.0, "kg"),
    ]
    page = read(browser, filled(house, HEALTH, "cin_health", "measurements", rows))
    assert page.all('[data-field="unit"]') == ["kg"]
    assert [row[:2] for row in buckets(page)] == [
        ["20 Nov 2026", "81"],
        ["19 Nov 2026", "177 lb"],
        ["18 Nov 2026", "81"],
        ["17 Nov 2026", "not in one unit"],
        ["16 Nov 2026", "80"],
    ]
    drawn = [str(a.attributes["href"]) for a in page.page.css("svg.line a")]
    links = [str(a.attributes["href"]) for a in page.page.css('[data-field="bucket"] a')]
    assert drawn == [links[4], links[2], links[0]]
