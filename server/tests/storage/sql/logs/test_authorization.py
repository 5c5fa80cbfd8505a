from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.storage.authorization_rows import ROW_TYPES, OwnerLinkRow
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sqlite.database import SqliteDatabase


def test_every_row_type_finds_its_columns(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "pdpp.db")
    with SqlAuthorizationStore(database, "own_1").read() as reader:
        assert [reader.rows(table) for table in ROW_TYPES] == [[] for _ in ROW_TYPES]
    database.close()


def test_one_row_is_got_and_never_one_of_several(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "pdpp.db")
    store = SqlAuthorizationStore(database, "own_1")
    with store.write() as writer:
        for number in (1, 2, 3):
            writer.insert(OwnerLinkRow(link_hash=bytes([number]), expires_at_ns=number))
    with store.read() as reader:
        found = reader.get(OwnerLinkRow, OwnerLinkRow.expires_at_ns.at_most(1))
        assert found is not None
        assert found.expires_at_ns == 1
        with pytest.raises(LookupError):
            reader.get(OwnerLinkRow, OwnerLinkRow.expires_at_ns.at_most(2))
        assert len(reader.rows(OwnerLinkRow, limit=2)) == 2
        assert len(reader.rows(OwnerLinkRow)) == 3
    database.close()
