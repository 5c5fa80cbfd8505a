"""A declaration whose text rotted on the disk is a damaged file, not a refused request."""

from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.worlds import furnish

ROT = "UPDATE declarations SET raw = CAST(replace(CAST(raw AS TEXT), '{', '\x01') AS BLOB)"


def test_a_rotten_declaration_is_told_as_damage(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "records.db")
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnish(store, "cin_a")
    with database.write() as session:
        session.run(ROT)
    with store.snapshot() as snapshot:
        stored = snapshot.declarations()
    with pytest.raises(StorageUnavailable, match="damaged"):
        KnownDeclarations().current(stored)
    with pytest.raises(StorageUnavailable, match="damaged"):
        store.plan_rebuilds()
    database.close()
