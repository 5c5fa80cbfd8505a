"""Columns whose times are UTC though no cell says so: their name says it, or their export does.

Source: the descriptions that the platforms send with their exports, and readers of them: Spotify
("endTime: date and time of when the stream ended in UTC"), Netflix ("UTC"), Discord, Last.fm; of
Strava its exports, where a workout's file begins at that time in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, tzinfo

_SAYS_UTC = re.compile(r"(?:^|[^A-Za-z])(?:utc|gmt)(?:$|[^A-Za-z])", re.IGNORECASE)
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The column that holds UTC, and others that tell the export.
_EXPORTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("endTime", frozenset({"artistName", "trackName", "msPlayed"})),
    ("endTime", frozenset({"podcastName", "episodeName", "msPlayed"})),
    ("endTime", frozenset({"authorName", "audiobookName", "msPlayed"})),
    ("Start Time", frozenset({"Profile Name", "Duration", "Supplemental Video Type"})),
    ("Utc Timestamp", frozenset({"Profile Name", "Device"})),
    ("Timestamp", frozenset({"ID", "Contents", "Attachments"})),
    ("addedDate", frozenset({"trackUri"})),
    ("Activity Date", frozenset({"Activity ID", "Activity Type", "Filename"})),
    ("Aktivitätsdatum", frozenset({"Aktivitäts-ID", "Aktivitätsart", "Dateiname"})),
    ("date", frozenset({"id", "elapsed_time", "commute", "gear", "filename"})),
)


def zone_of_column(name: str, neighbours: Collection[str], zone: tzinfo) -> tzinfo:
    """The zone of a column's times that name none; `beside` are all columns of the table."""
    return UTC if is_utc(name, neighbours) else zone


def is_utc(name: str, neighbours: Collection[str]) -> bool:
    """Whether the times of a column are UTC."""
    if _SAYS_UTC.search(_WORD_ENDS.sub(" ", name).replace("_", " ")):
        return True
    return any(
        name == column and neighbours_needed <= set(neighbours)
        for column, neighbours_needed in _EXPORTS
    )
