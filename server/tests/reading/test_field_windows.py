"""A window of a text says of which account it is."""

from __future__ import annotations

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, LETTERS, client, stream_grant


@pytest.mark.parametrize("connection_id", [DIARY, LETTERS])
def test_the_account_is_the_one_that_was_named(door: Door, connection_id: str) -> None:
    window = "/v1/streams/entries/records/e2/field-window?field=body"
    reply = door.get(f"{window}&connection_id={connection_id}", client(stream_grant()))
    assert (reply.status, reply.body["connection_id"]) == (200, connection_id)
    (told,) = reply.disclosed
    assert (told.source.connection_id, told.fields) == (connection_id, ("body",))
    assert (told.record_count, told.keys) == (1, ("e2",))


def test_a_key_of_one_account_alone_needs_no_name(door: Door) -> None:
    window = "/v1/streams/entries/records/l1/field-window?field=title"
    reply = door.get(window, client(stream_grant()))
    assert reply.body["connection_id"] == LETTERS


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("nobody/field-window?field=body", (404, "not_found")),
        ("e3/field-window?field=title", (404, "field_not_found")),
        (f"e2/field-window?field=word_count&connection_id={DIARY}", (422, "field_not_text")),
        ("e1/field-window?field=body&q=sunshine", (404, "query_not_found")),
        ("e2/field-window?field=body", (409, "ambiguous_connection")),
    ],
)
def test_what_has_no_window_says_why(door: Door, asked: str, expected: tuple[int, str]) -> None:
    reply = door.get(f"/v1/streams/entries/records/{asked}", client(stream_grant()))
    assert (reply.status, reply.code) == expected
