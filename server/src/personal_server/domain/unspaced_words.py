"""Words of what is written without blanks between them, as a question in Japanese is.

`会議はいつですか` is one run of letters, which no text holds.  Its words begin where the script
changes; what is in Hiragana alone, endings and particles, says nothing of what is sought.  A long
run of Han, which has no such places, is looked for by its pairs of signs.
Source: docs/contract/resource-server.md 11.7.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter

from msgspec.structs import replace

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.domain.spaced_text import spaced

MOST_PARTS = 8
LONG_RUN = 4
_HAN, _HIRAGANA = "CJK", "HIRAGANA"
# By how the names of signs begin; `々` and `〇` are called otherwise than the rest of Han.
_SCRIPTS = {_HAN: _HAN, "IDEOGRAPHIC": _HAN, _HIRAGANA: _HIRAGANA, "KATAKANA": "KATAKANA"}
_PROLONGED = "ー"


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
    for script, run in groupby(_with_scripts(term.said), itemgetter(0)):
        written = "".join(sign for _, sign in run)
        if script == _HAN and len(written) > LONG_RUN:
            yield from (_part(a + b) for a, b in pairwise(written))
        elif script != _HIRAGANA and spaced(written).split():
            yield _part(written)


def _part(written: str) -> Term:
    tokens = tuple(spaced(written).split())
    return Term(tokens, inflected=len(tokens) == 1, said=written)


def _with_scripts(written: str) -> Iterator[tuple[str, str]]:
    """Each sign behind its script; what lengthens or marks a sign has the script of that one."""
    script = ""
    for sign in written:
        if sign != _PROLONGED and not unicodedata.category(sign).startswith("M"):
            script = _script(sign)
        yield script, sign


def _script(sign: str) -> str:
    name = unicodedata.name(sign, "") if sign.isalnum() else ""
    return next((script for begin, script in _SCRIPTS.items() if name.startswith(begin)), "")
