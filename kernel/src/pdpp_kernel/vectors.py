"""Vectors of meaning, as they are stored and compared.

Rule: a vector is kept as one signed byte for each of its dimensions, its greatest number being 127
(directions are all that is compared), and for the first look as one bit for each: its sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul

from pdpp_kernel.unprinted import Unprinted

GREATEST = 127
DISTANCE_DECIMALS = 4
_SIGNS = bytes(1 if value < 128 else 0 for value in range(256))
_BITS = 8


class Passage(Unprinted, frozen=True):
    """A stretch [start, end) of a text, in code points, and what it means."""

    start_chars: int
    end_chars: int
    vector: bytes


def shortened(numbers: Sequence[float]) -> bytes:
    """A vector as it is kept."""
    largest = max((abs(number) for number in numbers), default=0.0)
    if not largest or not math.isfinite(largest):
        return bytes(len(numbers))
    scale = GREATEST / largest
    return bytes(round(number * scale) & 0xFF for number in numbers)


def signs_of(vector: bytes) -> bytes:
    """A bit for each dimension, set where it is not negative; the first is the lowest of a byte."""
    bits = vector.translate(_SIGNS)
    rows = [bits[start : start + _BITS] for start in range(0, len(bits), _BITS)]
    return bytes(sum(bit << position for position, bit in enumerate(row)) for row in rows)


def distance(one: bytes, other: bytes) -> float:
    """1 less the cosine of the angle between two vectors; 1 where one of them is nothing."""
    return distance_from(one)(other)


def distance_from(one: bytes) -> Callable[[bytes], float]:
    """How far others are from a vector, some hundred of them in milliseconds."""
    a = memoryview(one).cast("b").tolist()
    square = sum(map(mul, a, a))

    def apart(other: bytes) -> float:
        b = memoryview(other).cast("b").tolist()
        lengths = math.sqrt(square * sum(map(mul, b, b)))
        return 1.0 - sum(map(mul, a, b)) / lengths if lengths else 1.0

    return apart


def sign_distance(one: bytes, other: bytes) -> int:
    """In how many dimensions two have different signs; of what `signs_of` gave."""
    return (int.from_bytes(one) ^ int.from_bytes(other)).bit_count()
