"""A short failover; `python -m tests.torture.failover` works longer before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.failover import fail_over


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_reads_are_refused_until_they_are_answered(
    tmp_path: Path,
) -> None:
    found = fail_over(tmp_path, 0.1)
    assert (found.lost, found.unannounced, found.faults) == (0, 0, [])
    assert set(found.statuses) == {200, 503}
    assert found.before
    assert found.after
