from pathlib import Path
from typing import Any

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_json


def test_edits_of_the_timeline_are_points(tmp_path: Path) -> None:
    point = {"latE7": 481234567, "lngE7": 111234567}
    position = {"point": point, "accuracyMm": 13000, "timestamp": "2025-05-01T10:00:00Z"}
    edits: list[dict[str, Any]] = [
        {"deviceId": "1", "rawSignal": {"signal": {"position": position}}},
        {"deviceId": "1", "placeAggregates": {}},
    ]
    (tmp_path / "Timeline Edits.json").write_bytes(as_json({"timelineEdits": edits}))
    items = read_path(tmp_path)
    (found,) = records_of(items, "location_points")
    assert (found["latitude"], found["longitude"]) == (48.1234567, 11.1234567)
    assert (found["observed_at"], found["accuracy_meters"]) == ("2025-05-01T10:00:00Z", 13)
    assert skips_of(items) == ["unknown_record_type"]


def test_a_visit_is_known_as_before_positions_of_centres_were_read(tmp_path: Path) -> None:
    visit = {
        "location": {"placeId": "p2"},
        "centerLatE7": 457000000,
        "centerLngE7": 91000000,
        "duration": {"startTimestampMs": "1641060000000", "endTimestampMs": "1641063600000"},
    }
    folder = tmp_path / "Location"
    folder.mkdir()
    objects = {"timelineObjects": [{"placeVisit": visit}]}
    (folder / "2022_JANUARY.json").write_bytes(as_json(objects))
    (found,) = records_of(read_path(tmp_path), "location_visits")
    assert (found["latitude"], found["longitude"]) == (45.7, 9.1)
    assert found["id"] == "plc_9e073d3196e3c4b279ad2f7d"
