"""What the reference expects where few records hold all words: 11.7, from visible texts alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from personal_server.domain.language_names import OTHER_FAMILY
from personal_server.domain.stop_words import STOP_WORDS
from personal_server.domain.word_forms import forms
from tests.properties.meaning import Said, Term, hits_in, letters

FEW = 3
COMMON = 1_000
LISTED = {
    each for listed in STOP_WORDS.values() for word in listed.split() for each in letters(word)
}
LATIN = set("abcdefghijklmnopqrstuvwxyz")

Texts = Sequence[Sequence[Said]]
"""The searchable texts of each visible record."""

Near = tuple[str, int, float]
"""A word, how many records hold it, its weight."""


@dataclass
class Wider:
    """One wider question: its terms, as the caller wrote them, and how many are needed."""

    terms: list[Term]
    written: list[str]
    least: int | None
    telling: list[Term] = field(default_factory=list[Term])


@dataclass
class Relaxed:
    """The wider questions in their order, and what is told."""

    steps: list[Wider]
    absent: list[str]
    spelled: list[str]
    near: list[dict[str, Any]]


def relaxed(terms: list[Term], texts: Texts, exact: int) -> Relaxed:
    bare = [term for term in terms if not is_strict(term)]
    if exact and len(bare) <= 2:
        return Relaxed([], [], [], [])
    counts = [
        1 if term.named else _count(texts, lambda text, t=term: hits_in(text, t, "") > 0)
        for term in terms
    ]
    found = Relaxed([], [], [], [])
    known: list[tuple[Term, str, int]] = []
    tried = 0
    for term, count in zip(terms, counts, strict=True):
        if count:
            known.append((term, written(term), count))
            continue
        is_bare = bool(term.forms) and not term.others and not is_strict(term)
        tried += is_bare
        near: list[Near] = []
        if is_bare and tried <= 4:
            near = _all_near(term.words[0], texts)
        is_taken = bool(near) and _is_clear(term.words[0], near)
        for word, number, _ in near[:1] if is_taken else near[:3]:
            row = {"word": written(term), "value": word, "count": number}
            found.near.append(row | ({"searched": True} if is_taken else {}))
        if is_taken:
            known.append((replace(term, words=(near[0][0],)), written(term), near[0][1]))
            found.spelled.append(written(term))
        else:
            found.absent.append(written(term))
    if any(is_strict(term) and not n for term, n in zip(terms, counts, strict=True)):
        return found
    if found.spelled and not found.absent:
        found.steps.append(_wider(known, None))
    left = [each for each in known if not is_strict(each[0])]
    left.sort(key=lambda each: (_is_common(each[0]), each[2]))
    if left and len(bare) > 1:
        told, total = [left[0][0]], left[0][2]
        for term, _, count in left[1:]:
            total += count
            if count > COMMON or total > 2 * COMMON or _is_common(term):
                break
            told.append(term)
        kept = [term for term, _, _ in left[:12]]
        step = _wider([e for e in known if is_strict(e[0]) or e[0] in kept], None)
        step.least, step.telling = len(terms) - len(bare) + 1, told
        found.steps.append(step)
    return found


def _is_common(term: Term) -> bool:
    """Whether a bare word is a stop word in any language."""
    is_bare = not (term.prefix or term.quoted or term.named or term.others)
    return is_bare and set(term.words) <= LISTED


def is_strict(term: Term) -> bool:
    """What stands in quotation marks, and what names fields."""
    return any(each.quoted or each.named is not None for each in (term, *term.others))


def written(term: Term) -> str:
    return term.said


def _wider(known: list[tuple[Term, str, int]], least: int | None) -> Wider:
    once: dict[Term, str] = {}
    for term, as_written, _ in known:
        once.setdefault(term, as_written)
    return Wider(list(once), list(once.values()), least)


def _count(texts: Texts, holds: Callable[[Said], bool]) -> int:
    return min(sum(any(map(holds, record)) for record in texts), COMMON + 1)


def _near(word: str, texts: Texts) -> list[Near]:
    if not is_correctable(word):
        return []
    counts = Counter(
        other for record in texts for other in {each for text in record for each in text.words}
    )
    fewest = 3 if len(word) == 4 else 1  # another letter makes another word of a short one
    near = {other: n for other, n in counts.items() if _kind(word, other) >= fewest}
    return _weighed(word, {other: n for other, n in near.items() if set(other) <= LATIN})


def _all_near(word: str, texts: Texts) -> list[Near]:
    """As written, and by slips of the hand where none is, or none that is likely."""
    near = _near(word, texts)
    if near and _kind(word, near[0][0]) > 1:
        return near
    in_forms = _near_in_other_forms(word, texts)
    if not near or not in_forms or _kind(word, in_forms[0][0]) == 1:
        return near or in_forms
    counts = Counter(dict(each[:2] for each in in_forms[:3]))
    counts |= Counter(dict(each[:2] for each in near[:3]))
    return _weighed(word, counts)


def _near_in_other_forms(word: str, texts: Texts) -> list[Near]:
    """Where no near word stands as it is written: slips of the hand, in any of their forms."""
    if not is_correctable(word):
        return []
    pairs = range(len(word) - 1)
    slips = {word[:n] + word[n + 1] + word[n] + word[n + 2 :] for n in pairs}
    slips |= {word[:n] + word[n + 1 :] for n in range(len(word))}
    slips |= {word[:n] + word[n] + word[n:] for n in range(len(word))}
    slips |= {word[:n] + vowel + word[n:] for n in range(len(word) + 1) for vowel in "aeiou"}
    meant = {slip: Term((slip,)) for slip in slips - {word} if 2 * _shortest_stem(slip) > len(slip)}
    counts = {
        slip: _count(texts, lambda text, t=term: hits_in(text, t, "") > 0)
        for slip, term in meant.items()
    }
    return _weighed(word, {slip: count for slip, count in counts.items() if count})


def _shortest_stem(word: str) -> int:
    by_family = forms(word).stems.items()
    return min(len(stem) for family, stems in by_family if family != OTHER_FAMILY for stem in stems)


def is_correctable(word: str) -> bool:
    return set(word) <= LATIN and 4 <= len(word) <= 24


def _weighed(word: str, counts: Mapping[str, int]) -> list[Near]:
    found = [
        (other, min(count, COMMON), _mistake(word, other) * (1 + math.log2(min(count, COMMON))))
        for other, count in counts.items()
        if _mistake(word, other)
    ]
    return sorted(found, key=lambda each: (-each[2], each[0]))


def _is_clear(word: str, near: list[Near]) -> bool:
    alone = len(near) == 1 or near[0][2] >= 1.5 * near[1][2]
    return alone and len(word) >= 5


def _mistake(word: str, other: str) -> float:
    """How likely one is written for the other; 0 if by more than one mistake."""
    return _kind(word, other) * (1.0 if word[:1] == other[:1] else 0.25)


def _kind(word: str, other: str) -> int:
    """4 for swapped neighbours, 3 beside its like, 2 for one more, 1 for one less or another."""
    differing = [n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b]
    if len(word) == len(other):
        if len(differing) == 1:
            return 1
        is_swap = len(differing) == 2 and differing[1] == differing[0] + 1
        swapped = is_swap and word[differing[0]] == other[differing[1]]
        return 4 if swapped and word[differing[1]] == other[differing[0]] else 0
    short, long = sorted((word, other), key=len)
    if len(long) != len(short) + 1:
        return 0
    if all(long[:n] + long[n + 1 :] != short for n in range(len(long))):
        return 0
    runs = {long[:n] + long[n + 1 :] for n, (a, b) in enumerate(pairwise(long)) if a == b}
    if short in runs:
        return 3
    return 2 if len(word) < len(other) else 1
