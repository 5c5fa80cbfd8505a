"""The language of a text: by its letters, its small words, or a model.

Rule: it follows from the one text alone.  A language that another field or record decided would
tell of that field or record by what a search then finds.  Most texts are told without the model.
Source: docs/contract/resource-server.md 11.2.
"""

from __future__ import annotations

from functools import lru_cache

from personal_server.domain.language_names import STEMMERS, USUAL_LANGUAGE
from personal_server.domain.stop_words import CODE_BY_WORD

# So much of a text says what language it is in; so much of that is enough for the model.
_LANGUAGE_CHARS = 200
_MODEL_CHARS = 64
# Fewer letters are in any language.
_LEAST_CHARS = 12
# Where scripts begin: Greek, Cyrillic, Armenian, and those without a stemmer.
_GREEK, _CYRILLIC, _ARMENIAN, _OTHER_SCRIPTS = "\u0370\u0400\u0530\u0590"
# So many words of one list, each once, and none of another, are a text in its language.
_ENOUGH_WORDS = 2
# What the model is less sure of is as likely to be in another language.
_LEAST_CONFIDENCE = 0.45


def language_of(text: str) -> str | None:
    """The name of the stemmer for the language of a text; `None` where the language has none."""
    return _language_of_head(text[:_LANGUAGE_CHARS])


# the texts of few records are read again with every search
@lru_cache(maxsize=4_096)
def _language_of_head(head: str) -> str | None:
    words = head.lower().split()
    text = " ".join(words)
    if not text.isascii():
        letters = "".join(filter(str.isalpha, text)) or " "
        script = sorted(letters)[len(letters) // 2]  # that of the letter in the middle
        if script >= _OTHER_SCRIPTS:
            return None
        if script >= _GREEK and not _CYRILLIC <= script < _ARMENIAN:
            return "greek" if script < _CYRILLIC else "armenian"
    elif len(text) < _LEAST_CHARS:
        return USUAL_LANGUAGE
    known = [CODE_BY_WORD[word] for word in {*words} if word in CODE_BY_WORD]
    told = [*filter(None, known)]
    if len(told) >= _ENOUGH_WORDS and len({*told}) == 1:
        return STEMMERS[told[0]]
    if not known and text.isascii() and len(text) > _MODEL_CHARS:  # tables, logs, addresses
        return USUAL_LANGUAGE
    from personal_server.domain.language_model import IDENTIFIER  # noqa: PLC0415 (costs a second)

    code, confidence = IDENTIFIER.classify(text[:_MODEL_CHARS])
    return STEMMERS.get(code) if confidence >= _LEAST_CONFIDENCE else USUAL_LANGUAGE
