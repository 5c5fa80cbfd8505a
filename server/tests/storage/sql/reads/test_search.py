"""The newest matches are those of a search that finds more than it takes, however it looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.asking import search
from server.tests.storage.worlds import furnish, note, scope, write

KEYS = [f"n{number}" for number in range(6)]
DAYS = (3, 1, 6, 2, 5, 4)
NEWEST_FIRST = ["n2", "n4", "n5", "n0", "n3", "n1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path_factory.mktemp("records")) as opened:
        furnish(opened, "cin_a")
        notes = [
            note(key, f"2026-01-0{day}T00:00:00Z", body="rain")
            for key, day in zip(KEYS, DAYS, strict=True)
        ]
        write(opened, "cin_a", notes)
        yield opened


@pytest.mark.parametrize(
    "seen", [scope(), scope(resources=frozenset(KEYS))], ids=["by the index", "by the texts"]
)
@pytest.mark.parametrize("window", [1, 2, 5, 6, 7])
def test_the_newest_are_taken_and_it_says_whether_more_match(
    store: SqlRecordStore, seen: Scope, window: int
) -> None:
    for terms, least in ((("rain",), None), (("rain", "snow"), 1)):
        found = search(store, *terms, scopes=(seen,), least=least, window=window)
        assert [each.key for each in found.candidates] == NEWEST_FIRST[:window]
        assert bool(found.truncated) == (window < len(KEYS))
