"""What a database knows of its backups: those that were made, how they went, and what to repeat.

Rule: facts stand in the table `facts`, one a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec.structs import asdict

from personal_server.domain.stored import BackupFailure, BackupProof, BackupSchedule
from personal_server.storage.authorization_rows import GrantRow, PackageRow
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import BackupRow, ErasureRow, FactRow
from personal_server.storage.sql.statements import (
    delete,
    ignoring,
    insert,
    listed,
    replacing,
    row_from,
    select,
    values_of,
)

_FIND_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
_PROOF = "proof"
_BACKUP_FAILURE = "backup_failure"
_SCHEDULE = "backup_schedule"
_ERASURES = select(
    ErasureRow,
    ErasureRow.subject_id,
    columns=(
        ErasureRow.erasure_id,
        ErasureRow.connection_id,
        ErasureRow.stream,
        ErasureRow.key_digest,
        ErasureRow.at,
    ),
)
_ERASURE_NAMES = ("id", "connection_id", "stream", "key_digest", "at_ns")
_ENDED_GRANTS = " UNION ALL ".join(
    f"SELECT {id_column}, {table.reason}, {table.revoked_at_ns} FROM {table.table}"  # noqa: S608
    f" WHERE subject_id = ?1 AND {table.revoked_at_ns} IS NOT NULL"
    for id_column, table in ((GrantRow.grant_id, GrantRow), (PackageRow.package_id, PackageRow))
)
_COUNTS = (
    f"SELECT (SELECT count(*) FROM {ErasureRow.table}),"  # noqa: S608
    f" (SELECT count(*) FROM {GrantRow.table} WHERE {GrantRow.revoked_at_ns} IS NOT NULL),"
    f" (SELECT count(*) FROM {PackageRow.table} WHERE {PackageRow.revoked_at_ns} IS NOT NULL)"
)
_BACKUPS = (
    f"SELECT {listed(BackupRow.table.columns)} FROM {BackupRow.table}"  # noqa: S608
    f" ORDER BY {BackupRow.made_at} DESC"
)
_FORGET_BACKUP = delete(BackupRow, BackupRow.backup_id)


class SqlBackupNotes:
    """Backups, their schedule, and what was erased or ended since."""

    _database: Database

    def ledger_size(self) -> tuple[int, ...]:
        """Grows with what a ledger has to be told."""
        with self._database.read() as session:
            return session.rows(_COUNTS)[0]

    def ledger_entries(self, subject_id: str) -> list[dict[str, object]]:
        """What was erased and ended."""
        with self._database.read() as session:
            erased = session.rows(_ERASURES, (subject_id,))
            ended = session.rows(_ENDED_GRANTS, (subject_id,))
        names = ("id", "reason", "at_ns")
        entries_by_kind = [("erasure", zip(_ERASURE_NAMES, line, strict=True)) for line in erased]
        entries_by_kind += [("ended", zip(names, line, strict=True)) for line in ended]
        return [{"kind": kind, **dict(members)} for kind, members in entries_by_kind]

    def keep_erasures(self, subject_id: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Note erasures that another store was asked for, under their own ids."""
        with self._database.write() as session:
            session.many(
                ignoring(insert(ErasureRow)),
                [(subject_id, *(entry[name] for name in _ERASURE_NAMES)) for entry in entries],
            )

    def backups(self) -> list[BackupRow]:
        """Those that are kept, newest first."""
        with self._database.read() as session:
            return [row_from(BackupRow, line) for line in session.rows(_BACKUPS)]

    def keep_backup(self, row: BackupRow) -> None:
        """Note that a backup was made."""
        with self._database.write() as session:
            session.run(insert(BackupRow), values_of(row))

    def forget_backup(self, backup_id: str) -> None:
        """It is kept no more."""
        with self._database.write() as session:
            session.run(_FORGET_BACKUP, (backup_id,))

    def proof(self) -> BackupProof | None:
        """How the last try to restore a backup went."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_PROOF,))
        return None if text is None else BackupProof(**orjson.loads(text))

    def keep_proof(self, proof: BackupProof) -> None:
        """Replace the note of the last proven restore."""
        self._put(_PROOF, orjson.dumps(asdict(proof)).decode())

    def backup_failure(self) -> BackupFailure | None:
        """Why scheduled backups fail now; None, if they do not."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_BACKUP_FAILURE,))
        found = None if text is None else orjson.loads(text)
        return None if found is None else BackupFailure(**found)

    def keep_backup_failure(self, failure: BackupFailure | None) -> None:
        """Replace it."""
        value = None if failure is None else asdict(failure)
        self._put(_BACKUP_FAILURE, orjson.dumps(value).decode())

    def backup_schedule(self) -> BackupSchedule | None:
        """What the owner asked for with a command."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_SCHEDULE,))
        schedule = None if text is None else orjson.loads(text)
        return None if schedule is None else BackupSchedule(**schedule)

    def keep_backup_schedule(self, schedule: BackupSchedule | None) -> None:
        """Replace it; `None` ends it."""
        value = None if schedule is None else asdict(schedule)
        self._put(_SCHEDULE, orjson.dumps(value).decode())

    def _put(self, name: str, value: str) -> None:
        with self._database.write() as session:
            session.run(replacing(FactRow), (name, value))
