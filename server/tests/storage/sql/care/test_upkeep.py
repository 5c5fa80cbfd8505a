"""What a server does each minute and each hour costs the same whatever it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from personal_server.domain.stored import ClockNote
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.sqlite.work import counted_store
from server.tests.storage.worlds import note, write

WRITTEN_AT = 1_000


def look_at_the_clock(store: SqlRecordStore) -> None:
    upkeep = SqlUpkeepStore(cast(Any, store)._database)
    assert upkeep.clock_note() == ClockNote(WRITTEN_AT)


def forget_nothing(store: SqlRecordStore) -> None:
    store.prune_history(WRITTEN_AT)


@pytest.mark.parametrize("work", [look_at_the_clock, forget_nothing])
def test_what_is_younger_is_not_walked(
    tmp_path: Path, work: Callable[[SqlRecordStore], None]
) -> None:
    steps: list[int] = []
    for records in (5, 500):
        with counted_store(tmp_path / str(records)) as (store, counters):
            write(store, "cin_a", [note(f"n{each}") for each in range(records)], now=WRITTEN_AT)
            work(store)
            before = sum(count for (count,) in counters.values())
            work(store)
            steps.append(sum(count for (count,) in counters.values()) - before)
    assert steps[0] == steps[1]
