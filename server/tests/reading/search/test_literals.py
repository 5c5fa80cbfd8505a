"""`C++` is not `C`: what has signs at its end, or a dot before it, has to stand so."""

from __future__ import annotations

import pytest

from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, client, furnished, stream_grant, write

TEXTS = {
    "plain": ("A grade", "vitamin C and a net"),
    "plus": ("Homework in c++", "due on Monday"),
    "both": ("Languages", "C++, C# and .NET"),
    "sharp": ("Jobs", "a C# developer"),
}


@pytest.fixture
def told(any_store: RecordStore) -> Door:
    door = Door(furnished(any_store))
    rows = [
        {"id": key, "created_at": "2026-05-01T10:00:00Z", "title": title, "body": body}
        for key, (title, body) in TEXTS.items()
    ]
    write(door.store, DIARY, "entries", rows)
    return door


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        ("C%2B%2B", {"plus", "both"}),
        ("c%23", {"both", "sharp"}),
        (".net", {"both"}),
        ("who wrote C%23%3F", set[str]()),
        ("developer C%23", {"sharp"}),
        ("C", {"plain", "plus", "both", "sharp"}),
        ("title:C%2B%2B", {"plus"}),
        ("C%2B%2B OR developer", {"plain", "plus", "both", "sharp"}),
    ],
)
def test_signs_have_to_stand_where_they_are_asked_for(
    told: Door, asked: str, keys: set[str]
) -> None:
    found = told.get(f"/v1/search?q={asked}&exact=true".replace(" ", "%20"), client())
    assert {hit["record_key"] for hit in found.data} & TEXTS.keys() == keys
    figure = f"/v1/streams/entries/aggregate?metric=count&across=connections&q={asked}"
    assert told.get(figure.replace(" ", "%20"), client()).body["value"] == len(keys)


def test_fields_that_are_not_granted_hold_no_signs(told: Door) -> None:
    narrow = client(stream_grant(fields=("id", "created_at", "title")))
    found = told.get("/v1/search?q=C%2B%2B", narrow)
    assert [hit["record_key"] for hit in found.data] == ["plus"]


def test_too_few_hits_are_not_joined_by_others_without_the_signs(told: Door) -> None:
    found = told.get("/v1/search?q=C%23%20Monday%20developer", client())
    assert [hit["record_key"] for hit in found.data] == ["sharp"]
    assert found.body["meta"]["relaxed"]["exact_count"] == 0
