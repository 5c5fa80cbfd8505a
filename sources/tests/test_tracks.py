"""Tracks, workouts and places of GPX, TCX and KML."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_sources.tracks import is_track
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.tracks import FILES


def test_workouts_of_each_format(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"tracks"}
    run, ride, cycled = sorted(records_of(items, "workouts"), key=lambda w: str(w["started_at"]))
    assert (run["kind"], run["name"], run["minutes"]) == ("running", "Morning run", 11)
    assert (run["started_at"], run["heart_rate"]) == ("2024-03-05T06:00:00Z", 120)
    assert run["distance_meters"] == pytest.approx(222.4, abs=0.2)  # no way between two segments
    assert (ride["kind"], ride["minutes"], ride["distance_meters"]) == ("cycling", 15, 4500)
    assert (ride["energy_kcal"], ride["heart_rate"]) == (120, 131)
    assert (cycled["name"], cycled["minutes"]) == ("Ride", 30)
    assert cycled["distance_meters"] == pytest.approx(7526, abs=10)
    assert skips_of(items) == ["bad_record", "bad_record", "unknown_record_type"]


def test_points_have_their_time_and_heart_rate(tmp_path: Path) -> None:
    points = records_of(read_path(as_folder(FILES, tmp_path)), "route_points")
    first = next(p for p in points if p["heart_rate"] == 120)
    assert (first["latitude"], first["altitude_meters"]) == (47, 400.5)
    assert first["recorded_at"] == "2024-03-05T06:00:00Z"
    assert len(points) == 4 + 1 + 2


def test_what_bears_no_time_is_a_route_or_a_place(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert [r["name"] for r in records_of(items, "routes")] == ["Round the lake", "Walk"]
    spring, bakery = sorted(records_of(items, "places"), key=lambda p: str(p["name"]))[::-1]
    assert (spring["name"], spring["description"]) == ("Spring", "Water & shade")
    assert (bakery["latitude"], bakery["longitude"]) == (47.4, 8.5)
    assert bakery["description"] == "Best bread"


@pytest.mark.parametrize("head", [b"<gpx>", b"   <?xml?><!--x--><kml xmlns='a'>"])
def test_a_track_is_known_by_its_root(head: bytes) -> None:
    assert is_track(head)
    assert not is_track(head.replace(b"gpx", b"g").replace(b"kml", b"k"))
