"""Search text: from what a person types to terms.

Rule: no text is a syntax error; quotes make phrases, a final `*` a prefix, and every other sign
separates words.
Source: RS contract 11.2.
"""

from __future__ import annotations

import re

from personal_server.domain.criteria import Term
from personal_server.domain.tokens import tokens

MIN_PREFIX_CHARS = 2

# A quoted stretch (the last one may end with the text), or a run without blanks and quotes.
_PIECE = re.compile(r'"([^"]*)(?:"|\Z)|([^\s"]+)')


def parse_terms(text: str) -> tuple[Term, ...]:
    """The terms of a search text, in order; pieces without a letter or digit are none."""
    found: list[Term] = []
    for match in _PIECE.finditer(text):
        quoted, bare = match.groups()
        term = _bare_term(bare) if bare is not None else Term(tuple(tokens(quoted)))
        if term.tokens:
            found.append(term)
    return tuple(found)


def _bare_term(text: str) -> Term:
    words = tuple(tokens(text))
    letters = sum(map(len, words))
    return Term(words, prefix=text.endswith("*") and letters >= MIN_PREFIX_CHARS)
