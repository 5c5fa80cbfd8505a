"""UIDs of a folder as ranges: a million of them that follow each other are one.

Shapes: packed, a range is two unsigned numbers of 32 bits, ascending and apart.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

LARGEST_UID = 2**32 - 1
_RANGE = re.compile(rb"(\d{1,10})(?::(\d{1,10}))?")


def ranges_of(text: bytes) -> list[tuple[int, int]]:
    """The pairs of a sequence set such as `1:5,9`.  Raises: ValueError."""
    found: list[tuple[int, int]] = []
    for each in text.split(b","):
        match = _RANGE.fullmatch(each)
        if match is None:
            raise ValueError
        ends = int(match[1]), int(match[2] or match[1])
        found.append((min(ends), max(ends)))
    return found


def packed_ranges(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Pairs in order, those that touch as one; what is no UID is left out.

    In: 5 to 9, 1 to 4, 0 to 3.  Out: 1 to 9.
    """
    packed = array("I")
    for first, last in sorted(pairs):
        if not 1 <= first <= last <= LARGEST_UID:
            continue
        if packed and first <= packed[-1] + 1:
            packed[-1] = max(packed[-1], last)
        else:
            packed.extend((first, last))
    return packed.tobytes()


class UidSet:
    """UIDs that are asked for by number."""

    def __init__(self, packed: bytes) -> None:
        ends = array("I")
        ends.frombytes(packed)
        self._firsts, self._lasts = ends[::2], ends[1::2]

    def __contains__(self, uid: int) -> bool:
        at = bisect_right(self._firsts, uid) - 1
        return at >= 0 and uid <= self._lasts[at]

    def __len__(self) -> int:
        pairs = zip(self._firsts, self._lasts, strict=True)
        return sum(last - first + 1 for first, last in pairs)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """First and last, ascending."""
        return zip(self._firsts, self._lasts, strict=True)

    def stretches(self, most: int, below: int) -> Iterator[tuple[int, int]]:
        """Stretches of UIDs below one, each of which holds at most so many that are there.

        In: 1 to 3 and 8 to 9, at most 4, below 9.  Out: 1 to 8.  At most 2: 1 to 2, 3 to 8.
        """
        begin, end, count = 0, 0, 0
        for first, last in self.ranges():
            while first <= min(last, below - 1):
                room = most - count
                taken = min(last, below - 1, first + room - 1)
                begin, end = begin or first, taken
                count += taken - first + 1
                first = taken + 1
                if count >= most:
                    yield begin, end
                    begin, count = 0, 0
        if begin:
            yield begin, end
