"""What an access is limited to stands in every answer that the limit touches."""

from typing import Any

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import BANK, client, furnished, package, stream_grant
from server.tests.resource_server.journal import grant as one_grant

LIST = "/v1/streams/entries/records"
FIGURE = "/v1/streams/entries/aggregate?metric"
SINCE = "2026-02-01T00:00:00Z"
TIME = {"time_constraint": {"field": "created_at", "since": SINCE}, "resource_count": None}
ANSWERS = [
    LIST,
    f"{LIST}?order=asc&limit=1",
    f"{LIST}?count=exact",
    f"{FIGURE}=count",
    f"{FIGURE}=max&field=created_at",
    "/v1/search?q=rain",
    "/v1/search?q=rain&sort=newest",
    "/v1/timeline",
    f"{LIST}?changes_since=beginning",
]


@pytest.fixture
def door() -> Door:
    return Door(furnished())


def limits(door: Door, target: str, authority: Any) -> list[Any]:
    told = door.get(target, authority).body["meta"]["warnings"]
    return [each["detail"] for each in told if each["code"] == "limited_access"]


@pytest.mark.parametrize("target", ANSWERS)
def test_a_bound_stands_in_every_answer_that_it_touches(door: Door, target: str) -> None:
    assert limits(door, target, client(stream_grant(since=SINCE))) == [TIME]
    assert limits(door, target, client(stream_grant())) == []


def test_where_a_request_asks_for_a_span_the_bound_is_told_as_far_as_it_cuts(door: Door) -> None:
    bounded = client(stream_grant(since=SINCE))
    inside, outside = f"{LIST}?since=2026-03-01", f"{LIST}?since=2026-01-01"
    assert door.get(inside, bounded).warnings == []
    assert door.get(outside, bounded).warnings == ["outside_time_constraint"]


def test_limits_by_records_and_values_name_granted_fields_alone(door: Door) -> None:
    chosen = client(stream_grant(resources=("e1", "e2")))
    assert limits(door, LIST, chosen) == [{"time_constraint": None, "resource_count": 2}]
    only = {"pinned": (True,)}
    told = limits(door, LIST, client(stream_grant(only=only)))
    field = [{"field": "pinned", "value_count": 1}]
    assert told == [{"time_constraint": None, "resource_count": None, "only": field}]
    hidden = client(stream_grant(only=only, fields=("id", "title", "created_at")))
    (said,) = door.get(LIST, hidden).body["meta"]["warnings"]
    assert said["detail"]["further_limits"] is True
    assert "pinned" not in str(said)


def test_where_other_sources_are_not_limited_those_that_are_have_names(door: Door) -> None:
    both = package(
        one_grant(stream_grant(since=SINCE), stream_grant("attachments")),
        one_grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking"),
    )
    (said,) = limits(door, "/v1/search?q=rain", both)
    assert said == {**TIME, "streams": ["entries"]}


def test_sources_that_are_limited_differently_are_named_by_stream(door: Door) -> None:
    both = package(
        one_grant(stream_grant(since=SINCE)),
        one_grant(stream_grant(instance_ids=(BANK,), until=SINCE), grant_id="grt_2", key="banking"),
    )
    assert limits(door, "/v1/timeline", both) == [{"streams": ["entries"]}]
