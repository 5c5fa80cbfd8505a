"""What tells the language of a text: its letters, its small words, or a model.

Most texts are told without the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from personal_server.domain.language_names import STEMMERS, USUAL_LANGUAGE
from personal_server.domain.stop_words import CODE_BY_WORD

# So much of the beginning of a text is enough for the model.
_MODEL_CHARS = 64
# Fewer letters are in any language.
_LEAST_CHARS = 12
# Where scripts begin: Greek, Cyrillic, Armenian, and those without a stemmer.
_GREEK, _CYRILLIC, _ARMENIAN, _OTHER_SCRIPTS = "\u0370\u0400\u0530\u0590"
# Letters of other scripts than Latin are among these; punctuation and pictures are not.
FOREIGN = re.compile("[\u0370-\u1fff\u2070-\U0001efff\U0001fb00-\U0010ffff]")
# So many words of one list, each once, and none of another, are a text in its language.
_ENOUGH_WORDS = 2
_SMALL_WORDS = frozenset(CODE_BY_WORD)
# What the model is less sure of is as likely to be in another language.
_LEAST_CONFIDENCE = 0.45
_UNCLEAR = ""


def languages_of(heads: Iterable[str], many: int) -> dict[str, str | None]:
    """For each of some beginnings of texts the name of a stemmer, `None` where there is none.

    After so `many` the model looks at those of one call side by side.
    """
    languages, unclear = dict[str, str | None](), dict[str, str]()
    for head in heads:
        words = head.lower().split()
        text = " ".join(words)
        languages[head] = language = _by_words(words, text)
        if language == _UNCLEAR:
            unclear[head] = text[:_MODEL_CHARS]
    if unclear:
        from personal_server.domain.language_model import (  # noqa: PLC0415 (few texts need it)
            IDENTIFIER,
        )

        answers = IDENTIFIER.classify_all([*unclear.values()], many)
        for head, (code, confidence) in zip(unclear, answers, strict=True):
            sure = confidence >= _LEAST_CONFIDENCE
            languages[head] = STEMMERS.get(code) if sure else USUAL_LANGUAGE
    return languages


def _by_words(words: list[str], text: str) -> str | None:
    """What letters and small words tell of a text in lower case, with single blanks."""
    if not text.isascii():
        if FOREIGN.search(text):
            letters = "".join(filter(str.isalpha, text)) or " "
            script = sorted(letters)[len(letters) // 2]  # that of the letter in the middle
            if script >= _OTHER_SCRIPTS:
                return None
            if script >= _GREEK and not _CYRILLIC <= script < _ARMENIAN:
                return "greek" if script < _CYRILLIC else "armenian"
    elif len(text) < _LEAST_CHARS:
        return USUAL_LANGUAGE
    small = _SMALL_WORDS.intersection(words)
    codes = [*filter(None, map(CODE_BY_WORD.__getitem__, small))]
    if len(codes) >= _ENOUGH_WORDS and len({*codes}) == 1:
        return STEMMERS[codes[0]]
    if not small and text.isascii() and len(text) > _MODEL_CHARS:  # tables, logs, addresses
        return USUAL_LANGUAGE
    return _UNCLEAR
