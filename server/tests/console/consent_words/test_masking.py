from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.values import ValueKind
from personal_server.console.consent_words import HIDDEN, mask


@pytest.mark.parametrize(
    ("value", "kind", "masked"),
    [
        (None, None, "empty"),
        ("", ValueKind.STRING, "empty"),
        ("Hello there", ValueKind.STRING, "He•••"),
        ("Hi", ValueKind.STRING, "H•••"),
        ("x", ValueKind.STRING, "•••"),
        ("2026-08-23T10:00:00Z", ValueKind.INSTANT, "23 Aug 2026"),
        ("2026-08-23", ValueKind.DATE, "23 Aug 2026"),
        ("2026-08-23", ValueKind.STRING, "20•••"),
        ("not a time", ValueKind.INSTANT, "no•••"),
        (4211, ValueKind.INTEGER, "4•••"),
        (-0.52, ValueKind.NUMBER, "−5•••"),
        (0, ValueKind.INTEGER, "0•••"),
        (True, ValueKind.BOOLEAN, "yes or no"),
        (False, ValueKind.BOOLEAN, "yes or no"),
        (["a", "b"], None, "a list"),
        ({"a": 1}, None, "a JSON object"),
    ],
)
def test_each_json_type_is_masked_in_its_own_way(
    value: object, kind: ValueKind | None, masked: str
) -> None:
    assert str(mask(value, kind)) == masked


@given(st.text())
def test_a_masked_text_shows_at_most_two_of_its_characters(text: str) -> None:
    masked = str(mask(text, ValueKind.STRING))
    assert masked == "empty" or masked.endswith(HIDDEN)
    assert masked == "empty" or len(masked) <= 2 + len(HIDDEN)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_masked_number_shows_one_digit(value: float) -> None:
    assert sum(character.isdigit() for character in str(mask(value, ValueKind.NUMBER))) == 1
