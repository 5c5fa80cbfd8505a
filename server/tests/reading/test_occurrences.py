"""A record that another stream shows at its times stands on the time line once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from personal_server.domain.declaration_document import parse_declaration
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    stream_grant,
    write,
)
from tests.oracle.memory import MemoryStore

FIRST, SECOND, THIRD = (f"2026-01-0{day}T10:00:00Z" for day in (1, 2, 3))
SLOT_FIELDS = ("id", "entry_id", "filename", "at")


def declared(time: str = "at") -> Any:
    raw = copy.deepcopy(JOURNAL_RAW)
    _, _, slots = raw["streams"]
    properties = slots["schema"]["properties"]
    properties[time] = {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"}
    properties["entry_id"]["x_pdpp_role"] = "occurrence-of"
    slots["query"]["range_filters"] = {time: ["gte", "lt"]}
    slots["cursor_field"] = time
    return parse_declaration(raw)


def door_and_reader(
    *fields: str, keys: tuple[str, ...] | None = None, time: str = "at"
) -> tuple[Door, Any]:
    declaration, store = declared(time), MemoryStore()
    store.put_declaration(declaration, b"{}", 1)
    store.add_connection(CONNECTIONS[0])
    entries = [
        {"id": key, "title": key, "created_at": at} for key, at in (("e1", FIRST), ("e2", SECOND))
    ]
    slots = [
        {"id": "s1", "entry_id": "e1", "filename": "e1", time: FIRST},
        {"id": "s3", "entry_id": "e1", "filename": "e1", time: THIRD},
        {"id": "s4", "entry_id": "e2", "filename": "e2", time: THIRD},
    ]
    write(store, DIARY, "entries", entries, declared=declaration)
    write(store, DIARY, "attachments", slots, declared=declaration)
    granted = (
        stream_grant(instance_ids=(DIARY,), fields=("id", "title", "created_at")),
        stream_grant("attachments", (DIARY,), fields or SLOT_FIELDS, resources=keys),
    )
    return Door(store), client(*granted, declared=declaration)


def line(query: str = "", *fields: str, keys: tuple[str, ...] | None = None) -> tuple[Any, Any]:
    door, reader = door_and_reader(*fields, keys=keys)
    reply = door.get(f"/v1/timeline?order=asc{query}", reader)
    found = reply.keys
    while reply.body["has_more"]:
        reply = door.get(reply.body["links"]["next"], reader)
        found += reply.keys
    return found, reply.body["meta"]["warnings"]


def hits(*fields: str, keys: tuple[str, ...] | None = None, query: str = "") -> Any:
    door, reader = door_and_reader(*fields, keys=keys)
    body = door.get(f"/v1/search?q=e1{query}", reader).body
    count = body["meta"]["count"].get("value")
    return sorted((each["record_id"], each.get("duplicates")) for each in body["data"]), count


def test_a_search_shows_it_once_and_its_other_occurrences_beside_it() -> None:
    found, count = hits()
    assert count == 3
    assert found in ([("e1", 1), ("s3", None)], [("s1", 1), ("s3", None)])
    assert {key for key, _ in hits(query="&sort=newest")[0]} == {"e1", "s1", "s3"}


def test_a_search_shows_both_where_the_access_does_not_say_that_they_are_one() -> None:
    assert [key for key, _ in hits("id", "filename", "at")[0]] == ["e1", "s1", "s3"]
    assert hits(keys=("s3",)) == ([("e1", None), ("s3", None)], 2)


def test_its_occurrence_of_that_time_stands_for_it_and_the_answer_says_so() -> None:
    found, warnings = line()
    assert found == ["s1", "e2", "s3", "s4"]
    (told,) = warnings
    assert (told["code"], told["detail"]) == (
        "shown_as_occurrence",
        {"stream": "entries", "shown_in": "attachments", "count": 1},
    )


def test_pages_of_one_lose_nothing_else() -> None:
    for limit in (1, 2, 3):
        assert line(f"&limit={limit}")[0] == ["s1", "e2", "s3", "s4"]


def test_what_is_left_out_makes_no_page_shorter() -> None:
    reply = door_and_reader()[0].get("/v1/timeline?order=asc&limit=2", door_and_reader()[1])
    assert reply.keys == ["s1", "e2"]


def test_it_stands_itself_where_no_occurrence_of_it_may_be_seen() -> None:
    assert line("", "id", "filename", "at")[0] == ["e1", "s1", "e2", "s3", "s4"]
    assert line("&streams=entries")[0] == ["e1", "e2"]
    assert line("", *SLOT_FIELDS, keys=("s3",))[0] == ["e1", "e2", "s3"]


def test_what_has_no_time_that_is_seen_is_one_with_nothing() -> None:
    """Neither an entry whose time is hidden, nor a slot that has none."""
    door, _ = door_and_reader()
    written = {"id": "e9", "title": "e9", "created_at": FIRST}
    write(door.store, DIARY, "entries", [written], declared=declared())
    untimed = {"id": "s9", "entry_id": "e9", "filename": "e9"}
    write(door.store, DIARY, "attachments", [untimed], declared=declared())
    blind = client(
        stream_grant(instance_ids=(DIARY,), fields=("id", "title")),
        stream_grant("attachments", (DIARY,), SLOT_FIELDS),
        declared=declared(),
    )
    found = door.get("/v1/search?q=e9", blind).data
    assert sorted((each["record_id"], each.get("duplicates")) for each in found) == [
        ("e9", None),
        ("s9", None),
    ]


IN_RANGE = "filter[created_at][gte]=2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("read", "is_told"),
    [
        (f"streams/entries/records?{IN_RANGE}", True),
        ("streams/entries/records?since=2026-01-01", True),
        ("streams/entries/records?limit=2", False),
        ("streams/entries/records?filter[title]=e1", False),
        (f"streams/entries/aggregate?metric=count&{IN_RANGE}", True),
        ("streams/entries/aggregate?metric=count", False),
        ("search?q=e1&streams=entries&since=2026-01-01", True),
        ("search?q=e1&streams=entries&since=2026-01-01&sort=newest", True),
        ("search?q=e1&streams=entries", False),
        ("search?q=e1&streams=entries&sort=newest", False),
    ],
)
def test_each_read_in_a_range_says_that_what_repeats_has_other_times(
    read: str, *, is_told: bool
) -> None:
    door, reader = door_and_reader()
    assert ("first_times_only" in door.get(f"/v1/{read}", reader).warnings) is is_told
