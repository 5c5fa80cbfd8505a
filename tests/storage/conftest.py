"""Every test of the storage contract runs on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.storage.memory import MemoryStore
from personal_server.storage.ports import RecordStore
from tests.storage.worlds import furnish


@pytest.fixture(params=["memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    found = MemoryStore()
    furnish(found, "cin_a", "cin_b")
    return found
