"""Vectors as they are kept and compared."""

from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.vectors import distance, shortened, sign_distance, signs_of

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
