"""Long texts cut into passages: a vector says well what a few sentences mean, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A passage has at most so many code points: most models look at some hundred words.
PASSAGE_CHARS = 600
# What is behind so many of them is found by its words only.
MOST_PASSAGES = 64
# Fewer letters and digits mean nothing.
FEWEST_SIGNS = 3

_CUTS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?…。！？]\s|[。！？]|\n"), re.compile(r"\s"))
_SIGN = re.compile(r"[^\W_]")


def passages_of(text: str) -> list[tuple[int, int]]:
    """The stretches [start, end) of a text that say something."""
    found: list[tuple[int, int]] = []
    for start, end in _stretches(text):
        if len(found) == MOST_PASSAGES:
            break
        if len(_SIGN.findall(text, start, end)) >= FEWEST_SIGNS:
            found.append((start, end))
    return found


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Cut at paragraphs where there are any, else at sentences, else at blanks."""
    start = 0
    while start < len(text):
        end = _end(text, start)
        inner = text[start:end]
        lead = len(inner) - len(inner.lstrip())
        yield start + lead, start + max(lead, len(inner.rstrip()))
        start = end


def _end(text: str, start: int) -> int:
    most = start + PASSAGE_CHARS
    if most >= len(text):
        return len(text)
    for cut in _CUTS:
        places = [match.end() for match in cut.finditer(text, start + PASSAGE_CHARS // 2, most)]
        if places:
            return places[-1]
    return most
