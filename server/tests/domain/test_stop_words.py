"""The lists of stop words are the Snowball project's."""

from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.domain.language_names import LANGUAGE_CODES
from personal_server.domain.stop_words import CODE_BY_WORD, STOP_WORDS

NAMES = {code: name for name, code in LANGUAGE_CODES.items()}
INSTALLED = sorted(Path("/usr/share/postgresql").glob("*/tsearch_data"))


def test_each_list_is_of_a_language_with_stems() -> None:
    assert STOP_WORDS.keys() <= NAMES.keys()
    assert len(STOP_WORDS) == 14
    assert {"the", "whom"} <= set(STOP_WORDS["en"].split())


@pytest.mark.skipif(not INSTALLED, reason="PostgreSQL brings the lists")
@pytest.mark.parametrize("code", STOP_WORDS)
def test_it_is_the_list_that_postgresql_has(code: str) -> None:
    theirs = (INSTALLED[-1] / f"{NAMES[code]}.stop").read_text(encoding="utf-8").split()
    assert STOP_WORDS[code].split() == theirs


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("the", "en"),
        ("und", "de"),
        ("которые", None),
        ("of", ""),  # short
        ("was", ""),  # English and German
        ("untuk", ""),  # of a language without a list
        ("без", ""),  # of several Slavic languages
        ("invoice", None),
    ],
)
def test_a_word_tells_the_language_whose_list_alone_has_it(word: str, code: str | None) -> None:
    assert CODE_BY_WORD.get(word) == code
