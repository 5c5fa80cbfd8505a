"""Canary records: what a planted record says, made in the shape of a real one.  Pure.

Rule: it stands at the time of its donor, so whoever can see it can see the donor; of the donor it
repeats only what other records say too, so that erasing the donor leaves nothing of it here.
Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any, cast

import orjson

from pdpp_kernel.declaration import Stream

_TIMES = frozenset({"date", "date-time"})
_KEY_TRIES = 200
_TRIES = 12
"""How often a word is drawn again that the donor says next, too."""


def disguised(
    donor: Mapping[str, object],
    samples: Sequence[Mapping[str, object]],
    stream: Stream,
    chance: random.Random,
) -> dict[str, object]:
    """Data of a record like the donor, with a key of its own and no file."""
    data: dict[str, object] = {}
    for name, value in donor.items():
        declared = stream.properties.get(name)
        if declared is None or name in stream.blob_fields:
            continue
        is_key, at_time = name in stream.primary_key, declared.schema.get("format") in _TIMES
        is_place = name in (stream.consent_time_field, stream.cursor_field)
        if is_key and not is_place:
            data[name] = _new_key(value, [sample.get(name) for sample in samples], chance)
        elif is_place or at_time or "enum" in declared.schema or _is_common(name, value, samples):
            data[name] = value
        else:
            data[name] = _varied(value, _words(name, donor, samples), chance)
    return data


def _new_key(value: object, keys: Sequence[object], chance: random.Random) -> object:
    """Another key of the same form, with what all sampled keys have alike at both ends.

    Where that leaves room for no further key, all of it is made up.
    """
    taken = {str(key) for key in keys}
    drawn = (_like_others(value, keys, chance) for _ in range(_KEY_TRIES))
    fresh = (key for key in drawn if str(key) not in taken)
    return next(fresh, None) or _scrambled(value, chance)


def _like_others(value: object, keys: Sequence[object], chance: random.Random) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        numbers = [key for key in keys if isinstance(key, int)]
        low, high = min(numbers, default=value), max(numbers, default=value)
        return chance.randint(low, high + max(1, high - low))
    texts = [key for key in keys if isinstance(key, str)]
    if not isinstance(value, str) or len(set(texts)) < 2:
        return _scrambled(value, chance)
    head = _alike(texts)
    end = len(value) - _alike([text[head:][::-1] for text in texts])
    return value[:head] + str(_scrambled(value[head:end], chance)) + value[end:]


def _alike(texts: Sequence[str]) -> int:
    """How many characters all of them begin with alike."""
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False)))


def _words(
    name: str, donor: Mapping[str, object], samples: Sequence[Mapping[str, object]]
) -> list[str]:
    """Words that several records have in a field, else that any other than the donor has."""
    found = Counter[str]()
    for sample in samples:
        if sample is not donor:
            found.update(
                sorted({word for text in _texts(sample.get(name)) for word in text.split()})
            )
    own = {word for text in _texts(donor.get(name)) for word in text.split()}
    several = [word for word, count in found.items() if count + (word in own) > 1]
    return several or [word for word in found if word not in own]


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for element in cast("list[object]", value):
                yield from _texts(element)
        case dict():
            yield from _texts(list(cast("dict[str, object]", value).values()))
        case _:
            return


def _is_common(name: str, value: object, samples: Sequence[Mapping[str, object]]) -> bool:
    """Whether another record says the same there."""
    counter = Counter(orjson.dumps(sample.get(name)) for sample in samples)
    return counter[orjson.dumps(value)] > 1


def _scrambled(value: object, chance: random.Random) -> object:
    """Another key of the same form."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    if isinstance(value, int):
        digits = len(str(abs(value)))
        return chance.randrange(10 ** (digits - 1), 10**digits)
    head, at, host = value.partition("@")
    return "".join(_letter(letter, chance) for letter in head) + at + host


def _letter(letter: str, chance: random.Random) -> str:
    if letter.isascii() and letter.isdigit():
        return chance.choice("0123456789")
    if letter.isascii() and letter.isalpha():
        hexadecimal = letter in "abcdefABCDEF"
        alphabet = "abcdef" if hexadecimal else "ghijklmnopqrstuvwxyz"
        found = chance.choice(alphabet)
        return found.upper() if letter.isupper() else found
    return letter


def _varied(value: object, words: Sequence[str], chance: random.Random) -> object:
    match value:
        case bool() | None:
            return value
        case int():
            return round(value * chance.uniform(0.7, 1.4))
        case float():
            decimals = len(str(value).partition(".")[2])
            return round(value * chance.uniform(0.7, 1.4), min(decimals, 6))
        case str():
            return _text(value, words, chance)
        case list():
            return [_varied(element, words, chance) for element in cast("list[object]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {name: _varied(member, words, chance) for name, member in members.items()}
        case _:
            return None


def _text(text: str, words: Sequence[str], chance: random.Random) -> str:
    """A text of as many words, none after another as in the donor; without a blank, its form."""
    spoken = text.split()
    if len(spoken) < 2:
        return str(_scrambled(text, chance))
    pairs = set(pairwise(spoken))
    made: list[str] = []
    for word in spoken:
        drawn = [chance.choice(words) for _ in range(_TRIES)] if words else []
        fit = (each for each in drawn if not made or (made[-1], each) not in pairs)
        made.append(next(fit, None) or str(_scrambled(word, chance)))
    made[0] = made[0][:1].upper() + made[0][1:] if spoken[0][:1].isupper() else made[0]
    return " ".join(made)
