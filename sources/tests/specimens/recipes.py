"""Small exports for the recipes that ship, shaped as public descriptions of the files say.

Each has something in it that is broken or that is no record.
"""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json
from sources.tests.specimens.recipe_tables import TABLE_SPECIMENS


def _play(ts: str, track: str | None, played_ms: int, **others: object) -> Data:
    return {
        "ts": ts,
        "platform": "ios",
        "ms_played": played_ms,
        "conn_country": "DE",
        "master_metadata_track_name": track,
        "master_metadata_album_artist_name": track and "Nina Simone",
        "master_metadata_album_album_name": track and "Little Girl Blue",
        "spotify_track_uri": track and "spotify:track:6EAMrHkNjZ5PhHwCJSrpQ9",
        "episode_name": None,
        "episode_show_name": None,
        "spotify_episode_uri": None,
        "audiobook_title": None,
        "reason_start": "trackdone",
        "reason_end": "endplay",
        "shuffle": False,
        "skipped": None,
        "offline": False,
        "incognito_mode": False,
        **others,
    }


SPOTIFY: Files = {
    "Spotify Extended Streaming History/Streaming_History_Audio_2023-2024_0.json": as_json(
        [
            _play("2023-07-05T23:30:00Z", "My Baby Just Cares for Me", 215000),
            _play(
                "2023-07-06T05:00:00Z",
                None,
                1800000,
                episode_name="Bread",
                episode_show_name="Ovens",
                spotify_episode_uri="spotify:episode:1",
            ),
            _play(
                "2023-07-06T06:00:00Z",
                None,
                60000,
                audiobook_title="The Loaf",
                audiobook_chapter_title="One",
                skipped=True,
            ),
            _play("yesterday", "Good Bait", 1000),
            {"ts": "2023-07-07T05:00:00Z"},
        ]
    ),
    "Spotify Account Data/StreamingHistory0.json": as_json(
        [
            {
                "endTime": "2023-07-05 23:30",
                "artistName": "Nina Simone",
                "trackName": "Good Bait",
                "msPlayed": 1000,
            },
            {
                "endTime": "2023-07-05 23:30",
                "artistName": "Nina Simone",
                "trackName": "Good Bait",
                "msPlayed": 1000,
            },
        ]
    ),
}
RECIPE_SPECIMENS: dict[str, Files] = {"spotify": SPOTIFY} | TABLE_SPECIMENS
