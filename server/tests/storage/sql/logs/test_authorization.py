from __future__ import annotations

from pathlib import Path

from personal_server.storage.authorization_rows import ROW_TYPES
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sqlite.database import SqliteDatabase


def test_every_row_type_finds_its_columns(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "pdpp.db")
    with SqlAuthorizationStore(database, "own_1").read() as reader:
        assert [reader.rows(table) for table in ROW_TYPES] == [[] for _ in ROW_TYPES]
    database.close()
