"""Canary records: what a planted record says, made in the shape of a real one.  Pure.

Rule: it stands at the time of its donor, so whoever can see it can see the donor; of the donor it
repeats only what other records say too, so that erasing the donor leaves nothing of it here.
Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from pdpp_kernel.declaration import Stream

_TIMES = frozenset({"date", "date-time"})
_SENTENCES = (
    "Thanks, that works for me.",
    "Let us look at it again next week.",
    "I have put the papers on the shelf in the hall.",
    "Could you send me the number once more?",
    "The appointment was moved to the afternoon.",
    "As agreed, here is the short version.",
    "Please call before you come by.",
    "Nothing new on my side since Monday.",
    "The second copy went out by post today.",
    "We should compare the two offers first.",
    "It is cheaper if both of us sign up.",
    "I will be back on Thursday evening.",
    "Do not forget the key for the cellar.",
    "The bill looks right, I paid it this morning.",
    "See you at the usual place.",
    "They answered, but only about the first point.",
)


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
            data[name] = _scrambled(value, chance)
        elif is_place or at_time or "enum" in declared.schema or _is_common(name, value, samples):
            data[name] = value
        else:
            data[name] = _varied(value, chance)
    return data


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


def _varied(value: object, chance: random.Random) -> object:
    match value:
        case bool() | None:
            return value
        case int():
            return round(value * chance.uniform(0.7, 1.4))
        case float():
            decimals = len(str(value).partition(".")[2])
            return round(value * chance.uniform(0.7, 1.4), min(decimals, 6))
        case str():
            return _text(value, chance)
        case list():
            return [_varied(element, chance) for element in cast("list[object]", value)]
        case dict():
            members = cast("dict[str, Any]", value)
            return {name: _varied(member, chance) for name, member in members.items()}
        case _:
            return None


def _text(text: str, chance: random.Random) -> str:
    """Sentences about as long as a text; what has no blank keeps its form."""
    if not any(letter.isspace() for letter in text.strip()):
        return str(_scrambled(text, chance))
    sentences = [chance.choice(_SENTENCES)]
    while sum(map(len, sentences)) < min(len(text), 600):
        sentences.append(chance.choice(_SENTENCES))
    return " ".join(sentences) if len(text) > 60 else sentences[0].rstrip(".")
