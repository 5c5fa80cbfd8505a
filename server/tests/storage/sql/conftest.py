"""A store in a file, with two accounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path) as opened:
        furnish(opened, "cin_a", "cin_b")
        yield opened
