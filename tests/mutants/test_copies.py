"""Which of a room's other tests are asked first."""

from __future__ import annotations

import pytest

from tests.mutants import copies


def test_who_noticed_most_for_its_time_is_asked_first_and_then_the_quickest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies, "KILLED_BY", copies.Counter({"quick": 2, "long": 3}))
    monkeypatch.setattr(copies, "SECONDS", {"quick": 1.0, "long": 50.0, "slow": 50.0, "new": 0.1})
    names = ["slow", "long", "new", "quick", "unknown"]
    assert sorted(names, key=copies.likely) == ["quick", "unknown", "new", "long", "slow"]


def test_a_change_has_five_times_as_long_as_its_tests_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "SECONDS", {"quick": 1.0, "long": 50.0})
    assert copies.seconds_for(["quick", "long", "unknown"]) == 60.0 + 5 * 51.0
