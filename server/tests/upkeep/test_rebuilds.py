from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.storage.sql.records import copy_slices, rebuilds
from personal_server.upkeep.rebuilds import SLICES_AT_ONCE, RebuildWork
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.records.test_rebuilds import (
    declare,
    furnished,
)
from server.tests.storage.worlds import DECLARED, note, write


def test_work_is_done_in_slices_with_pauses_until_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", -1)
    monkeypatch.setattr(rebuilds, "SLICE_SECONDS", 0)
    monkeypatch.setattr(copy_slices, "LINES_AT_ONCE", 1)
    pauses: list[float] = []
    with sqlite_store(tmp_path) as store:
        furnished(store, "cin_a")
        write(store, "cin_a", [note(f"n{i}") for i in range(SLICES_AT_ONCE + 5)])
        declare(store, DECLARED)
        work = RebuildWork(store, pauses.append)
        work()
        assert len(pauses) == SLICES_AT_ONCE
        assert [each.copied for each in store.rebuilds()] == [SLICES_AT_ONCE]
        assert work.progress() == {"rebuilding": 80}
        while store.rebuild_slice():
            work()
        work()
        assert (store.rebuilds(), work.progress()) == ((), {})
