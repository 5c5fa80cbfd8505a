"""How long the result of a tool may be."""

from __future__ import annotations

from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS


def test_an_owner_may_allow_ten_times_what_every_client_gets() -> None:
    assert (RESULT_CHARS, MOST_RESULT_CHARS) == (20_000, 200_000)
