"""What is wrong with the server itself, as the health page reports it."""

from __future__ import annotations

from collections.abc import Iterator

from pdpp_kernel.errors import DamagedRecord, StorageUnavailable
from pdpp_kernel.refused_writes import DISK_LOW
from personal_server.app.server_database import ServerDatabase
from personal_server.app.stores import Stores
from personal_server.storage.authorization_rows import ClientRow
from personal_server.storage.damage import MEND_RECORDS, DamageNotes
from personal_server.upkeep.clock import ClockWatch
from personal_server.web.health import RESTORE, Fault


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
