import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.cursor import TokenUse
from personal_server.domain.stored import SealingKey
from personal_server.reading.sealed_tokens import KeyedSealer, store_sealer
from tests.oracle.memory import MemoryStore

ASKED = "0c5f"
SEALER = KeyedSealer([SealingKey(2, b"b" * 32, 2), SealingKey(1, b"a" * 32, 1)])


def test_what_is_sealed_opens_for_the_same_use_only() -> None:
    token = SEALER.seal(TokenUse.PAGE, ASKED, b"place")
    assert SEALER.open(TokenUse.PAGE, ASKED, token) == b"place"
    assert [SEALER.open(use, ASKED, token) for use in TokenUse if use is not TokenUse.PAGE] == [
        None
    ] * 5


def test_what_is_sealed_opens_for_the_same_request_only() -> None:
    token = SEALER.seal(TokenUse.PAGE, ASKED, b"place")
    assert SEALER.open(TokenUse.PAGE, ASKED + "0", token) is None


def test_a_retired_key_still_opens_what_it_sealed() -> None:
    old = KeyedSealer([SealingKey(1, b"a" * 32, 1)]).seal(TokenUse.PAGE, ASKED, b"place")
    assert SEALER.open(TokenUse.PAGE, ASKED, old) == b"place"
    stranger = KeyedSealer([SealingKey(1, b"c" * 32, 1)])
    assert stranger.open(TokenUse.PAGE, ASKED, old) is None


def test_nothing_of_the_content_can_be_read() -> None:
    assert "place" not in SEALER.seal(TokenUse.PAGE, ASKED, b"place" * 5)


@given(st.integers(min_value=0), st.sampled_from("ABCdef123-_=é "))
def test_any_changed_character_is_refused(place: int, character: str) -> None:
    token = SEALER.seal(TokenUse.PAGE, ASKED, b"a place in a list")
    at = place % len(token)
    changed = token[:at] + character + token[at + 1 :]
    expected = b"a place in a list" if changed == token else None
    assert SEALER.open(TokenUse.PAGE, ASKED, changed) == expected


@given(st.text(max_size=80))
def test_any_text_opens_to_nothing(text: str) -> None:
    assert SEALER.open(TokenUse.PAGE, ASKED, text) is None


@pytest.mark.parametrize("tail", ["=", "==", "A", "\n"])
def test_a_token_has_one_spelling(tail: str) -> None:
    token = SEALER.seal(TokenUse.PAGE, ASKED, b"place")
    assert SEALER.open(TokenUse.PAGE, ASKED, token + tail) is None


def test_the_first_start_makes_a_key_and_later_ones_use_it() -> None:
    store = MemoryStore()
    token = store_sealer(store, lambda n: b"k" * n, 1).seal(TokenUse.PAGE, ASKED, b"place")
    again = store_sealer(store, lambda n: b"x" * n, 2)
    assert again.open(TokenUse.PAGE, ASKED, token) == b"place"
    assert len(store.sealing_keys()) == 1
