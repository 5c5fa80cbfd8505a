"""What repeats is told, where a request goes by the time of its first times alone."""

from __future__ import annotations

from typing import Any

import pytest

from server.tests.reading.test_occurrences import door_and_reader

TIMED = "filter%5Bcreated_at%5D%5Bgte%5D=2026-01-01T00:00:00Z"
OF_SLOTS = {"stream": "entries"}
SHOWN = {**OF_SLOTS, "shown_in": "attachments"}


def repeats(query: str, *fields: str, path: str = "records", time: str = "at") -> Any:
    door, reader = door_and_reader(*fields, time=time)
    warnings = door.get(f"/v1/streams/entries/{path}?{query}", reader).body["meta"]["warnings"]
    return [each["detail"] for each in warnings if each["code"] == "first_times_only"]


@pytest.mark.parametrize(
    ("path", "query", "told"),
    [
        # the time of the other stream has another name there, and a range names none
        ("records", "since=2026-01-01", [SHOWN]),
        ("records", "since=2026-01-01&filter%5Btitle%5D=e1", [OF_SLOTS]),
        ("records", TIMED, [OF_SLOTS]),
        ("records", "limit=2", []),
        ("records", "filter%5Btitle%5D=e1", []),
        ("aggregate", f"metric=count&{TIMED}", [OF_SLOTS]),
        ("aggregate", "metric=count&group_by_time=created_at&granularity=day", [OF_SLOTS]),
        ("aggregate", "metric=min&field=created_at", [OF_SLOTS]),
        ("aggregate", "metric=count", []),
    ],
)
def test_a_range_of_what_repeats_says_where_each_time_stands(
    path: str, query: str, told: list[dict[str, str]]
) -> None:
    assert repeats(query, path=path) == told


def test_nothing_is_said_of_times_that_the_access_does_not_have() -> None:
    assert repeats(TIMED, "id", "filename", "at") == []


def test_the_other_stream_is_offered_where_it_can_be_asked_the_same() -> None:
    granted = ("id", "entry_id", "created_at")
    assert repeats(TIMED, *granted, time="created_at") == [SHOWN]
    others = f"{TIMED}&filter%5Btitle%5D=e1"
    assert repeats(others, *granted, time="created_at") == [OF_SLOTS]


@pytest.mark.parametrize(
    ("query", "is_told"),
    [
        ("streams=entries&since=2026-01-01", True),
        ("streams=entries&since=2026-01-01&sort=newest", True),
        ("streams=entries&streams=attachments&since=2026-01-01", False),
        ("streams=entries", False),
        ("since=2026-01-01", False),
    ],
)
def test_a_search_in_a_range_that_names_what_repeats_says_so_too(
    query: str, *, is_told: bool
) -> None:
    door, reader = door_and_reader()
    warnings = door.get(f"/v1/search?q=e1&{query}", reader).body["meta"]["warnings"]
    assert [each["detail"] for each in warnings] == ([SHOWN] if is_told else [])
