"""Cursors of lists."""

from urllib.parse import quote

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    LIST,
    NARROW,
    OWNER,
    client,
    stream_grant,
)


def test_a_cursor_belongs_to_its_request_and_its_holder(door: Door) -> None:
    reply = door.get(f"{LIST}?limit=1", client())
    cursor = quote(reply.body["next_cursor"])
    others = [
        f"{LIST}?cursor={cursor}&order=asc",
        f"{LIST}?cursor={cursor}&filter[pinned]=true",
        f"{LIST}?cursor={cursor}&connection_id={DIARY}",
    ]
    for target in others:
        assert door.refusal(target) == (400, "invalid_cursor", "cursor")
    assert door.refusal(f"{LIST}?cursor={cursor}", OWNER)[0] in (400, 409)
    assert door.get(f"{LIST}?cursor={cursor}&limit=2&fields=title&count=exact", client()).keys == [
        "e3",
        "e2",
    ]


def test_the_same_request_in_other_words_continues(door: Door) -> None:
    first = door.get(f"{LIST}?limit=1&filter[pinned]=true&filter[word_count][gte]=1", client())
    cursor = quote(first.body["next_cursor"])
    again = "filter[word_count][gte]=1&filter[pinned]=true&order=desc&sort=-created_at"
    assert door.get(f"{LIST}?{again}&cursor={cursor}", client()).keys == ["e1"]


def test_a_cursor_ends_when_the_readable_sources_change(door: Door) -> None:
    cursor = quote(door.get(f"{LIST}?limit=1", client()).body["next_cursor"])
    reply = door.get(f"{LIST}?cursor={cursor}", client(stream_grant(fields=NARROW)))
    assert reply.code == "invalid_cursor"
    assert reply.error["recovery"] == {"cursor": None}


def test_any_changed_character_of_a_cursor_is_refused(door: Door) -> None:
    cursor = door.get(f"{LIST}?limit=1", client()).body["next_cursor"]
    for place in range(len(cursor)):
        other = "A" if cursor[place] != "A" else "B"
        changed = cursor[:place] + other + cursor[place + 1 :]
        assert door.get(f"{LIST}?cursor={changed}", client()).code == "invalid_cursor"
    for changed in (cursor[:-1], cursor + "A", cursor + "=", "é" * 20, "A" * 9_000):
        assert door.get(f"{LIST}?cursor={quote(changed)}", client()).code == "invalid_cursor"
