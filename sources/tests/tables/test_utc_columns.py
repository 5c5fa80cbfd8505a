from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import readings
from pdpp_sources.tables.utc_columns import is_utc
from sources.tests.specimens.files import as_json


@pytest.mark.parametrize(
    ("name", "beside", "utc"),
    [
        ("endTime", "artistName,trackName,msPlayed", True),
        ("endTime", "podcastName,episodeName,msPlayed", True),
        ("endTime", "race,runner", False),
        ("Start Time", "Profile Name,Duration,Title,Supplemental Video Type", True),
        ("Timestamp", "ID,Contents,Attachments", True),
        ("Timestamp", "ID,Sensor", False),
        ("Activity Date", "Activity ID,Activity Name,Activity Type,Filename", True),
        ("Activity Date", "Activity,Place", False),
        ("Aktivitätsdatum", "Aktivitäts-ID,Aktivitätsart,Dateiname", True),
        ("date", "id,name,type,elapsed_time,distance,commute,gear,filename", True),
        ("date", "id,name,type,filename", False),
        ("Sent Utc Ts", "Body", True),
        ("sent_at_utc", "", True),
        ("Time (UTC)", "", True),
        ("startTimeUTC", "", True),
        ("Date(GMT)", "", True),
        ("shutcount", "", False),
        ("Outcome", "", False),
    ],
)
def test_a_column_is_utc_where_its_name_or_its_export_says_so(
    name: str, beside: str, *, utc: bool
) -> None:
    assert is_utc(name, {name, *beside.split(",")}) is utc


def test_plays_of_spotify_are_in_utc_wherever_their_owner_lives(tmp_path: Path) -> None:
    play = {"endTime": "2024-05-06 18:43", "artistName": "A", "trackName": "B", "msPlayed": 21}
    path = tmp_path / "StreamingHistory_music_0.json"
    path.write_bytes(as_json([play, play | {"endTime": "2024-05-06 18:46"}]))
    with open_export(path) as export:
        (reading,) = readings(replace(export, zone=ZoneInfo("Europe/Berlin")))
        records = [item for item in reading.items() if isinstance(item, SourceRecord)]
        ends = [item.data["endTime"] for item in records]
    assert ends == ["2024-05-06T18:43:00Z", "2024-05-06T18:46:00Z"]
