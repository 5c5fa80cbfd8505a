"""Records on a map, by the roles of their declaration."""

from __future__ import annotations

import re
from typing import Any

from pdpp_sources.google.reader import DECLARATION as GOOGLE
from pdpp_sources.tracks.track_streams import POINTS
from personal_server.console.world_outlines import MapFrame, drawn_outlines
from server.tests.console.browsing import Browser, marked
from server.tests.console.household import Household
from server.tests.console.test_presentations import Words, read
from server.tests.console.test_record_lists import filled


def visit(number: int, north: float | None, east: float | None, **members: Any) -> dict[str, Any]:
    at = f"2026-11-{number % 28 + 1:02}T09:00:00Z"
    place = {"latitude": north, "longitude": east}
    return {"id": f"v{number}", "started_at": at, **place, **members}


ROWS = [
    visit(1, 45.46, 9.19, place_name="Duomo"),
    visit(2, 45.47, 9.2, place_name="Brera"),
    visit(3, 45.46, 9.19, place_name="Duomo"),
    visit(4, -33.86, 151.2, place_name="Opera"),
    visit(5, None, None, place_name="Nowhere"),
    visit(6, 91.0, 9.19, place_name="Beyond"),
]


def places(page: Words) -> list[list[str]]:
    rows = page.page.css('[data-field="place"]')
    return [[" ".join(cell.text().split()) for cell in row.css("th, td")] for row in rows]


def test_what_lies_together_is_one_cluster_that_opens(house: Household, browser: Browser) -> None:
    path = filled(house, GOOGLE, "cin_google", "location_visits", ROWS)
    page = read(browser, path)
    found = places(page)
    assert [each[:2] for each in found] == [["Duomo, Brera", "3"], ["Opera", "1"]]
    assert len(page.page.css("svg.map circle")) == 2
    assert page.all('[data-field="unplaced"]') == ["Without a place: 2."]
    near = str(page.page.css('[data-field="place"] th a')[0].attributes["href"])
    closer = read(browser, near)
    assert [each[:2] for each in places(closer)] == [["Duomo", "2"], ["Brera", "1"]]
    assert marked(browser.get(near), "wider", "href") == [path]
    same = str(closer.page.css('[data-field="place"] th a')[0].attributes["href"])
    assert len(read(browser, same).all("table.cells tbody tr")) == 2
    alone = str(closer.page.css('[data-field="place"] th a')[1].attributes["href"])
    assert read(browser, alone).all("h1") == ["Brera"]
    (table,) = marked(browser.get(path), "as-table", "href")
    assert len(read(browser, table).all("table.cells tbody tr")) == 6
    assert len(marked(browser.get(path), "as-month", "href")) == 1


def test_places_without_a_name_have_their_days_in_the_readers_language(
    house: Household, browser: Browser
) -> None:
    house.locale.keep("Europe/Berlin", "de")
    rows = [{**each, "id": f"u{n}", "place_name": None} for n, each in enumerate(ROWS[:1])]
    page = read(browser, filled(house, GOOGLE, "cin_google", "location_visits", rows))
    assert places(page)[0][:2] == ["2. Nov. 2026", "1"]


def test_records_without_a_place_are_on_no_map(house: Household, browser: Browser) -> None:
    path = filled(house, GOOGLE, "cin_google", "location_visits", ROWS[4:5])
    assert len(marked(browser.get(path), "no-places")) == 1
    assert len(marked(browser.get(f"{path}?filter[kind]=home"), "no-places")) == 1


def test_the_points_of_one_workout_are_a_track(house: Household, browser: Browser) -> None:
    declaration = outsiders("runs", POINTS.render())
    rows = [
        {
            "id": f"p{n}",
            "workout_id": f"w{n // 9}",
            "recorded_at": f"2026-11-18T09:00:{n:02}Z",
            "latitude": 45.46 + n / 1000,
            "longitude": 9.19,
        }
        for n in range(12)
    ]
    path = filled(house, declaration, "cin_runs", "route_points", rows)
    assert read(browser, path).page.css("svg.map .track") == []
    alone = read(browser, f"{path}?filter[workout_id]=w0")
    (track,) = alone.page.css("svg.map .track")
    assert str(track.attributes["d"]).count("L") == 8


def test_a_track_that_comes_back_goes_the_same_way_back(house: Household, browser: Browser) -> None:
    rows = [
        {
            "id": f"p{n}",
            "workout_id": "w0",
            "recorded_at": f"2026-11-18T09:00:{n:02}Z",
            "latitude": 45.46 + (0, 1, 2, 2, 1, 0)[n] / 1000,
            "longitude": 9.19,
        }
        for n in range(6)
    ]
    path = filled(house, outsiders("runs", POINTS.render()), "cin_runs", "route_points", rows)
    (track,) = read(browser, f"{path}?filter[workout_id]=w0").page.css("svg.map .track")
    corners = str(track.attributes["d"]).removeprefix("M").split("L")
    assert corners == corners[::-1]
    assert len(corners) == 5


def outsiders(key: str, stream: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://{key}.example/connectors/{key}"},
        "connector_key": key,
        "declaration_version": "1",
        "display": {"name": key},
        "streams": [
            stream,
            {
                "name": "workouts",
                "semantics": "append_only",
                "display": {"label": "Workouts"},
                "schema": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}},
                    "required": ["id"],
                },
                "primary_key": ["id"],
                "selection": {"fields": True, "resources": True},
            },
        ],
    }


def test_an_outsiders_places_are_on_a_map_without_a_time(
    house: Household, browser: Browser
) -> None:
    number = {"type": "number"}
    properties: dict[str, Any] = {
        "id": {"type": "string"},
        "tree": {"type": "string", "x_pdpp_role": "primary-title"},
        "up": {**number, "x_pdpp_role": "latitude"},
        "across": {**number, "x_pdpp_role": "longitude"},
    }
    stream = {
        "name": "trees",
        "semantics": "append_only",
        "display": {"label": "Trees"},
        "schema": {"type": "object", "properties": properties, "required": ["id"]},
        "primary_key": ["id"],
        "selection": {"fields": True, "resources": True},
    }
    rows = [{"id": "t1", "tree": "Oak", "up": 52, "across": -179.99}]
    page = read(browser, filled(house, outsiders("trees", stream), "cin_trees", "trees", rows))
    assert places(page) == [["Oak", "1", "", "52.0000, -179.9900"]]


def test_the_world_is_drawn_small_and_a_city_without_faraway_lands() -> None:
    lands, borders = drawn_outlines(MapFrame(-180, -90, 180, 90, 960))
    assert 10_000 < len(lands) + len(borders) < 60_000
    assert len("".join(drawn_outlines(MapFrame(9.1, 45.4, 9.3, 45.5, 960)))) < 200
    assert drawn_outlines(MapFrame(-140, -10, -130, -5, 960)) == ("", "")
    assert lands.count("M") > 100
    step = r"M-?\d+ -?\d+(l-?\d+ -?\d+)*"
    assert re.fullmatch(f"(({step})+z)+", lands)
    assert re.fullmatch(f"({step})+", borders)
