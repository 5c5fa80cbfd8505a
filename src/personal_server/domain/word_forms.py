"""Word forms: the language of a text, and the stems that inflected words of it share.

Rule: both follow from the one text alone.  A language that another field or record decided would
tell of that field or record by what a search then finds.
Source: docs/contract/resource-server.md 11.2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache

import pycld2
import Stemmer

# So much of a text says what language it is in.
_LANGUAGE_CHARS = 200
# What of most texts cannot be printed: looked at on its own, it is many times quicker.
_LINE_ENDS = str.maketrans("\t\n\r", "   ")
# Texts too short or too strange to tell, subjects above all.
_USUAL_LANGUAGE = "english"
_ALGORITHMS = {
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "tr": "turkish",
}

LANGUAGE_CODES = {name: code for code, name in _ALGORITHMS.items()}
"""ISO 639-1, by the name of a stemmer."""


# So many words of a language are known at once.
_MOST_WORDS = 100_000


class _Stems(dict[str, str]):
    """The stems of words of one language, empty for a word that is its own; made on demand."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer(language)
        self._lock = threading.Lock()  # one stemmer serves one thread at a time

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem = self._stemmer.stemWord(word)
        if len(self) >= _MOST_WORDS:
            self.clear()
        found = self[word] = "" if stem == word else stem
        return found


_STEMS = {language: _Stems(language) for language in _ALGORITHMS.values()}


def language_of(text: str) -> str | None:
    """The name of the stemmer for the language of a text; `None` where the language has none."""
    head = text[:_LANGUAGE_CHARS].translate(_LINE_ENDS)
    if not head.isprintable():
        head = "".join(each if each.isprintable() else " " for each in head)
    is_reliable, _, details = pycld2.detect(head)
    return _ALGORITHMS.get(details[0][1]) if is_reliable else _USUAL_LANGUAGE


def stems(words: Iterable[str], language: str | None) -> list[str]:
    """The stem of each word of a text, empty for words that are their own."""
    if language is None:
        return ["" for _ in words]
    known = _STEMS[language]
    return [known[word] for word in words]


@lru_cache(maxsize=1_000)
def forms(word: str) -> frozenset[str]:
    """A word and the stems that texts of any language may have for it.

    All languages are asked, always: which ones occur among the records is nothing to tell.
    """
    found = {word, *(known[word] for known in _STEMS.values())}
    return frozenset(found - {""})
