from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.handles import RecordRef
from pdpp_mcp_server.rs_client.json_values import compact
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    parse_cursor,
    render_cursor,
    short_digest,
)

record = RecordRef("cin_a", "messages", "m8")
key = field_key(record, "body")


@settings(max_examples=100)
@given(st.integers(0, 10**12), st.integers(1, 16_384), st.sampled_from(["", "0123456789ab"]))
def test_a_cursor_reads_back(offset: int, limit: int, digest: str) -> None:
    cursor = WindowCursor(key, offset, limit, digest)
    assert parse_cursor(render_cursor(cursor), key) == cursor


def test_any_changed_character_is_refused() -> None:
    text = render_cursor(WindowCursor(key, 4_096, 4_096, "0123456789ab"))
    for at, char in enumerate(text):
        assert parse_cursor(text[:at] + ("A" if char != "A" else "B") + text[at + 1 :], key) is None
        assert parse_cursor(text[:at] + text[at + 1 :], key) is None


def test_a_cursor_belongs_to_one_field_of_one_record() -> None:
    text = render_cursor(WindowCursor(key, 0, 1, ""))
    assert parse_cursor(text, field_key(record, "subject")) is None
    assert parse_cursor(text, field_key(RecordRef("cin_a", "messages", "m9"), "body")) is None
    assert parse_cursor(text, field_key(RecordRef(None, "messages", "m8"), "body")) is not None


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_any_text_is_a_cursor_or_none(text: str) -> None:
    assert parse_cursor(text, key) is None


def test_digests_are_shortened_alike() -> None:
    assert short_digest("sha256:" + "ab" * 32) == "ab" * 6
    assert short_digest(None) == ""
    assert len(short_digest("md5:odd")) == 12


@pytest.mark.parametrize(
    "body",
    [
        [2, key, 0, 9, ""],
        [1, key, -1, 9, ""],
        [1, key, "0", 9, ""],
        [1, key, 0, 0, ""],
        [1, key, 0, True, ""],
        [1, key, 0, 9, None],
        [1, key, 0, 9],
        {"v": 1},
        7,
    ],
)
def test_a_well_made_cursor_with_odd_parts_is_refused(body: Any) -> None:
    text = urlsafe_b64encode(compact(body).encode()).decode().rstrip("=")
    assert parse_cursor(text + sha256(text.encode()).hexdigest()[:6], key) is None
