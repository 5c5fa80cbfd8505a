"""What is noted of backups comes back as it was, and a ledger is told all of one owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from personal_server.domain.stored import BackupFailure, BackupProof, BackupSchedule
from personal_server.storage.authorization_rows import GrantRow, PackageRow
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.fixed_tables import BackupRow
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sqlite.database import SqliteDatabase
from tests.new_files import new_file

GRANT = GrantRow(
    grant_id="grt_1",
    grant=b"{}",
    client_id="cli_1",
    connector_key="mail",
    access_mode="continuous",
    issued_at_ns=1,
    revision="1",
)
PACKAGE = PackageRow(package_id="gpk_1", client_id="cli_1", created_at_ns=1, revision="1")
ERASURE = {"id": "era_1", "connection_id": "cin_a", "stream": None, "key_digest": None, "at_ns": 4}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    opened = new_file(tmp_path / "data" / "records.db")
    yield opened
    opened.close()


@pytest.fixture
def notes(database: SqliteDatabase) -> SqlUpkeepStore:
    return SqlUpkeepStore(database)


def test_backups_are_listed_newest_first_until_they_are_forgotten(notes: SqlUpkeepStore) -> None:
    old = BackupRow(
        backup_id="bak_1",
        path="/there/1",
        made_at=5,
        sequence=7,
        size_bytes=9,
        sealed=False,
        scheduled=True,
    )
    new = replace(old, backup_id="bak_2", path="/there/2", made_at=6, sealed=True, scheduled=False)
    assert notes.backups() == []
    notes.keep_backup(old)
    notes.keep_backup(new)
    assert notes.backups() == [new, old]
    notes.forget_backup("bak_2")
    assert notes.backups() == [old]


def test_the_last_proof_takes_the_place_of_the_one_before(notes: SqlUpkeepStore) -> None:
    assert notes.proof() is None
    notes.keep_proof(BackupProof(5, 5, 12))
    skipped = BackupProof(6, 5, 12, "no room")
    notes.keep_proof(skipped)
    assert notes.proof() == skipped


def test_a_failure_and_a_schedule_stay_until_they_end(notes: SqlUpkeepStore) -> None:
    assert (notes.backup_failure(), notes.backup_schedule()) == (None, None)
    failure, schedule = BackupFailure(5, "full", "free some"), BackupSchedule("/b", 24, 7, "age1")
    notes.keep_backup_failure(failure)
    notes.keep_backup_schedule(schedule)
    assert (notes.backup_failure(), notes.backup_schedule()) == (failure, schedule)
    notes.keep_backup_failure(None)
    assert (notes.backup_failure(), notes.backup_schedule()) == (None, schedule)
    notes.keep_backup_schedule(None)
    assert notes.backup_schedule() is None


def test_a_ledger_is_told_what_its_owner_erased_and_ended(
    database: SqliteDatabase, notes: SqlUpkeepStore
) -> None:
    assert (tuple(notes.ledger_size()), notes.ledger_entries("own_1")) == ((0, 0, 0), [])
    with SqlAuthorizationStore(database, "own_1").write() as writer:
        writer.insert(replace(GRANT, revoked_at_ns=8, reason="owner"))
        writer.insert(replace(GRANT, grant_id="grt_2"))
        writer.insert(replace(PACKAGE, revoked_at_ns=9, reason="client"))
        writer.insert(replace(PACKAGE, package_id="gpk_2"))
    with SqlAuthorizationStore(database, "own_2").write() as writer:
        writer.insert(replace(GRANT, grant_id="grt_3", revoked_at_ns=8, reason="owner"))
    notes.keep_erasures("own_1", [ERASURE])
    notes.keep_erasures("own_1", [ERASURE, {**ERASURE, "id": "era_2", "stream": "notes"}])
    assert notes.ledger_entries("own_1") == [
        {"kind": "erasure", **ERASURE},
        {"kind": "erasure", **ERASURE, "id": "era_2", "stream": "notes"},
        {"kind": "ended", "id": "grt_1", "reason": "owner", "at_ns": 8},
        {"kind": "ended", "id": "gpk_1", "reason": "client", "at_ns": 9},
    ]
    assert tuple(notes.ledger_size()) == (2, 2, 1)
