"""Words of what is written without blanks: 11.7, step 0, by the letters of its scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.properties.meaning import Term, letters

MOST, LONG = 8, 4
_HAN, _HIRAGANA, _KATAKANA = "一-鿿々〇", "ぁ-ゖ", "ァ-ヺー"
_ANY = re.compile(f"[{_HAN}{_HIRAGANA}{_KATAKANA}]")
_RUNS = re.compile(
    f"(?P<han>[{_HAN}]+)|(?P<hiragana>[{_HIRAGANA}]+)|[{_KATAKANA}]+|[^{_HAN}{_HIRAGANA}{_KATAKANA}]+"
)


def unspaced(terms: Sequence[Term]) -> list[Term] | None:
    """The terms apart; None where none is to be parted, or into too many or none."""
    found = list(dict.fromkeys(part for term in terms for part in _parts(term)))
    return found if 0 < len(found) <= MOST and found != list(terms) else None


def _parts(term: Term) -> Iterator[Term]:
    is_more = term.prefix or term.quoted or term.others or term.fields or term.named
    if is_more or not _ANY.search(term.said):
        yield term
        return
    for run in _RUNS.finditer(term.said):
        written = run[0]
        if run["han"] and len(written) > LONG:
            yield from (_part(written[at : at + 2]) for at in range(len(written) - 1))
        elif not run["hiragana"] and letters(written):
            yield _part(written)


def _part(written: str) -> Term:
    return Term(tuple(letters(written)), said=written)
