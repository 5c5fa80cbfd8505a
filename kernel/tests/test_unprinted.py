"""Values that are never printed whole."""

from __future__ import annotations

from pdpp_kernel.unprinted import Unprinted


class Kept(Unprinted, frozen=True):
    """A secret."""

    secret: str


def test_only_the_class_is_shown() -> None:
    kept = Kept("hush")
    shown = [repr(kept), str(kept), f"{kept}", repr([kept])]
    assert all("Kept" in each and "hush" not in each for each in shown)
