"""What an index is fed with: folded letters, apart where a script puts no spaces."""

from __future__ import annotations

import pytest

from personal_server.domain.spaced_text import spaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain_2, WIND~", "rain 2  wind "),
        ("\x00\x7f", "  "),
        ("Ἄτομο ΣΊΣΥΦΟΣ", "ατομο σισυφοσ"),
        ("a\u0301\u20e3", "a"),
        ("½ Å", "1 2 a"),
        ("ⅷ", "viii"),
        ("行a", " 行 a"),
        ("ກ\u0ec8ก", " ກ  ก "),
        ("カﾀ", " カ  タ "),
        ("𠀀가", " 𠀀 가".replace("가", "\u1100\u1161")),
        ("\U000e0001\U0001f600", "  "),
    ],
)
def test_letters_are_folded_and_signs_are_blanks(text: str, expected: str) -> None:
    assert spaced(text) == expected
