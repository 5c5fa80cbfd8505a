"""Which version of one text is a mail's: the plain one, unless it is another text than the page.

Rule: the plain version is as its writer wrote it, with marks of quotes, so it speaks where it is
the text of the page. Some are none: "Your program cannot show this mail", or words that nobody
sees, since mail programs show the page. Half of the runs of words decide, because programs write
numbers of links, names of pictures and footers into the plain version of an honest mail: of 65
public mails with both, 21 share less than half of them, of which most share nothing, and 22 all.
Source: RFC 2046 5.1.4 (the last version is the one that is meant).
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(
    r"\b(?:https?|mailto|cid|tel):[^\s<>\]]*|[^\s@]{1,64}@[^\s@]{1,255}|<[^\s<>]*>"
)
_WORD = re.compile(r"[^\W_]+")
_RUN_WORDS = 3
_FEWEST_WORDS = 10
"""Of fewer words nothing is told: two greetings share none."""
_LEAST_PART = 0.5
"""Which part of its runs the page has, at least, where both are one text; and how many words the
page has for each of the plain version, at least, to be what people read: one that is a picture has
next to none.
"""


def is_text_of(page: str, plain: str) -> bool:
    """Whether a plain version is the text of the page, or the page has hardly a word.

    In: "See you at ten, bring the report and the slides to the café.", the same with ">" before
    it. Out: true. In: the same page, "This mail needs a program that shows pages, click below to
    see it." Out: false.
    """
    page_words, plain_words = _words(page), _words(plain)
    if len(plain_words) < _FEWEST_WORDS or len(page_words) < _LEAST_PART * len(plain_words):
        return True
    runs = _runs(plain_words)
    return len(runs & _runs(page_words)) >= _LEAST_PART * len(runs)


def _words(text: str) -> list[str]:
    return _WORD.findall(_ADDRESS.sub(" ", text.casefold()))


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False))
