"""One record, and windows of its text fields."""

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


def test_blob_references_get_a_fetch_url(door: Door) -> None:
    place = f"/v1/streams/attachments/records/a1?connection_id={DIARY}"
    reply = door.get(place, client(stream_grant("attachments")))
    url = reply.body["data"]["blob_ref"]["fetch_url"]
    assert url == f"/v1/blobs/blob_sha256_{'0' * 64}?connection_id={DIARY}"


def test_one_record_is_flat(door: Door) -> None:
    reply = door.get(f"{LIST}/e1?fields=title", client())
    assert reply.body["data"] == {"id": "e1", "title": "Rain"}
    assert reply.body["links"] == {"self": f"{LIST}/e1?fields=title"}
    assert reply.body["meta"] == {"count": {"kind": "none"}, "warnings": []}


def test_hidden_and_absent_records_give_the_identical_answer(door: Door) -> None:
    hidden = door.get(f"{LIST}/e1", client(stream_grant(resources=("e2",))))
    absent = door.get(f"{LIST}/e9", client(stream_grant(resources=("e2",))))
    assert hidden.status == 404
    assert hidden.text == absent.text


def test_a_key_on_several_connections_names_exactly_those(door: Door) -> None:
    reply = door.get(f"{LIST}/e2", client())
    assert (reply.status, reply.code) == (409, "ambiguous_connection")
    assert {c["connection_id"] for c in reply.error["available_connections"]} == {DIARY, LETTERS}
    assert reply.error["retry_with"] == "connection_id"
    assert door.get(f"{LIST}/e2?connection_id={DIARY}", client()).status == 200


@pytest.mark.parametrize("key", ["a/b", "..", ".", "~b64.x", 'q"uote', "ä ö", "[1]"])
def test_any_key_can_be_read_by_its_segment(door: Door, key: str) -> None:
    record = {"id": key, "title": "odd marvel", "created_at": "2026-01-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [record])
    place = door.get("/v1/search?q=marvel", client()).data[0]["record_url"]
    reply = door.get(place, client())
    assert reply.body["record_id"] == key


def test_an_undecodable_key_is_refused(door: Door) -> None:
    assert door.refusal(f"{LIST}/~b64.!!") == (400, "invalid_request", "record_key")


@pytest.mark.parametrize(
    ("query", "window"),
    [
        ("", ("We walked home in heavy rain & wind <b>until</b> dark.", 0, True, None, None)),
        ("&limit_chars=6", ("We wal", 0, False, 6, None)),
        ("&offset_chars=6&limit_chars=6", ("ked ho", 6, False, 12, 0)),
        ("&offset_chars=999", ("", 54, False, None, 0)),
        ("&q=RAIN&before_chars=3&after_chars=2", ("vy rain &", 21, False, 30, 12)),
        ("&q=rain&after_chars=2", ("rain &", 24, False, 30, 18)),
        ("&q=rain&limit_chars=8", ("y rain &", 22, False, 30, 14)),
        ("&q=rain&limit_chars=2", ("ra", 24, False, 26, 22)),
    ],
)
def test_a_field_window_is_a_stretch_of_the_text(
    door: Door, query: str, window: tuple[object, ...]
) -> None:
    reply = door.get(f"{LIST}/e1/field-window?field=body{query}", client())
    found = reply.body["window"]
    shown = (
        found["text"],
        found["start_chars"],
        found["complete"],
        found["next_offset_chars"],
        found["previous_offset_chars"],
    )
    assert shown == window
    assert reply.body["field"]["mime_type"] == "text/markdown"
    assert found["end_chars"] - found["start_chars"] == len(found["text"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (400, "invalid_field_path", "field")),
        ("field=a.b", (400, "invalid_field_path", "field")),
        ("field=body&limit_chars=0", (400, "invalid_window", "limit_chars")),
        ("field=body&offset_chars=-1", (400, "invalid_window", "offset_chars")),
        ("field=body&q=a&offset_chars=1", (400, "invalid_window", "offset_chars")),
        ("field=body&before_chars=1", (400, "invalid_window", "before_chars")),
        ("field=body&q=a&after_chars=8193", (400, "invalid_window", "after_chars")),
        (f"field=body&q={'a' * 257}", (400, "invalid_window", "q")),
        ("field=nowhere", (400, "unknown_field", "field")),
        ("field=pinned", (422, "field_not_text", "field")),
        ("field=body&q=sunshine", (404, "query_not_found", "q")),
    ],
)
def test_windows_that_cannot_be_cut_say_why(
    door: Door, query: str, expected: tuple[object, ...]
) -> None:
    assert door.refusal(f"{LIST}/e1/field-window?{query}") == expected


def test_a_window_of_a_hidden_field_or_a_missing_value_is_refused(door: Door) -> None:
    narrow = client(stream_grant(fields=NARROW))
    place = f"{LIST}/e1/field-window?field=body"
    assert door.refusal(place, narrow) == (403, "field_not_granted", "field")
    place = f"{LIST}/e3/field-window?field=title"
    assert door.refusal(place) == (404, "field_not_found", "field")
    assert door.refusal(f"{LIST}/e2/field-window?field=body")[1] == "ambiguous_connection"
    clamped = door.get(f"{LIST}/e1/field-window?field=body&limit_chars=99999", client())
    assert clamped.warnings == ["limit_clamped"]
    assert clamped.body["window"]["limit_chars"] == 16_384


def test_windows_laid_end_to_end_are_the_field(door: Door) -> None:
    text, target = "", f"{LIST}/e1/field-window?field=body&limit_chars=7&offset_chars=0"
    while True:
        window = door.get(target, client()).body["window"]
        text += window["text"]
        if window["next_offset_chars"] is None:
            break
        target = target.rsplit("=", 1)[0] + f"={window['next_offset_chars']}"
    assert text == "We walked home in heavy rain & wind <b>until</b> dark."
