"""How long a duration is."""

from __future__ import annotations

import pytest

from pdpp_sources.common.times import iso_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1H2M3S", 3723),
        ("PT68S", 68),
        ("P1DT0.5S", 86_400.5),
        ("P", None),
        ("P1M", None),
        ("PT1.5M", None),
        ("1:02", None),
        ("", None),
    ],
)
def test_a_duration_is_so_many_seconds(text: str, seconds: float | None) -> None:
    assert iso_seconds(text) == seconds
