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
