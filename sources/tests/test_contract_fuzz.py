"""Every reader on the first seeds of its fuzz target, `python -m sources.tests.fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.tests.fuzz import damaged, try_seed
from sources.tests.specimens import SPECIMENS

SEEDS = 25


@pytest.mark.parametrize("key", sorted(SPECIMENS))
def test_no_damaged_export_makes_a_reader_fail(key: str, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        try_seed(key, seed, tmp_path)


def test_a_seed_does_the_same_damage_again() -> None:
    assert damaged(SPECIMENS["mail"], 7) == damaged(SPECIMENS["mail"], 7) != SPECIMENS["mail"]
