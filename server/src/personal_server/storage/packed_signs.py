"""Signs of many vectors at once: put together, and compared with those of one in a single pass.

Rule: nothing imports this module before signs are compared, since numpy takes long to import.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_IDS = np.dtype("<i8")
_WORD_BYTES = 8


def packed(lines: Sequence[tuple[int, bytes]]) -> tuple[bytes, bytes]:
    """Ids of vectors, and their signs (`pdpp_kernel.vectors.signs_of`), one behind the other."""
    vectors = np.frombuffer(b"".join(vector for _, vector in lines), np.int8)
    signs = np.packbits(vectors.reshape(len(lines), -1) >= 0, axis=1, bitorder="little")
    return np.array([number for number, _ in lines], _IDS).tobytes(), signs.tobytes()


def nearest_packed(
    blocks: Iterable[tuple[bytes, bytes]], signs: bytes, most: int
) -> list[tuple[int, int]]:
    """The nearest of blocks as (how many signs differ, id); of those as near the highest ids."""
    packed = [(np.frombuffer(ids, _IDS), _apart(block, signs)) for ids, block in blocks]
    if not packed:
        return []
    ids, apart = (np.concatenate(column) for column in zip(*packed, strict=True))
    if len(apart) > most:
        is_near = apart <= np.partition(apart, most - 1)[most - 1]
        ids, apart = ids[is_near], apart[is_near]
    order = np.lexsort((-ids, apart))[:most]
    return list(zip(apart[order].tolist(), ids[order].tolist(), strict=True))


def _apart(block: bytes, signs: bytes) -> NDArray[np.uint16]:
    """In how many dimensions each has another sign; eight bytes at once where they come so."""
    word = np.uint64 if len(signs) % _WORD_BYTES == 0 else np.uint8
    wanted_signs = np.frombuffer(signs, word)
    differing = np.bitwise_count(
        np.frombuffer(block, word).reshape(-1, wanted_signs.size) ^ wanted_signs
    )
    return differing.sum(axis=1, dtype=np.uint16)
