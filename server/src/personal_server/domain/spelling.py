"""Spellings: words that a mistyped one may have been meant to be.

Rule: which words are near follows from the word alone, so that it can be asked for each of them
whether it occurs where that may be known.  Near is one letter added, lost or changed, or two
neighbours in each other's place (Damerau).
Source: docs/contract/resource-server.md 11.7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from personal_server.domain.language_names import OTHER_FAMILY
from personal_server.domain.search_words import tokens
from personal_server.domain.word_forms import forms, learn_forms

FEWEST_LETTERS, MOST_LETTERS = 4, 24
MOST_SUGGESTED = 3
# A word of fewer letters has too many neighbours to be taken for one of them.
_FEWEST_TAKEN = 5
# A spelling is clearly the best if it is so many times as likely as the next.
_CLEARLY = 1.5
# How likely a mistake is beside another letter in the place of one, or one too many.
_SWAPPED, _DOUBLED, _MISSING, _OTHER_LETTER = 4, 3, 2, 1
_OTHER_FIRST_LETTER = 0.25


def _letters(first: int, last: int) -> str:
    """The letters that texts have after folding."""
    folded = "".join(token for code in range(first, last + 1) for token in tokens(chr(code)))
    return "".join(sorted(set(folded)))


# Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic, Georgian.
_ALPHABETS = (
    _letters(0x61, 0x7A),
    _letters(0x3B1, 0x3C9),
    _letters(0x430, 0x45F),
    _letters(0x561, 0x586),
    _letters(0x5D0, 0x5EA),
    _letters(0x621, 0x64A),
    _letters(0x10D0, 0x10F0),
)
# The letters that fingers leave out most, of the scripts that write them.
_VOWELS = frozenset("aeiouαειουηωаеиоуыэюя")
# Letters that folding leaves as they are, typed on a keyboard that lacks them.
_PLAIN = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "t", "ı": "i", "æ": "a", "œ": "o"}


class Spellings(msgspec.Struct, frozen=True):
    """Near words that occur, the likeliest first; `is_clear`: nothing else can be meant.

    `is_slip`: the likeliest has no letter that a finger does not leave out, double or swap.
    """

    words: tuple[str, ...] = ()
    is_clear: bool = False
    is_slip: bool = False


@lru_cache(maxsize=256)
def near_spellings(word: str) -> tuple[str, ...]:
    """All near words of one that is letters of one script; none of one that cannot be told."""
    plain = {_PLAIN.get(letter, letter) for letter in word}
    alphabet = next((letters for letters in _ALPHABETS if plain <= set(letters)), None)
    if alphabet is None or not FEWEST_LETTERS <= len(word) <= MOST_LETTERS:
        return ()
    letters = sorted({*alphabet, *word})
    spellings: set[str] = set()
    for index in range(len(word) + 1):
        head, tail = word[:index], word[index:]
        spellings.update(head + letter + tail for letter in letters)
        if tail:
            spellings.add(head + tail[1:])
            spellings.update(head + letter + tail[1:] for letter in letters)
            spellings.update(
                head + own + tail[1:] for own, like in _PLAIN.items() if like == tail[0]
            )
        if len(tail) > 1:
            spellings.add(head + tail[1] + tail[0] + tail[2:])
    spellings.discard(word)
    if len(word) < _FEWEST_TAKEN:
        spellings = {each for each in spellings if _is_slip(word, each)}
    return tuple(sorted(spellings))


def likeliest(word: str, counts: Mapping[str, int]) -> Spellings:
    """Of the near words, those that occur, by how often and by which mistake they differ."""
    weights = {near: _weight(word, near, count) for near, count in counts.items() if count > 0}
    if not weights:
        return Spellings()
    listed = sorted(weights, key=lambda near: (-weights[near], near))[:MOST_SUGGESTED]
    best, further = listed[0], listed[1:]
    is_clear = not further or weights[best] >= _CLEARLY * weights[further[0]]
    return Spellings(
        tuple(listed),
        is_clear and len(word) >= _FEWEST_TAKEN,
        _mistake(word, best) > _OTHER_LETTER,
    )


def slips(word: str) -> tuple[str, ...]:
    """Of the near words those that differ by a slip, so that no other consonant is in them.

    They are looked for in all their forms; one whose stem is half of it or less has those of
    another word, too (`einhet` those of `ein`).
    """
    likely = [
        spelling
        for spelling in near_spellings(word)
        if _mistake(word, spelling) >= _DOUBLED or _loses_or_lacks(word, spelling)
    ]
    learn_forms(likely)
    return tuple(each for each in likely if 2 * _shortest_stem(each) > len(each))


def _loses_or_lacks(word: str, near: str) -> bool:
    """Whether a near word is without a letter, or has a vowel that the other one lacks."""
    if len(near) <= len(word):
        return len(near) < len(word)
    index = next((n for n, letter in enumerate(word) if letter != near[n]), len(word))
    return near[index] in _VOWELS


def _shortest_stem(word: str) -> int:
    by_family = forms(word).stems.items()
    return min(len(stem) for family, stems in by_family if family != OTHER_FAMILY for stem in stems)


def _is_slip(word: str, near: str) -> bool:
    """Whether fingers make it of the word: another letter makes another word of a short one."""
    plain = "".join(_PLAIN.get(letter, letter) for letter in near)
    return plain == word or _mistake(word, near) >= _DOUBLED


def _weight(word: str, near: str, count: int) -> float:
    first = 1 if word[0] == near[0] else _OTHER_FIRST_LETTER
    return _mistake(word, near) * first * (1 + math.log2(count))


def _mistake(word: str, near: str) -> int:
    if len(word) == len(near):
        return _SWAPPED if sorted(word) == sorted(near) else _OTHER_LETTER
    short, long = sorted((word, near), key=len)
    index = next((n for n, letter in enumerate(short) if letter != long[n]), len(short))
    is_doubled = long[index] in (long[index - 1 : index] or "", long[index + 1 : index + 2])
    if is_doubled:
        return _DOUBLED
    return _MISSING if len(word) < len(near) else _OTHER_LETTER
