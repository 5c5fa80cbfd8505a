"""Two servers on one database for a moment; `python -m tests.torture.following` for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.following import follow_two_servers


@pytest.mark.long
def test_followers_are_told_everything_once_through_either_server(tmp_path: Path) -> None:
    found = follow_two_servers(tmp_path, 2.0, 12)
    assert (found.gaps, found.repeats) == (0, 0)
    assert found.written > 20
    assert found.pages > found.followers
