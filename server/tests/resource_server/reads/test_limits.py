"""Records that a content limit leaves out do not exist, whatever is asked."""

from __future__ import annotations

import pytest

from personal_server.domain.authority import ReadAuthority
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, LIST, NARROW, client, stream_grant

PINNED = client(
    stream_grant(instance_ids=(DIARY,), only={"pinned": (True,)}),
    stream_grant("volumes", (DIARY,)),
    stream_grant("attachments", (DIARY,)),
)
UNTOLD = client(stream_grant(instance_ids=(DIARY,), fields=NARROW, only={"pinned": (True,)}))


@pytest.mark.parametrize("authority", [PINNED, UNTOLD])
def test_pages_counts_and_spans_are_of_what_is_left(door: Door, authority: ReadAuthority) -> None:
    reply = door.get(f"{LIST}?count=exact&window=exact", authority)
    assert [each["id"] for each in reply.data] == ["e1"]
    assert reply.body["meta"]["count"]["value"] == 1
    assert reply.body["meta"]["window"]["total"] == 1


def test_a_record_outside_is_as_one_that_is_not_there(door: Door) -> None:
    hidden, absent = door.get(f"{LIST}/e2", PINNED), door.get(f"{LIST}/e9", PINNED)
    assert (hidden.status, hidden.code) == (absent.status, absent.code) == (404, "not_found")
    window = door.get(f"{LIST}/e2/field-window?field=body", PINNED)
    assert (window.status, window.code) == (404, "not_found")
    assert door.get(f"{LIST}/e1", PINNED).status == 200


def test_searches_aggregates_and_the_time_line_meet_nothing_else(door: Door) -> None:
    assert [each["id"] for each in door.get("/v1/search?q=rain", PINNED).data] == ["e1"]
    assert door.get("/v1/search?q=roofs", PINNED).data == []
    total = door.get("/v1/streams/entries/aggregate?metric=sum&field=word_count", PINNED)
    assert total.body["value"] == 10
    words = door.get("/v1/streams/entries/aggregate?metric=count&q=rain", PINNED)
    assert words.body["value"] == 1
    assert [each["id"] for each in door.get("/v1/timeline", PINNED).data] == ["e1"]


def test_what_is_limited_by_a_field_that_was_not_granted_cannot_be_asked(door: Door) -> None:
    refused = door.get(f"{LIST}?filter[pinned]=false", UNTOLD)
    assert (refused.status, refused.code) == (403, "field_not_granted")
    assert door.get(f"{LIST}?filter[pinned]=false", PINNED).data == []


def test_a_value_that_no_record_has_leaves_nothing(door: Door) -> None:
    nothing = client(stream_grant(only={"volume_id": ("<script>", "\u202e", "v9")}))
    reply = door.get(f"{LIST}?count=exact", nothing)
    assert (reply.data, reply.body["meta"]["count"]["value"]) == ([], 0)
