"""How long cursors and bookmarks are, and that every position comes back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.cursor import CursorPlace, TokenUse, open_place, seal_place
from personal_server.domain.stored import SealingKey
from personal_server.reading.sealed_tokens import KeyedSealer
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import LIST, client

SEALER = KeyedSealer([SealingKey(1, b"k" * 32, 0)])
ASKED, SOURCES = "0c" * 16, "5f" * 8
LONGEST = 90
UUID = "0195f1c2-7b3e-7a44-9c1d-2f6b8e0d4a11"
DAY = 1_767_225_600_000_000_000


def sealed(*position: object) -> str:
    return seal_place(SEALER, TokenUse.PAGE, CursorPlace(ASKED, SOURCES, position))


def opened(token: str) -> tuple[object, ...]:
    return open_place(SEALER, TokenUse.PAGE, token, ASKED, param="cursor").position


@pytest.mark.parametrize(
    "asked",
    [
        f"{LIST}?limit=1",
        f"{LIST}?limit=1&sort=-word_count",
        f"{LIST}?limit=1&changes_since=beginning",
        f"{LIST}?changes_since=now",
        "/v1/timeline?limit=1",
        "/v1/search?q=rain&limit=1",
    ],
)
def test_an_ordinary_token_has_at_most_ninety_characters(door: Door, asked: str) -> None:
    body = door.get(asked, client()).body
    token = body.get("next_cursor") or body["next_changes_since"]
    assert 32 < len(token) <= LONGEST


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (DAY, UUID),
        (DAY, "AAMkAGI2TG93AAA-abc_0123456789XYZ"),
        ("2026-01-01T00:00:00Z", UUID),
        (19.99, "3f2a9c0d1e4b5a6978"),
        ("A title of 20 letters", "1234567890123456789"),
        (None, "f" * 40),
    ],
)
def test_keys_as_programs_make_them_fit(value: object, key: str) -> None:
    assert len(sealed(value, key, 23)) <= LONGEST


def test_what_does_not_fit_makes_a_longer_token() -> None:
    position = (DAY, "https://example.org/a/long/address?of=a&record=" + "é" * 40, 0)
    token = sealed(*position)
    assert LONGEST < len(token) <= 300
    assert opened(token) == position


@given(
    st.lists(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text(max_size=80)
        | st.from_regex(r"[0-9a-zA-Z:.+@/=_-]{0,70}", fullmatch=True),
        max_size=6,
    )
)
def test_every_position_comes_back(position: list[object]) -> None:
    assert opened(sealed(*position)) == tuple(position)
