"""Word forms: the stems that inflected words of a language share.

Rule: a stem counts in texts of its family of languages only: in another it is another word
(`wallet` is no form of `wall`, as in German).
Source: docs/contract/resource-server.md 11.2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from personal_server.domain.language_names import (
    FAMILIES,
    OTHER_FAMILY,
    STEMMERS,
    USUAL_LANGUAGE,
)

# So many words of a language are known at once.
_MOST_WORDS = 100_000


class _Stems(dict[str, str]):
    """The stems of words of one language, made on demand.

    In English it is empty for a word that is its own.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer(language, 0)  # without words of its own
        self._is_usual = language == USUAL_LANGUAGE
        self._lock = threading.Lock()  # one stemmer serves one thread at a time

    def __missing__(self, word: str) -> str:
        with self._lock:
            stem = self._stemmer.stemWord(word)
        if len(self) >= _MOST_WORDS:
            self.clear()
        kept_stem = self[word] = self._kept(word, stem)
        return kept_stem

    def learn(self, words: Sequence[str]) -> None:
        """Make those of several words together, in a third of the time of one by one."""
        with self._lock:
            made = self._stemmer.stemWords(words)
        if len(self) >= _MOST_WORDS:
            self.clear()
        self.update((word, self._kept(word, stem)) for word, stem in zip(words, made, strict=True))

    def _kept(self, word: str, stem: str) -> str:
        return "" if self._is_usual and stem == word else stem


_STEMS = {language: _Stems(language) for language in STEMMERS.values()}


def stems(words: Iterable[str], language: str | None) -> list[str]:
    """The stem of each word of a text; empty where the language has none.

    In English, in which most texts are, it is empty too for words that are their own.
    """
    if language is None:
        return ["" for _ in words]
    return list(map(_STEMS[language].__getitem__, words))


def family_of(language: str) -> str:
    """The family in which a language has its stems."""
    return FAMILIES.get(language, OTHER_FAMILY)


class Forms(NamedTuple):
    """What a word is found by: words of any text, and the stems of a text's words, by family.

    Shapes: `words` are the word and its English stem, which English texts have as a word only.
    """

    words: tuple[str, ...]
    stems: Mapping[str, tuple[str, ...]]

    def stems_in(self, language: str | None) -> tuple[str, ...]:
        """Those of a text in a language."""
        return () if language is None else self.stems[family_of(language)]


def learn_forms(words: Sequence[str]) -> None:
    """Make ready what `forms` says of each of these words, of which many are looked for."""
    for stems_of in _STEMS.values():
        stems_of.learn(words)


@lru_cache(maxsize=1_000)
def forms(word: str) -> Forms:
    """What a word that is looked for is found by.

    All languages are asked, always: which ones occur among the records is nothing to tell.
    """
    words_by_family: dict[str, dict[str, None]] = {family_of(USUAL_LANGUAGE): {}}
    for language, stems_of in _STEMS.items():
        words_by_family.setdefault(family_of(language), {})[stems_of[word] or word] = None
    stemmed = {
        family: tuple(words_of_family) for family, words_of_family in words_by_family.items()
    }
    return Forms(tuple(dict.fromkeys((word, *stemmed[family_of(USUAL_LANGUAGE)]))), stemmed)
