"""An answer says in whose clocks it was asked for, and none where nobody named any."""

from __future__ import annotations

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import client

ZONE = "Europe/Berlin"
READS = [
    "streams/entries/records?limit=2",
    "streams/entries/records?filter[title]=nothing",
    "streams/entries/aggregate?metric=count",
    "streams/entries/aggregate?metric=count&group_by_time=created_at&granularity=day",
    "streams/entries/records?changes_since=beginning",
    "search?q=rain",
    "search?q=rain&sort=newest",
    "search?q=nothing",
    "timeline?order=asc",
]


@pytest.mark.parametrize("read", READS)
def test_an_answer_says_its_time_zone_where_one_was_asked_for(door: Door, read: str) -> None:
    plain = door.get(f"/v1/{read}", client())
    zoned = door.get(f"/v1/{read}&time_zone={ZONE}", client())
    assert (plain.status, zoned.status) == (200, 200), zoned.text
    assert plain.body["meta"].get("time_zone") in (None, "UTC")
    assert zoned.body["meta"]["time_zone"] == ZONE
