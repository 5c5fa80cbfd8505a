"""A short torture; `make torture` takes ten minutes."""

from __future__ import annotations

import pytest

from tests.torture.scenarios import SCENARIOS
from tests.torture.table import torture


@pytest.mark.long
def test_each_scenario_is_survived_and_nothing_is_lost() -> None:
    table = torture(seconds=1, seed=20_261_122, tell=print)
    assert table.losses == []
    assert set(table.survived) | set(table.unable) == set(SCENARIOS)
    assert len(table.survived) >= 6
    assert table.promised > 100
