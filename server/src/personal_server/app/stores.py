"""The stores of a data directory, opened: for the server, or for a command beside it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from personal_server.app.databases import (
    copy_into_file,
    open_database,
    require_filled,
    require_whole,
)
from personal_server.app.export_signer import ExportSigner
from personal_server.app.one_state import one_state
from personal_server.app.server_database import ServerDatabase
from personal_server.configuration_file import (
    ConfigurationFile,
    new_subject_id,
    read_configuration,
    write_configuration,
)
from personal_server.granting.canaries import planted_records
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.owner_locale import LocaleFile
from personal_server.reading.identification import OpenBriefly, OpenState
from personal_server.reading.ports import ReadPorts
from personal_server.reading.sealed_tokens import store_sealer
from personal_server.settings import FORWARDED, Settings
from personal_server.storage.catalog import Catalogs, StoredCatalogs
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.storage.ports.snapshots import ChangeSignal
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.care.integrity import IntegrityChecks
from personal_server.storage.sql.care.stored_logs import SqlLogs
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.change_signal import DatabaseSignal
from personal_server.storage.sql.logs import authorization, disclosures
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.upkeep.logs import ChainedLogs
from personal_server.upkeep.ownership import require_own_files, settle_owner

Clock = Callable[[], int]
RandomBytes = Callable[[int], bytes]


class Stores(msgspec.Struct, frozen=True):
    """Everything that is kept, behind its ports, and what reads need beside it."""

    configuration: ConfigurationFile
    records: RecordStore
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    open_state: OpenState
    open_briefly: OpenBriefly
    reads: ReadPorts
    declarations: KnownDeclarations
    clock: Clock
    random_bytes: RandomBytes
    upkeep: SqlUpkeepStore
    integrity: IntegrityChecks
    copy_database: Callable[[Path], None]
    database: ServerDatabase
    changed: ChangeSignal
    data_dir: Path
    locale: LocaleFile

    @property
    def catalogs(self) -> Catalogs:
        """What could be granted."""
        return StoredCatalogs(self.records, self.declarations)

    @property
    def logs(self) -> ChainedLogs:
        """What was read and what the owner did, as chains."""
        return SqlLogs(self.database, self.records.subject_id)

    @property
    def receipts(self) -> ConsentReceipts:
        """What was agreed, signed with the key that the logs are signed with."""
        return ConsentReceipts(lambda: self.logs.signing_seed(self.random_bytes))


@contextmanager
def open_stores(
    settings: Settings,
    *,
    serving: bool,
    claim: int | None = None,
    clock: Clock = time.time_ns,
    random_bytes: RandomBytes = secrets.token_bytes,
) -> Generator[Stores, None, None]:
    """Open, migrate if need be, and close again; `claim` as in `open_database`.

    Raises: DatabaseInUse for a second server, DatabaseTooNew, DatabaseTooOld, DataMismatch,
        DataNotOwned, StorageUnavailable.
    """
    require_own_files(settings.data_dir)
    configuration = read_configuration(settings.data_dir)
    configured = configuration and configuration.subject_id
    database = open_database(settings, serving=serving, configured=configured, claim=claim)
    changed = DatabaseSignal(database)
    try:
        require_whole(database)
        upkeep = SqlUpkeepStore(database)
        require_filled(upkeep, settings, configured)
        subject_id = settle_owner(upkeep, configured, lambda: new_subject_id(random_bytes))
        if configuration is None:
            configuration = write_configuration(settings.data_dir, subject_id)
        records = SqlRecordStore(database, subject_id, settings.data_dir / "blobs")
        sealer = store_sealer(records, random_bytes, clock())
        locale = LocaleFile(settings, configuration)
        granted = authorization.SqlAuthorizationStore(database, subject_id)
        yield Stores(
            configuration,
            records,
            granted,
            disclosures.SqlDisclosures(
                database, subject_id, keeps_details=settings.asked_detail_days > 0
            ),
            *one_state(database, subject_id),
            ReadPorts(
                records,
                sealer,
                clock,
                random_bytes,
                planted=lambda: planted_records(granted),
                time_zone=locale.zone,
                sign_export=ExportSigner(settings.data_dir, random_bytes).sign,
            ),
            KnownDeclarations(),
            clock,
            random_bytes,
            upkeep,
            IntegrityChecks(database, subject_id, settings.data_dir / "blobs"),
            partial(copy_into_file, database),
            database,
            changed,
            settings.data_dir,
            locale,
        )
    finally:
        changed.close()
        database.close()


def command_origin(settings: Settings) -> str:
    """The origin that commands speak of; of several forwarded ones the first."""
    if settings.public_url == FORWARDED:
        return f"https://{settings.trusted_hosts[0]}"
    return settings.public_url
