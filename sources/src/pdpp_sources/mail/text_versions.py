"""Which version of one text is a mail's: the plain one, unless it is another text than the page.

Rule: the plain version is as its writer wrote it, with marks of quotes, so it speaks where it is
the text of the page. Some are none: "Your program cannot show this mail", or words that nobody
sees, since mail programs show the page. Half of the runs of words decide, because programs write
numbers of links, names of pictures and footers into the plain version of an honest mail: of 65
public mails with both, 21 share less than half of them, of which most share nothing, and 22 all.
Of long texts some runs stand for all, the same ones in both, since a mail of 10 MB has millions.
Source: RFC 2046 5.1.4 (the last version is the one that is meant).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, tee
from zlib import crc32

_ADDRESS = re.compile(
    r"\b(?:https?|mailto|cid|tel):[^\s<>\]]*|[^\s@]{1,64}@[^\s@]{1,255}|<[^\s<>]*>"
)
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W_]+")
_RUN_WORDS = 3
_MOST_RUNS = 20_000
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
    kept: set[int] = set()
    every, plain_runs = 1, 0
    for plain_runs, run in enumerate(_runs(plain), 1):  # noqa: B007 (how many there were)
        if run % every == 0:
            kept.add(run)
        if len(kept) > _MOST_RUNS:
            every *= 2
            kept = {run for run in kept if run % every == 0}
    page_runs, missing = 0, set(kept)
    for page_runs, run in enumerate(_runs(page), 1):  # noqa: B007
        missing.discard(run)
    plain_words, page_words = (runs + _RUN_WORDS - 1 for runs in (plain_runs, page_runs))
    if plain_words < _FEWEST_WORDS or page_words < _LEAST_PART * plain_words:
        return True
    return len(kept) - len(missing) >= _LEAST_PART * len(kept)


def _runs(text: str) -> Iterator[int]:
    """A number for each run of three words, in their order.

    In: "Bring the report, Ada". Out: the checksums of "bring the report" and "the report ada".
    """
    begins = tee(_words(text), _RUN_WORDS)
    shifted = (islice(words, start, None) for start, words in enumerate(begins))
    for run in zip(*shifted, strict=False):
        yield crc32(" ".join(run).encode("utf-8", "surrogatepass"))


def _words(text: str) -> Iterator[str]:
    for line in _LINE.finditer(text):
        for word in _WORD.finditer(_ADDRESS.sub(" ", line[0].casefold())):
            yield word[0]
