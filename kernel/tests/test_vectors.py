"""Vectors as they are kept and compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.vectors import Passage, distance, distance_from, shortened, sign_distance, signs_of

numbers = st.lists(st.floats(-1, 1, width=32), min_size=16, max_size=16)


@given(numbers)
def test_a_vector_keeps_its_direction(given_numbers: list[float]) -> None:
    kept = shortened(given_numbers)
    assert len(kept) == 16
    if any(kept):
        assert distance(kept, shortened([10 * n for n in given_numbers])) < 1e-3


@given(numbers, numbers)
def test_signs_tell_in_how_many_dimensions_two_differ(one: list[float], other: list[float]) -> None:
    a, b = shortened(one), shortened(other)
    differ = sum((x < 128) != (y < 128) for x, y in zip(a, b, strict=True))
    assert sign_distance(signs_of(a), signs_of(b)) == differ


def test_nothing_is_far_from_all() -> None:
    assert shortened([0.0, float("nan")]) == bytes(2)
    assert distance(bytes(2), shortened([1.0, 0.0])) == 1.0


@pytest.mark.parametrize(
    ("numbers_", "kept"),
    [
        ([], []),
        ([2.0, -2.0, 0.0], [127, -127, 0]),
        ([-4.0, 1.0], [-127, 32]),
        ([1.0, float("inf")], [0, 0]),
    ],
)
def test_the_greatest_number_of_a_vector_is_kept_as_127(
    numbers_: list[float], kept: list[int]
) -> None:
    assert memoryview(shortened(numbers_)).cast("b").tolist() == kept


def test_a_sign_is_a_bit_from_the_lowest_of_each_byte_on() -> None:
    kept = shortened([1.0, -1.0, 0.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0, 1.0])
    assert signs_of(kept) == bytes([0b1000_1101, 0b10])
    assert signs_of(bytes([0, 127, 128, 255])) == bytes([0b11])
    assert sign_distance(b"\x00\x03", b"\x80\x01") == 2


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ([1.0, 0.0], [1.0, 0.0], 0.0),
        ([1.0, 0.0], [0.0, 1.0], 1.0),
        ([1.0, 0.0], [-1.0, 0.0], 2.0),
        ([1.0, 1.0], [1.0, 0.0], 1 - 0.5**0.5),
        ([0.0, 0.0], [0.0, 0.0], 1.0),
    ],
)
def test_distance_is_one_less_the_cosine(
    one: list[float], other: list[float], apart: float
) -> None:
    a, b = shortened(one), shortened(other)
    assert distance(a, b) == distance_from(b)(a) == pytest.approx(apart)


def test_what_a_passage_means_is_not_shown() -> None:
    assert repr(Passage(0, 5, b"secret")) == "Passage(…)"
