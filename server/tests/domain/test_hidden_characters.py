"""What nobody sees of a text, and what is shown of one that somebody else wrote."""

from __future__ import annotations

import pytest

from personal_server.domain.hidden_characters import is_hidden, shown, shows_all, shows_nothing

# a control, a direction, a surrogate, a private and an unassigned one, separators of lines and
# paragraphs; then letters and signs that are drawn as nothing
HIDDEN = "\x07\u202e\ud800\ue000\u0378\u2028\u2029\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


@pytest.mark.parametrize("character", HIDDEN)
def test_what_shows_nothing_is_hidden(character: str) -> None:
    assert is_hidden(character)
    assert shows_nothing(f" {character}")
    assert not shows_all(f"a{character}")


@pytest.mark.parametrize("character", "a1é東ü-😀\u0301 ")
def test_letters_signs_and_blanks_are_not(character: str) -> None:
    assert not is_hidden(character)
    assert shows_all(f"a{character}")


def test_nothing_is_shown_by_blanks_alone_and_something_by_one_letter() -> None:
    assert shows_nothing("")
    assert shows_nothing(" \t\u00a0")
    assert not shows_nothing(" \u202ea")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Ada", 3, "Ada"),
        ("Ada Lovelace", 11, "Ada Lovela…"),
        ("Ada Lovelace", 12, "Ada Lovelace"),
        ("Ada Lovelace", 5, "Ada…"),
        ("A\u202ed\u200ba", 3, "Ada"),
        ("  a\n\tb\u2028c\u00a0d ", 9, "a b c d"),
        ("", 1, ""),
    ],
)
def test_foreign_text_is_one_line_of_what_can_be_seen(text: str, limit: int, expected: str) -> None:
    assert shown(text, limit) == expected
