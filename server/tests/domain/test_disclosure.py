from __future__ import annotations

import hashlib

import pytest
from msgspec.structs import replace

from personal_server.domain.disclosure import AskedDetail


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        ("/v1/schema", []),
        (
            "/v1/search?q=rent+paid&streams=a&streams=b&member_chars=800&page_chars=9000",
            [("words", "rent paid"), ("streams", "a, b")],
        ),
        (
            "/v1/streams/x/records?filter%5Bto%5D=&filter%5Bat%5D%5Bgte%5D=2026&limit=3",
            [("to", ""), ("at gte", "2026"), ("at most", "3")],
        ),
        (
            "/v1/streams/x/records/a%2Fb/field-window?field=body",
            [("record", "a/b"), ("field", "body")],
        ),
        ("/v1/blobs/blob_1", [("file", "blob_1")]),
    ],
)
def test_what_was_asked_is_told_as_names_and_what_they_say(
    asked: str, facts: list[tuple[str, str]]
) -> None:
    assert AskedDetail(b"s", asked).facts == facts


def test_a_line_commits_to_what_was_asked_and_handed_out_with_its_salt() -> None:
    kept = AskedDetail(b"salt", "/v1/schema", ("k1",))
    expected = hashlib.sha256(b'salt["/v1/schema",["k1"]]').hexdigest()
    assert kept.commitment == expected
    others = (replace(kept, salt=b"s"), replace(kept, asked="/v1"), replace(kept, keys=()))
    assert len({each.commitment for each in (kept, *others)}) == 4
