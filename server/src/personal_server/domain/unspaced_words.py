"""Words of what is written without blanks between them, as a question in Japanese is.

`会議はいつですか` is one run of letters, which no text holds.  Its words begin where the script
changes; what is in Hiragana alone, endings and particles, says nothing of what is sought.  A long
run of Han, which has no such places, is looked for by its pairs of signs.
Source: docs/contract/resource-server.md 11.7.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, pairwise

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.domain.spaced_text import spaced

MOST_PARTS = 8
LONG_RUN = 4
_HAN, _HIRAGANA = "CJK", "HIRAGANA"
_SCRIPTS = (_HAN, _HIRAGANA, "KATAKANA")


def parted(words: WordQuery) -> WordQuery | None:
    """The query with such words apart; `None` where it has none, or too much or nothing of them."""
    terms = tuple(dict.fromkeys(part for term in words.terms for part in _parts(term)))
    if not 0 < len(terms) <= MOST_PARTS or terms == words.terms:
        return None
    return replace(words, terms=terms, phrase=None)


def _parts(term: Term) -> Iterator[Term]:
    is_more = term.quoted or term.prefix or term.others or term.fields or term.named
    if is_more or term.literal or not any(map(_script, term.said)):
        yield term
        return
    for script, run in groupby(term.said, _script):
        written = "".join(run)
        if script == _HAN and len(written) > LONG_RUN:
            yield from (_part(a + b) for a, b in pairwise(written))
        elif script != _HIRAGANA and spaced(written).split():
            yield _part(written)


def _part(written: str) -> Term:
    tokens = tuple(spaced(written).split())
    return Term(tokens, inflected=len(tokens) == 1, said=written)


def _script(sign: str) -> str:
    name = unicodedata.name(sign, "")
    return next((script for script in _SCRIPTS if name.startswith(script)), "")
