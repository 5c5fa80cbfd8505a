"""Signs that are compared many at once are what they are one by one."""

from __future__ import annotations

import random

import pytest

from pdpp_kernel.vectors import sign_distance, signs_of
from personal_server.storage.packed_signs import nearest_packed, packed


@pytest.mark.parametrize("dimensions", [384, 100, 5])
def test_the_nearest_of_blocks_are_those_of_their_vectors(dimensions: int) -> None:
    rng = random.Random(dimensions)
    lines = [(number // 2 - 50, rng.randbytes(dimensions)) for number in range(200)]
    asked = signs_of(rng.randbytes(dimensions))
    wanted = [(sign_distance(signs_of(vector), asked), number) for number, vector in lines]
    wanted.sort(key=lambda each: (each[0], -each[1]))
    blocks = [packed(lines[:77]), packed(lines[77:])]
    for most in (1, 20, 200, 300):
        assert nearest_packed(blocks, asked, most) == wanted[:most]
    assert nearest_packed([], asked, 3) == []
