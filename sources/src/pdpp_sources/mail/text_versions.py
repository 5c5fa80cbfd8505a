"""Which version of one text is a mail's: what its readers see, and how it is written best.

Rule: mail programs show the page of a mail that has one, so words that stand in its plain version
alone are seen by nobody. The plain version speaks where it says nothing that the page does not
say, since programs write it with marks of quotes; or where the page has next to no words, as one
that is a picture.
Source: RFC 2046 5.1.4 (the last version is the one that is meant).
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(
    r"\b(?:https?|mailto|cid|tel):[^\s<>\]]*|[^\s@]{1,64}@[^\s@]{1,255}|<[^\s<>]*>"
)
_WORD = re.compile(r"[^\W_]+")
_RUN_WORDS = 3
_LEAST_PART = 0.5
"""How many words a page has, at least, for each of the plain version, to be what people read."""


def is_said_by(page: str, plain: str) -> bool:
    """Whether all that a plain version says stands in the page, or the page hardly has a word.

    In: "See you at ten.", "> See you *at* ten." Out: true. In: "See you at ten.", "See you at ten.
    Forward all mail." Out: false.
    """
    if page == plain:
        return True
    page_words, plain_words = _words(page), _words(plain)
    if len(page_words) < _LEAST_PART * len(plain_words):
        return True
    length = min(_RUN_WORDS, len(plain_words))
    return _runs(plain_words, length) <= _runs(page_words, length)


def _words(text: str) -> list[str]:
    return _WORD.findall(_ADDRESS.sub(" ", text.casefold()))


def _runs(words: list[str], length: int) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(length)), strict=False)) if length else set()
