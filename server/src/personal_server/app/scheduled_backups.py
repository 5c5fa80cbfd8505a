"""Backups made by the server itself, when they are due.

Source: docs/backup.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pdpp_kernel.errors import PersonalServerError, StorageUnavailable
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.app.backup_schedule import schedule_of
from personal_server.app.backups import PROVEN_EVERY_NS, BackupOrder, free_bytes_of, make_backup
from personal_server.app.stores import Stores
from personal_server.domain.stored import BackupFailure, BackupSchedule
from personal_server.settings import Settings
from personal_server.storage.sql.fixed_tables import BackupRow
from personal_server.web.health import Fault


class ScheduledBackups(msgspec.Struct, frozen=True):
    """Backups that the running server makes by itself.

    Shapes: `is_trusted` is whether the clock may be acted on for good.
    """

    stores: Stores
    settings: Settings
    free_bytes: Callable[[Path], int] = free_bytes_of
    is_trusted: Callable[[], bool] = lambda: True

    def make_if_due(self) -> None:
        """Make one if the newest is old enough, and let go of those it makes superfluous.

        Raises: BackupRefused.
        """
        schedule = schedule_of(self.stores, self.settings)
        if schedule is None:
            return
        now_ns = self.stores.clock()
        made = [row.made_at for row in self._made_until(now_ns)]
        if made and now_ns < next_due_ns(made[0], schedule):
            return
        order = BackupOrder(
            Path(schedule.folder) / _name(now_ns, schedule),
            schedule.recipient,
            scheduled=True,
            prove=self._is_proof_due(now_ns),
            free_bytes=self.free_bytes,
        )
        try:
            make_backup(self.stores, self.settings, order)
        except PersonalServerError as error:
            self._keep_failure(error, now_ns)
            raise
        if self.stores.upkeep.backup_failure() is not None:
            self.stores.upkeep.keep_backup_failure(None)
        if not self.is_trusted():
            return
        proof = self.stores.upkeep.proof()
        proven_ns = None if proof is None else proof.proven_at_ns
        for row in superfluous(self._made_until(now_ns), schedule.keep, proven_ns):
            Path(row.path).unlink(missing_ok=True)
            self.stores.upkeep.forget_backup(row.backup_id)

    def _made_until(self, now_ns: int) -> list[BackupRow]:
        """Those made by schedule, newest first; what a wrong clock dated later does not count."""
        rows = self.stores.upkeep.backups()
        return [row for row in rows if row.scheduled and row.made_at <= now_ns]

    def _keep_failure(self, error: PersonalServerError, now_ns: int) -> None:
        """For `pdpp backup status`, as far as the disk of the data takes it."""
        before = self.stores.upkeep.backup_failure()
        since_ns = now_ns if before is None else before.since_ns
        failure = BackupFailure(since_ns, str(error), str(error.members.get("next_step", "")))
        if failure != before:
            with suppress(StorageUnavailable):
                self.stores.upkeep.keep_backup_failure(failure)

    def faults(self) -> Iterator[Fault]:
        """Why backups fail; that the weekly proof was left out."""
        failure = self.stores.upkeep.backup_failure()
        if failure is not None and schedule_of(self.stores, self.settings) is not None:
            step = f"{failure.why} {failure.next_step}".rstrip()
            yield Fault("backup", "backup_failed", failure.since_ns, step)
        proof = self.stores.upkeep.proof()
        if proof is not None and proof.skipped:
            yield Fault(
                "backup",
                "backup_not_proven",
                proof.tried_at_ns,
                (
                    "A backup was made but not tested by restoring it, because less "
                    "than twice its space is free on the data disk. Free some space; "
                    "the server tests the next backup again."
                ),
            )

    def _is_proof_due(self, now_ns: int) -> bool:
        proof = self.stores.upkeep.proof()
        proven_ns = None if proof is None else proof.proven_at_ns
        return proven_ns is None or not 0 <= now_ns - proven_ns < PROVEN_EVERY_NS


def superfluous(rows: Sequence[BackupRow], keep: int, proven_at_ns: int | None) -> list[BackupRow]:
    """Which backups may go.

    Those that stay are the newest `keep`, the newest of each of the newest `keep` days, so that
    many made in an hour replace no day, and the newest that was proven.
    Shapes: `rows` newest first.
    """
    of_days: dict[int, BackupRow] = {}
    for row in rows:
        of_days.setdefault(row.made_at // DAY_NANOSECONDS, row)
    proven = [row for row in rows if proven_at_ns is not None and row.made_at <= proven_at_ns]
    staying = (*rows[:keep], *list(of_days.values())[:keep], *proven[:1])
    ids = {row.backup_id for row in staying}
    return [row for row in rows if row.backup_id not in ids]


def next_due_ns(made_at_ns: int, schedule: BackupSchedule) -> int:
    """When the backup after one is due."""
    return made_at_ns + schedule.every_hours * 3_600 * NANOSECONDS


def _name(now_ns: int, schedule: BackupSchedule) -> str:
    at = datetime.fromtimestamp(now_ns // NANOSECONDS, UTC)
    ending = ".pdpp.age" if schedule.recipient else ".pdpp"
    return f"backup-{at:%Y%m%dT%H%M%SZ}{ending}"
