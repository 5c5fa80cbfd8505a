"""Days stand in an order of time where they begin in a zone, on whichever page."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.criteria import Order, WholeDays
from pdpp_kernel.values import ValueKind
from personal_server.enforcement.plans import RecordsPlan
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import NOTES, connection, declaration, note, scope, walk, write

WEST = "America/Los_Angeles"


def dated() -> Any:
    """Notes of which some are whole days."""
    raw = copy.deepcopy(NOTES)
    raw["schema"]["properties"]["pinned"]["x_pdpp_role"] = "whole-days"
    return declaration(streams=[raw])


DATED = dated()
# the night before, a whole day as it is stored, and the hours in which that day begins and ends
AT = {
    "before": "2026-01-02T07:59:00Z",
    "day": "2026-01-02T00:00:00Z",
    "within": "2026-01-02T08:01:00Z",
    "evening": "2026-01-03T07:00:00Z",
    "next": "2026-01-03T00:00:00Z",
}
DAYS = ("day", "next")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path) as opened:
        opened.put_declaration(DATED, orjson.dumps(DATED.raw), 1)
        opened.add_connection(connection("cin_a"))
        notes = [note(key, at, pinned=key in DAYS) for key, at in AT.items()]
        write(opened, "cin_a", notes, stream=DATED.streams["notes"])
        yield opened


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (None, ["day", "before", "within", "next", "evening"]),
        (WholeDays("pinned", "UTC"), ["day", "before", "within", "next", "evening"]),
        (WholeDays("pinned", WEST), ["before", "day", "within", "evening", "next"]),
    ],
)
def test_whole_days_begin_in_the_zone(
    store: SqlRecordStore, days: WholeDays | None, expected: list[str], limit: int
) -> None:
    scopes = (scope(stream=DATED.streams["notes"]),)
    for descending in (False, True):
        order = Order("at", ValueKind.INSTANT, descending, days)
        found = [place.key for place in walk(store, RecordsPlan(scopes, order, limit))]
        assert found == (expected[::-1] if descending else expected)
