from hypothesis import given
from hypothesis import strategies as st

from personal_server.reading.disclosure_log import shared_out


@given(st.integers(0, 10**9), st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_shares_add_up_and_follow_the_weights(total: int, weights: list[int]) -> None:
    parts = shared_out(total, weights)
    assert sum(parts) == total
    if any(weights):
        assert all(
            abs(part - total * weight / sum(weights)) <= 1
            for part, weight in zip(parts, weights, strict=True)
        )


def test_nothing_is_shared_among_none() -> None:
    assert shared_out(10, []) == []
