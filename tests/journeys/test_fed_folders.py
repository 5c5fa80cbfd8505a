"""Folders that are written to while they are fed, for a short time; the benches do it for long."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.fed_downloads import exports, fed_downloads
from bench.fed_vault import fed_vault

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_the_records_equal_a_vault_that_was_edited_meanwhile(tmp_path: Path) -> None:
    assert fed_vault(tmp_path, seconds=15, seed=1) == 0


def test_no_export_that_falls_in_is_imported_half_twice_or_into_another_account(
    tmp_path: Path,
) -> None:
    some = random.Random(2).sample(exports(), 8)
    assert fed_downloads(tmp_path, some, spread_seconds=4) == 0
