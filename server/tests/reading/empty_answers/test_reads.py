"""Reads that reach out of the grant, and answers that hold nothing."""

from typing import Any

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    LIST,
    NARROW,
    client,
    stream_grant,
    write,
)

AGGREGATE = "/v1/streams/entries/aggregate?metric=count"
SEARCH = "/v1/search?q=rain&streams=entries"
UNTIL = "2026-02-10T00:00:00Z"


def put(door: Door, entry: dict[str, Any]) -> None:
    write(door.store, DIARY, "entries", [{"body": "", **entry}])


def reads(condition: str) -> list[str]:
    return [f"{LIST}?{condition}", f"{AGGREGATE}&{condition}", f"{SEARCH}&{condition}"]


@pytest.mark.parametrize(
    ("condition", "outside"),
    [
        ("filter[created_at][gte]=2026-03-01", True),
        ("filter[created_at][gte]=2026-02-01", True),
        ("filter[created_at]=2026-02-10T00:00:00Z", True),
        ("filter[created_at][in]=2026-02-01T00:00:00Z&filter[created_at][in]=2027-01-01T00:00:00Z",
         True),
        ("filter[created_at][lte]=2026-02-09T23:59:59Z", False),
        ("filter[created_at][lt]=2026-02-10T00:00:00Z", False),
        ("filter[created_at][gte]=2026-02-01&filter[created_at][lt]=2026-02-05", False),
        ("filter[created_at][gte]=2026-03-01&filter[created_at][lt]=2026-02-05", False),
        ("filter[title]=Rain", False),
    ],
)  # fmt: skip
def test_conditions_beyond_the_time_constraint_are_warned_of(
    door: Door, condition: str, outside: bool
) -> None:
    limited = client(stream_grant(until=UNTIL))
    for place in reads(condition):
        found = door.get(place, limited).body["meta"]["warnings"]
        told = [each for each in found if each["code"] == "outside_time_constraint"]
        assert bool(told) is outside, place
        assert door.get(place, client()).body["meta"]["warnings"] == []
        for each in told:
            bound = {"field": "created_at", "until": UNTIL}
            assert each["detail"] == {"time_constraint": bound}
            assert UNTIL in each["message"]


def test_the_warning_is_the_same_whatever_lies_behind_the_bound(door: Door) -> None:
    limited = client(stream_grant(until=UNTIL))
    places = reads("filter[created_at][gte]=2026-05-20")
    before = [door.get(place, limited).body["meta"]["warnings"] for place in places]
    put(door, {"id": "late", "created_at": "2026-06-01T00:00:00Z", "title": "Rain"})
    assert [door.get(place, limited).body["meta"]["warnings"] for place in places] == before


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("filter[created_at][gte]=2026-02-11", "not_granted"),
        ("filter[title]=nothing of the kind", "nothing_matches"),
        ("filter[created_at][lt]=1999-01-01", "nothing_matches"),
    ],
)
def test_an_empty_answer_says_why(door: Door, condition: str, reason: str) -> None:
    limited = client(stream_grant(until=UNTIL))
    for place in reads(condition):
        assert door.get(place, limited).body["meta"]["empty"] == {"reason": reason}
    assert "empty" not in door.get(LIST, limited).body["meta"]


def test_what_was_not_collected_since_is_told_apart(door: Door) -> None:
    for place in reads("filter[created_at][gte]=2099-01-01"):
        told = door.get(place, client()).body["meta"]["empty"]
        assert told["reason"] == "not_collected_since"
        assert told["collected_at"].startswith("20")


def near(door: Door, place: str, *grants: Any) -> list[tuple[str, str, int]]:
    meta = door.get(place, client(*grants)).body["meta"]
    return [(each["field"], each["value"], each["count"]) for each in meta.get("near", ())]


def test_a_value_that_nobody_has_offers_the_nearest_visible_ones(door: Door) -> None:
    put(door, {"id": "v1", "created_at": "2026-01-05T00:00:00Z", "volume_id": "Winter"})
    put(door, {"id": "v2", "created_at": "2026-05-05T00:00:00Z", "volume_id": "Winter II"})
    for place in reads("filter[volume_id]=winter"):
        both = [("volume_id", "Winter", 1), ("volume_id", "Winter II", 1)]
        assert near(door, place) == both
        assert near(door, place, stream_grant(until=UNTIL)) == both[:1]
        reply = door.get(place, client())
        assert any("volume_id" in each.fields for each in reply.disclosed)
    assert near(door, f"{LIST}?filter[volume_id]=winter&filter[created_at][gte]=2026-05-01") == [
        ("volume_id", "Winter II", 1)
    ]
    assert near(door, f"{LIST}?filter[volume_id]=Winter") == []
    assert near(door, f"{LIST}?filter[volume_id]=summer&filter[created_at][gte]=2026-05-01") == [
        ("volume_id", "Winter II", 1)
    ]
    for sought, listed in (("winter", None), ("summer", True)):
        said = door.get(f"{LIST}?filter[volume_id]={sought}", client()).body["meta"]["near"]
        assert {each.get("listed") for each in said} == {listed}
    refused = door.get(f"{LIST}?filter[volume_id]=winter", client(stream_grant(fields=NARROW)))
    assert refused.code == "field_not_granted"


def test_a_value_of_one_character_is_offered_and_none_without_any(door: Door) -> None:
    for number, name in enumerate(("x", "")):
        put(door, {"id": f"n{number}", "created_at": "2026-05-05T00:00:00Z", "volume_id": name})
    place = f"{LIST}?filter[volume_id]=zzzz&filter[created_at][gte]=2026-05-01"
    assert near(door, place) == [("volume_id", "x", 1)]


def test_a_stream_outside_the_grant_is_refused_alike_whether_it_exists_or_not(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("attachments"))
    refusals = [
        door.get(place, authority).error
        for name in ("volumes", "nowhere")
        for place in (f"/v1/streams/{name}/records", f"/v1/search?q=rain&streams={name}")
    ]
    for error in refusals:
        assert error["code"] == "grant_stream_not_allowed"
        assert error["message"] == refusals[0]["message"]
        assert error["allowed_values"] == ["attachments", "entries"]
        assert "suggestions" not in error
    near_one = door.get("/v1/streams/entry/records", authority).error
    assert near_one["suggestions"] == ["entries"]


def test_a_field_outside_the_grant_tells_which_are_granted(door: Door) -> None:
    limited = client(stream_grant(fields=NARROW))
    for name in ("body", "nowhere"):
        error = door.get(f"{LIST}?fields={name}", limited).error
        assert error["allowed_values"] == list(NARROW)


@pytest.mark.parametrize("path", [f"{SEARCH}&sort=newest", SEARCH, "/v1/timeline?since=2026-01-01"])
def test_only_the_first_page_says_why_it_is_empty(door: Door, path: str) -> None:
    first = door.get(f"{path}&limit=1", client()).body
    assert first["has_more"]
    assert "empty" not in first["meta"]
    for account in (DIARY, LETTERS):
        write(door.store, account, "entries", ["e1", "e2", "e3", "l1"])
        write(door.store, account, "volumes", ["v1", "v2"])
    last = door.get(first["links"]["next"], client()).body
    anew = door.get(path, client()).body
    assert last["data"] == anew["data"] == []
    assert "empty" not in last["meta"]
    assert anew["meta"]["empty"]["reason"] in ("nothing_matches", "not_collected_since")
