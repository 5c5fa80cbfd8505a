"""The tasks of upkeep: those of each process, and those that one process does for all."""

from __future__ import annotations

from personal_server.app.background_tasks import BackgroundTasks
from personal_server.app.backup_ledger import LedgerKeeper
from personal_server.app.scheduled_backups import ScheduledBackups
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
from personal_server.upkeep.clock import ClockWatch
from personal_server.upkeep.logs import seal_logs, signing_key

FLUSH_SECONDS = 60
FIRST_USES_SECONDS = 1
LEDGER_SECONDS = 60
ERASING_SECONDS = 5
BACKUP_SECONDS = 60


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
