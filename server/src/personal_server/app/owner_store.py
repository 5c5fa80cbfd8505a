"""The store as commands of the owner use it, beside a running server or without one.

Rule: being able to open it is the authority; what a command changes, a running server sees with
its next request.  Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from personal_server.app.stores import command_origin, open_stores
from personal_server.domain.stored import BackupSchedule
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.granting.local_grants import LocalGranting
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.settings import Settings
from personal_server.storage.catalog import Catalogs, StoredCatalogs
from personal_server.storage.damage import DamageNotes
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.disclosure_stores import DisclosureStore


class OwnerStore(msgspec.Struct, frozen=True):
    """Everything a command may need.

    Shapes: `origin` is the public origin of the server; `backups` what the owner's command lets it
        back up by schedule.
    """

    origin: str
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    declarations: KnownDeclarations
    receipts: ConsentReceipts
    random_bytes: Callable[[int], bytes]
    backups: BackupSchedule | None = None
    damage: DamageNotes = msgspec.field(default_factory=DamageNotes)

    @property
    def clock(self) -> Callable[[], int]:
        """UTC nanoseconds."""
        return self.reads.clock

    @property
    def catalogs(self) -> Catalogs:
        """What could be granted."""
        return StoredCatalogs(self.reads.store, self.declarations)

    @property
    def granting(self) -> LocalGranting:
        """Grants without a browser."""
        return LocalGranting(self.authorization, self.catalogs, self.clock, self.random_bytes)

    @property
    def evidence(self) -> EvidenceReader:
        """Counts and spans of what would be granted."""
        return EvidenceReader(self.reads, self.declarations)

    @property
    def sign_in(self) -> OwnerSignIn:
        """Links, password and sessions."""
        return OwnerSignIn(self.authorization, self.clock, self.random_bytes)


@contextmanager
def open_owner_store(settings: Settings) -> Generator[OwnerStore, None, None]:
    """The store for a command of the owner."""
    with open_stores(settings, serving=False) as stores:
        yield OwnerStore(
            origin=command_origin(settings),
            authorization=stores.authorization,
            disclosures=stores.disclosures,
            reads=stores.reads,
            declarations=stores.declarations,
            receipts=stores.receipts,
            random_bytes=stores.random_bytes,
            backups=stores.upkeep.backup_schedule(),
            damage=stores.database.damage,
        )
