"""Which numbers the database gives, and what a row holds before it has one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from personal_server.storage.sql import fixed_tables
from personal_server.storage.sql.fixed_tables import RejectionRow, SealingKeyRow, SourceRow
from personal_server.storage.sql.statements import insert
from personal_server.storage.tables import StoredRow

ROWS = [
    row
    for row in vars(fixed_tables).values()
    if isinstance(row, type) and issubclass(row, StoredRow) and row is not StoredRow
]
NUMBERED: dict[type[StoredRow], str] = {
    RejectionRow: "number",
    SourceRow: "source",
    SealingKeyRow: "key_id",
}


@pytest.mark.parametrize("row", ROWS)
def test_the_database_counts_receipts_sources_and_sealing_keys(row: Any) -> None:
    numbered = [column.name for column in row.table.columns if column.numbered]
    name = NUMBERED.get(row)
    assert numbered == ([] if name is None else [name])
    if name is not None:
        assert row.table.key == (name,)
        assert name not in insert(row).partition("VALUES")[0].replace("(", " ").split()
        (field,) = (each for each in dataclasses.fields(row) if each.name == name)
        assert field.default == 0
