"""What the server does on its own: the tasks each process runs, those one process runs for all, and
the faults that the health page reports.
"""

from __future__ import annotations

from collections.abc import Iterator

from pdpp_kernel.errors import DamagedRecord, StorageUnavailable
from pdpp_kernel.refused_writes import DISK_LOW
from personal_server.app.background_tasks import BackgroundTasks
from personal_server.app.backup_ledger import LedgerKeeper
from personal_server.app.scheduled_backups import ScheduledBackups
from personal_server.app.server_database import ServerDatabase
from personal_server.app.stores import Stores
from personal_server.app.uploads import uploads_of
from personal_server.collecting.uploads import GO_ON_SECONDS
from personal_server.granting.retention import (
    FORGET_SECONDS,
    SWEEP_SECONDS,
    Retention,
    forget,
    sweep,
)
from personal_server.reading.tokens import TokenResolver
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import ClientRow
from personal_server.storage.damage import MEND_RECORDS, DamageNotes
from personal_server.upkeep.clock import ClockWatch
from personal_server.upkeep.logs import seal_logs, signing_key
from personal_server.web.health import RESTORE, Fault

FLUSH_SECONDS = 60
FIRST_USES_SECONDS = 1
LEDGER_SECONDS = 60
ERASING_SECONDS = 5
BACKUP_SECONDS = 60


def database_faults(stores: Stores) -> Iterator[Fault]:
    """None, where what every request asks for can be read.  Raises: StorageUnavailable."""
    with stores.authorization.read() as reader:
        reader.rows(ClientRow, limit=1)
    with stores.records.snapshot() as snapshot:
        snapshot.connections()
    return iter(())


def disk_faults(database: ServerDatabase) -> Iterator[Fault]:
    """That nothing can be written; then no reads of clients are answered either, since the log of
    disclosures is written for each.
    """
    trouble = database.writability.trouble
    if trouble is not None:
        serving = trouble.reason == DISK_LOW
        yield Fault("disk", trouble.reason, trouble.since_ns, trouble.sentence, serving=serving)


def damage_faults(damage: DamageNotes) -> Iterator[Fault]:
    """Which records these are is for the log and the doctor: anybody may ask for health."""
    if damage.file_since_ns is not None:
        code = StorageUnavailable.code
        yield Fault("database", code, damage.file_since_ns, RESTORE, serving=False)
    if damage.since_ns is not None:
        yield Fault("records", DamagedRecord.code, damage.since_ns, MEND_RECORDS)


def keep_process(background: BackgroundTasks, stores: Stores, resolver: TokenResolver) -> None:
    """What every process does by itself: it writes what it noted, and looks at what it met."""
    background.register("disk", FLUSH_SECONDS, stores.database.probe)
    background.register("uses", FLUSH_SECONDS, resolver.uses.flush, at_stop=True)
    background.register("first_uses", FIRST_USES_SECONDS, resolver.uses.flush_first)
    background.register("damage", FLUSH_SECONDS, stores.records.look_at_damage)


def keep_server(
    background: BackgroundTasks,
    settings: Settings,
    stores: Stores,
    watch: ClockWatch,
    scheduled: ScheduledBackups,
) -> None:
    """What one process does for all; nothing is ended or forgotten by a clock in doubt."""
    retention = Retention(
        settings.change_history_days,
        settings.disclosure_log_days,
        settings.audit_log_days,
        settings.asked_detail_days,
    )
    background.register(
        "sweeping",
        SWEEP_SECONDS,
        lambda: watch.is_trusted() and sweep(stores.authorization, stores.clock()),
    )
    background.register(
        "sealing",
        FORGET_SECONDS,
        lambda: seal_logs(
            stores.logs, signing_key(stores.logs, stores.random_bytes), stores.clock()
        ),
    )
    background.register(
        "forgetting",
        FORGET_SECONDS,
        lambda: (
            watch.is_trusted()
            and forget(
                stores.records,
                stores.disclosures,
                stores.authorization,
                retention,
                stores.clock(),
            )
        ),
    )
    background.register("erasing", ERASING_SECONDS, stores.records.finish_erasures, at_stop=True)
    keeper = LedgerKeeper(stores, settings)
    background.register("ledger", LEDGER_SECONDS, keeper.keep, at_stop=True)
    background.register("backup", BACKUP_SECONDS, scheduled.make_if_due)
    background.register("uploads", GO_ON_SECONDS, uploads_of(settings, stores).go_on)


def clock_faults(watch: ClockWatch) -> Iterator[Fault]:
    """That the clock jumped; nothing is ended or forgotten by it for a day."""
    jumped_at_ns = watch.jumped_at_ns()
    if jumped_at_ns is not None:
        yield Fault(
            "clock",
            "clock_jumped",
            jumped_at_ns,
            (
                "For a day, the server ends and deletes nothing that depends on the "
                "clock. Is the clock right? Then run: pdpp admin accept-clock"
            ),
        )
